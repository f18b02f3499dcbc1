//! YAML text as a tree of values with positions. Anchors, aliases, tags, duplicate keys and
//! several documents are mistakes; depth and size are bounded.

mod scalar;
mod tree;

use saphyr_parser::{Parser, StrInput};
use serde_json::{Map, Value};

use crate::mistake::{Mistakes, Place};

pub(crate) use scalar::Layout;
use tree::{Tree, place};

/// Largest file in bytes.
pub(crate) const MAX_FILE: usize = 1 << 20;

/// Value of a file with its position.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) place: Place,
    /// Text of a scalar, else empty.
    pub(crate) raw: String,
    pub(crate) data: Data,
    pub(crate) layout: Layout,
}

#[derive(Debug)]
pub(crate) enum Data {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    Text,
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) place: Place,
    pub(crate) value: Node,
}

impl Node {
    /// Returns the kind of the value for a mistake.
    pub(crate) fn kind(&self) -> &'static str {
        match self.data {
            Data::Null => "nothing",
            Data::Bool(_) => "a boolean",
            Data::Number(_) => "a number",
            Data::Text => "a text",
            Data::List(_) => "a list",
            Data::Map(_) => "a mapping",
        }
    }

    /// Returns the text of a string.
    pub(crate) fn text(&self) -> Option<&str> {
        matches!(self.data, Data::Text).then_some(self.raw.as_str())
    }

    /// Returns the number of a number.
    pub(crate) fn number(&self) -> Option<&serde_json::Number> {
        if let Data::Number(number) = &self.data {
            Some(number)
        } else {
            None
        }
    }

    /// Returns the value as JSON.
    pub(crate) fn json(&self) -> Value {
        match &self.data {
            Data::Null => Value::Null,
            Data::Bool(value) => Value::Bool(*value),
            Data::Number(number) => Value::Number(number.clone()),
            Data::Text => Value::String(self.raw.clone()),
            Data::List(items) => Value::Array(items.iter().map(Self::json).collect()),
            Data::Map(entries) => Value::Object(
                entries
                    .iter()
                    .map(|entry| (entry.key.clone(), entry.value.json()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }

    /// Returns the position of a byte of the scalar's text.
    pub(crate) fn place_at(&self, offset: usize) -> Place {
        self.layout.place(self.place, &self.raw, offset)
    }
}

/// Returns the file's value, or nothing if the text is not one YAML document.
pub(crate) fn read(text: &str, mistakes: &mut Mistakes) -> Option<Node> {
    if text.len() > MAX_FILE {
        mistakes.add(
            Place::START,
            format!("the file is larger than {MAX_FILE} bytes"),
        );
        return None;
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Some(place) = control_character(text) {
        mistakes.suggest(place, "the file contains a control character", "remove it");
        return None;
    }
    let mut tree = Tree::new(text, mistakes);
    let mut parser = Parser::new(StrInput::new(text));
    while let Some(event) = parser.next_event() {
        match event {
            Ok((event, span)) => {
                if !tree.take(event, span) {
                    return None;
                }
            }
            Err(error) => {
                let at = place(*error.marker());
                tree.mistakes
                    .add(at, format!("the file is not valid YAML: {}", error.info()));
                return None;
            }
        }
    }
    if tree.root.is_none() {
        tree.mistakes.suggest(
            Place::START,
            "the file is empty",
            "`rejoin workflow new` prints an example",
        );
    }
    tree.root
}

/// Returns the position of the first character that a YAML file cannot contain.
fn control_character(text: &str) -> Option<Place> {
    let at = text.find(|c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}'))?;
    let before = text.get(..at)?;
    let line = before.rsplit('\n').next().unwrap_or_default();
    Some(Place {
        line: before.matches('\n').count() + 1,
        column: line.chars().count() + 1,
    })
}
