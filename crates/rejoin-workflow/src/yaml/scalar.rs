//! Types of plain scalars, and positions within a scalar.

use saphyr_parser::{ScalarStyle, Span};

use super::Data;
use crate::mistake::Place;

/// Returns the value of an unquoted scalar in the core schema of YAML 1.2.
pub(super) fn plain(raw: &str) -> Data {
    match raw {
        "" | "~" | "null" | "Null" | "NULL" => return Data::Null,
        "true" | "True" | "TRUE" => return Data::Bool(true),
        "false" | "False" | "FALSE" => return Data::Bool(false),
        _ => {}
    }
    number(raw).map_or(Data::Text, Data::Number)
}

fn number(raw: &str) -> Option<serde_json::Number> {
    let unsigned = raw.strip_prefix(['+', '-']).unwrap_or(raw);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let radix = |digits: &str, radix| i64::from_str_radix(digits, radix).ok();
    if let Some(digits) = raw.strip_prefix("0x") {
        return radix(digits, 16).map(Into::into);
    }
    if let Some(digits) = raw.strip_prefix("0o") {
        return radix(digits, 8).map(Into::into);
    }
    let whole = raw.strip_prefix('+').unwrap_or(raw);
    if let Ok(value) = whole.parse::<i64>() {
        return Some(value.into());
    }
    if let Ok(value) = whole.parse::<u64>() {
        return Some(value.into());
    }
    let decimal = unsigned
        .chars()
        .all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    serde_json::Number::from_f64(decimal.then(|| whole.parse::<f64>().ok())??)
}

/// Layout of a scalar's text in the file, for positions within it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Layout {
    /// All on one line without escapes; the text begins this many columns after the scalar.
    Line(usize),
    /// A literal block: the line of its first text, and its indentation.
    Block { first: usize, indent: usize },
    /// Any other: only the begin of the scalar is known.
    Other,
}

impl Layout {
    pub(super) fn of(style: ScalarStyle, span: Span, raw: &str, lines: &[&str]) -> Self {
        let quotes = match style {
            ScalarStyle::Plain => 0,
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => 1,
            ScalarStyle::Literal => return block(span.start.line(), raw, lines),
            ScalarStyle::Folded => return Self::Other,
        };
        // The text itself, because the end of a span may lie behind the scalar.
        let line = lines
            .get(span.start.line().saturating_sub(1))
            .copied()
            .unwrap_or_default();
        let from = line
            .char_indices()
            .nth(span.start.col() + quotes)
            .map(|(at, _)| at);
        let same = from
            .and_then(|from| line.get(from..))
            .is_some_and(|text| text.starts_with(raw));
        if same {
            Self::Line(quotes)
        } else {
            Self::Other
        }
    }

    pub(super) fn place(self, start: Place, raw: &str, offset: usize) -> Place {
        let before = raw.get(..offset).unwrap_or(raw);
        match self {
            Self::Line(skip) => Place {
                line: start.line,
                column: start.column + skip + before.chars().count(),
            },
            Self::Block { first, indent } => {
                let line = before.rsplit('\n').next().unwrap_or_default();
                Place {
                    line: first + before.matches('\n').count(),
                    column: indent + line.chars().count() + 1,
                }
            }
            Self::Other => start,
        }
    }
}

/// Finds the first line of a literal block and its indentation.
fn block(header: usize, raw: &str, lines: &[&str]) -> Layout {
    let Some(skipped) = raw.lines().position(|line| !line.trim().is_empty()) else {
        return Layout::Other;
    };
    let text = raw.lines().nth(skipped).unwrap_or_default();
    // The span begins at the first text, or at the header.
    for text_line in [header, header + 1 + skipped] {
        let Some(line) = lines.get(text_line - 1) else {
            continue;
        };
        let line = line.trim_end_matches('\r');
        if let Some(indent) = line.strip_suffix(text)
            && indent.chars().all(|c| c == ' ')
        {
            return Layout::Block {
                first: text_line.saturating_sub(skipped),
                indent: indent.len(),
            };
        }
    }
    Layout::Other
}
