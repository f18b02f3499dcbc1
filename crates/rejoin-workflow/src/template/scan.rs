//! Names of a text, found in its syntax tree, and constructs that the language does not have.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the engine has many kinds of tokens; each match needs a few"
)]

mod names;
mod walk;

use minijinja::machinery::{Token, ast, parse, parse_expr, tokenize};
use minijinja::{Error, ErrorKind};

use super::engine::syntax;
use super::reference::{Fault, Reference};
use walk::Walk;

/// Most words and signs in one `{{ }}` or `{% %}`.
const MAX_TOKENS: usize = 150;

/// Deepest brackets in an expression, and deepest `{% if %}` and `{% for %}`.
const MAX_NESTED: usize = 20;

/// Most `elif` in a text: each is one level deeper.
const MAX_ELIFS: usize = 20;

/// Names of a text with their positions.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub(crate) references: Vec<(Reference, usize)>,
    /// The text calls `always()`.
    pub(crate) always: bool,
    /// The text asks for values that may be absent.
    pub(crate) tolerant: bool,
}

pub(super) fn template(source: &str) -> Result<Scan, Vec<Fault>> {
    bounded(source, false)?;
    let tree = parse(source, "template", syntax()).map_err(|error| vec![fault(&error, source)])?;
    let mut walk = Walk::new(source);
    walk.statement(&tree);
    walk.finish()
}

pub(super) fn expression(source: &str) -> Result<Scan, Vec<Fault>> {
    if source.is_empty() {
        return Err(vec![Fault {
            offset: 0,
            text: "the expression is empty".into(),
            suggestion: None,
        }]);
    }
    bounded(source, true)?;
    let tree = parse_expr(source).map_err(|error| vec![fault(&error, source)])?;
    let mut walk = Walk::new(source);
    walk.expression(&tree);
    walk.finish()
}

/// Refuses texts whose tree could be deeper than a stack.
fn bounded(source: &str, expression: bool) -> Result<(), Vec<Fault>> {
    let (mut tokens, mut brackets, mut blocks, mut elifs) = (0, 0_usize, 0_usize, 0);
    for token in tokenize(source, expression, syntax()) {
        let Ok((token, span)) = token else {
            return Ok(());
        };
        tokens += 1;
        match token {
            Token::TemplateData(_)
            | Token::VariableStart
            | Token::VariableEnd
            | Token::BlockStart
            | Token::BlockEnd => (tokens, brackets) = (0, 0),
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => brackets += 1,
            Token::ParenClose | Token::BracketClose | Token::BraceClose => {
                brackets = brackets.saturating_sub(1);
            }
            Token::Ident("elif") => elifs += 1,
            Token::Ident("endif" | "endfor") => blocks = blocks.saturating_sub(1),
            // The first word of a block.
            Token::Ident("if" | "for") if tokens == 1 => blocks += 1,
            _ => {}
        }
        let text = if tokens > MAX_TOKENS {
            format!("the expression has more than {MAX_TOKENS} words and signs")
        } else if brackets > MAX_NESTED {
            format!("brackets are nested deeper than {MAX_NESTED} levels")
        } else if blocks > MAX_NESTED {
            format!("`if` and `for` are nested deeper than {MAX_NESTED} levels")
        } else if elifs > MAX_ELIFS {
            format!("the text has more than {MAX_ELIFS} `elif`")
        } else {
            continue;
        };
        let suggestion = Some("split it into several steps".to_owned());
        return Err(vec![Fault {
            offset: span.start_offset as usize,
            text,
            suggestion,
        }]);
    }
    Ok(())
}

/// Returns a syntax error as a fault.
fn fault(error: &Error, source: &str) -> Fault {
    let offset = error.range().map_or_else(
        || {
            let line = error.line().unwrap_or(1).saturating_sub(1);
            source.split_inclusive('\n').take(line).map(str::len).sum()
        },
        |range| range.start,
    );
    let detail = match error.kind() {
        ErrorKind::SyntaxError => error.detail().unwrap_or("syntax error").to_owned(),
        kind => kind.to_string(),
    };
    let unknown = detail.strip_prefix("unknown statement ");
    let (text, suggestion) = match unknown {
        Some(name) => (
            format!("the statement `{name}` is not available"),
            Some("a template may use `{{ }}`, `{% if %}` and `{% for %}`".to_owned()),
        ),
        None => (
            format!("the template or expression is not valid: {detail}"),
            None,
        ),
    };
    Fault {
        offset: offset.min(source.len()),
        text,
        suggestion,
    }
}

/// Returns the name of a statement that the language does not have.
fn statement_name(statement: &ast::Stmt<'_>) -> Option<(&'static str, usize)> {
    let (name, span) = match statement {
        ast::Stmt::WithBlock(node) => ("with", node.span()),
        ast::Stmt::Set(node) => ("set", node.span()),
        ast::Stmt::SetBlock(node) => ("set", node.span()),
        ast::Stmt::AutoEscape(node) => ("autoescape", node.span()),
        ast::Stmt::FilterBlock(node) => ("filter", node.span()),
        ast::Stmt::Do(node) => ("do", node.span()),
        ast::Stmt::Template(_)
        | ast::Stmt::EmitExpr(_)
        | ast::Stmt::EmitRaw(_)
        | ast::Stmt::ForLoop(_)
        | ast::Stmt::IfCond(_) => return None,
    };
    Some((name, span.start_offset as usize))
}
