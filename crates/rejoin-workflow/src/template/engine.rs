//! Engine: one environment for all texts, with bounds.

use std::io::{self, Write};
use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value as Item;
use minijinja::{Environment, Error, ErrorKind, Output, UndefinedBehavior};
use serde_json::Value;

use super::filters;

/// Largest rendered text in bytes.
pub const MAX_RENDERED: usize = 16 << 20;

/// Most instructions of one text: several seconds of loops end here.
const FUEL: u64 = 5_000_000;

const RECURSION: usize = 50;

static ENGINE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut engine = Environment::empty();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    engine.set_debug(false);
    engine.set_fuel(Some(FUEL));
    engine.set_recursion_limit(RECURSION);
    engine.set_syntax(syntax());
    engine.set_formatter(|output, _, value| write_value(output, value));
    filters::add(&mut engine);
    engine
});

/// Returns the syntax of templates. A trailing newline stays.
pub(super) fn syntax() -> SyntaxConfig {
    SyntaxConfig::builder()
        .keep_trailing_newline(true)
        .build()
        .unwrap_or_default()
}

pub(super) fn render(source: &str, context: Item) -> Result<String, String> {
    let engine: &Environment<'_> = &ENGINE;
    let template = engine
        .template_from_str(source)
        .map_err(|error| sentence(&error))?;
    let mut text = Bounded::default();
    let done = template.render_captured_to(context, &mut text);
    if text.full {
        return Err(too_large());
    }
    done.map_err(|error| sentence(&error))?;
    String::from_utf8(text.bytes).map_err(|_| "the rendered text is not UTF-8".to_owned())
}

pub(super) fn evaluate(source: &str, context: Item) -> Result<Value, String> {
    let value = eval(source, context)?;
    serde_json::to_value(&value).map_err(|error| format!("the value is not JSON: {error}"))
}

pub(super) fn is_true(source: &str, context: Item) -> Result<bool, String> {
    eval(source, context).map(|value| value.is_true())
}

fn eval(source: &str, context: Item) -> Result<Item, String> {
    let engine: &Environment<'_> = &ENGINE;
    let expression = engine
        .compile_expression(source)
        .map_err(|error| sentence(&error))?;
    let value = expression.eval(context).map_err(|error| sentence(&error))?;
    if value.is_undefined() {
        return Err(format!("the value of `{source}` is not defined"));
    }
    Ok(value)
}

/// Writes a value as text: a string as it is, lists and mappings as JSON.
fn write_value(output: &mut Output<'_>, value: &Item) -> Result<(), Error> {
    if value.is_undefined() {
        return Err(Error::new(
            ErrorKind::UndefinedError,
            "the value is not defined",
        ));
    }
    let written = match value.as_str() {
        Some(text) => output.write_str(text),
        None => output.write_str(&json_text(value)?),
    };
    written.map_err(|_| Error::new(ErrorKind::WriteFailure, too_large()))
}

/// Returns the value as JSON text within the bound.
pub(super) fn json_text(value: &Item) -> Result<String, Error> {
    let mut text = Bounded::default();
    let done = serde_json::to_writer(&mut text, value);
    if text.full {
        return Err(Error::new(ErrorKind::InvalidOperation, too_large()));
    }
    done.map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    String::from_utf8(text.bytes)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
}

pub(super) fn too_large() -> String {
    format!("the text is larger than {} MiB", MAX_RENDERED >> 20)
}

/// Returns the error of the engine as a sentence.
pub(super) fn sentence(error: &Error) -> String {
    match (error.kind(), error.detail()) {
        (ErrorKind::OutOfFuel, _) => "the text takes too long to render".to_owned(),
        (kind, None) => kind.to_string(),
        (ErrorKind::UndefinedError | ErrorKind::SyntaxError, Some(detail)) => detail.to_owned(),
        (kind, Some(detail)) => format!("{kind}: {detail}"),
    }
}

/// Buffer that takes at most [`MAX_RENDERED`] bytes.
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
    full: bool,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > MAX_RENDERED {
            self.full = true;
            return Err(io::Error::other(too_large()));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
