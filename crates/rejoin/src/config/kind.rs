//! Kinds of values: parsed from a file or the environment, described in words and as a schema.

use std::time::Duration;

use rejoin_core::{is_limit_rule, is_word};
use serde_json::{Value, json};

use crate::duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    /// A word that does not begin with a dash.
    Word,
    Bool,
    Whole {
        least: i64,
        most: i64,
    },
    /// A part of a whole.
    Share,
    Money,
    OneOf(&'static [&'static str]),
    Texts,
    SomeOf(&'static [&'static str]),
    /// Names to texts.
    Map,
    /// A time with its unit, or this word.
    Span(&'static str),
    /// A key of 32 bytes.
    Key,
    /// Limits of tools.
    Limits,
}

impl Kind {
    /// Returns true if the value is of this kind. [`Kind::words`] describes the kind.
    pub(crate) fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.as_str().is_some_and(|t| !t.is_empty() && plain(t)),
            Self::Word => value.as_str().is_some_and(is_word),
            Self::Bool => value.is_boolean(),
            Self::Whole { least, most } => {
                value.as_i64().is_some_and(|n| (least..=most).contains(&n))
            }
            Self::Share => value.as_f64().is_some_and(|n| n > 0.0 && n <= 1.0),
            Self::Money => value.as_f64().is_some_and(|n| (0.0..1e9).contains(&n)),
            Self::OneOf(words) => value.as_str().is_some_and(|t| words.contains(&t)),
            Self::Texts | Self::SomeOf(_) | Self::Limits => value
                .as_array()
                .is_some_and(|list| list.iter().all(|item| self.fits_item(item))),
            Self::Map => value.as_object().is_some_and(|map| {
                map.iter()
                    .all(|(name, v)| is_variable(name) && self.fits_item(v))
            }),
            Self::Span(word) => value
                .as_str()
                .is_some_and(|t| t == word || duration::parse_with_unit(t).is_some()),
            Self::Key => value.as_str().is_some_and(is_key),
        }
    }

    /// Returns true if an entry of a list or a map fits.
    pub(crate) fn fits_item(self, item: &Value) -> bool {
        match self {
            Self::SomeOf(words) => item.as_str().is_some_and(|t| words.contains(&t)),
            Self::Limits => is_limit(item),
            Self::Map | Self::Texts => item.as_str().is_some_and(plain),
            Self::Text
            | Self::Word
            | Self::Bool
            | Self::Whole { .. }
            | Self::Share
            | Self::Money
            | Self::OneOf(_)
            | Self::Span(_)
            | Self::Key => false,
        }
    }

    /// A value written in an environment variable.
    pub(crate) fn parse(self, text: &str) -> Option<Value> {
        let items = || text.split(',').map(str::trim).filter(|t| !t.is_empty());
        let value = match self {
            Self::Text | Self::Word | Self::OneOf(_) | Self::Span(_) | Self::Key => json!(text),
            Self::Bool => match text {
                "true" | "1" => json!(true),
                "false" | "0" => json!(false),
                _ => return None,
            },
            Self::Whole { .. } => json!(text.parse::<i64>().ok()?),
            Self::Share | Self::Money => json!(text.parse::<f64>().ok()?),
            Self::Texts | Self::SomeOf(_) | Self::Limits if text.starts_with('[') => {
                serde_json::from_str(text).ok()?
            }
            Self::Texts | Self::SomeOf(_) => items().collect(),
            Self::Limits => return None,
            Self::Map if text.starts_with('{') => serde_json::from_str(text).ok()?,
            Self::Map => {
                let pairs: Option<serde_json::Map<_, _>> = items()
                    .map(|pair| pair.split_once('='))
                    .map(|pair| pair.map(|(n, v)| (n.to_owned(), json!(v))))
                    .collect();
                pairs?.into()
            }
        };
        self.fits(&value).then_some(value)
    }

    /// The kind in words that follow "must be".
    pub(crate) fn words(self) -> String {
        match self {
            Self::Text => "text".into(),
            Self::Word => "a single word in quotes".into(),
            Self::Bool => "true or false".into(),
            Self::Whole { least, most } => format!("a whole number from {least} to {most}"),
            Self::Share => "a number above 0 and at most 1".into(),
            Self::Money => "a number that is not negative".into(),
            Self::OneOf(words) => format!("one of {}", quoted(words)),
            Self::Texts => "a list of texts".into(),
            Self::SomeOf(words) => format!("a list with any of {}", quoted(words)),
            Self::Map => "a table of texts, { NAME = \"value\" }".into(),
            Self::Span(word) => format!("a time like \"12h\" or \"30d\", or \"{word}\""),
            Self::Key => "64 hex letters, as from `openssl rand -hex 32`".into(),
            Self::Limits => LIMITS.into(),
        }
    }

    pub(crate) fn schema(self) -> Value {
        match self {
            Self::Text => json!({"type": "string", "minLength": 1}),
            Self::Word => json!({"type": "string", "pattern": "^[^\\s-][^\\s]*$"}),
            Self::Bool => json!({"type": "boolean"}),
            Self::Whole { least, most } => {
                json!({"type": "integer", "minimum": least, "maximum": most})
            }
            Self::Share => json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1}),
            Self::Money => json!({"type": "number", "minimum": 0}),
            Self::OneOf(words) => json!({"enum": words}),
            Self::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Self::SomeOf(words) => json!({"type": "array", "items": {"enum": words}}),
            Self::Map => json!({"type": "object", "additionalProperties": {"type": "string"}}),
            Self::Span(word) => {
                json!({"anyOf": [{"enum": [word]}, {"type": "string", "pattern": "^[0-9]+([.][0-9]+)? *(ms|s|m|min|h|d|w)$"}]})
            }
            Self::Key => json!({"type": "string", "pattern": "^[0-9a-fA-F]{64}$"}),
            Self::Limits => json!({"type": "array", "items": {
                "type": "object", "additionalProperties": false, "required": ["tool", "max", "per"],
                "properties": {
                    "tool": {"type": "string", "minLength": 1},
                    "max": {"type": "integer", "minimum": 1, "maximum": MOST_CALLS},
                    "per": {"type": "string"},
                },
            }}),
        }
    }
}

/// Most calls that a limit can allow.
const MOST_CALLS: i64 = 1_000;
/// Longest period of a limit.
const LONGEST_PERIOD: Duration = Duration::from_hours(31 * 24);
const LIMITS: &str = "a list of limits, { tool = \"Bash(docker restart:*)\", max = 2, per = \"4h\" }; a rule is a tool, or a tool with the beginning of a command; at most 1000 calls, within at most 31d";

fn is_limit(item: &Value) -> bool {
    let Some(limit) = item.as_object() else {
        return false;
    };
    let per = limit.get("per").and_then(Value::as_str);
    let per = per.and_then(duration::parse_with_unit);
    let max = limit.get("max").and_then(Value::as_i64);
    let tool = limit.get("tool").and_then(Value::as_str);
    limit.len() == 3
        && tool.is_some_and(is_limit_rule)
        && max.is_some_and(|max| (1..=MOST_CALLS).contains(&max))
        && per.is_some_and(|per| !per.is_zero() && per <= LONGEST_PERIOD)
}

fn quoted(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|w| format!("\"{w}\"")).collect();
    quoted.join(", ")
}

/// No NUL and no control characters: these values become arguments and variables.
fn plain(text: &str) -> bool {
    !text
        .chars()
        .any(|c| c.is_control() && c != '\n' && c != '\t')
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && plain(name) && !name.contains(['=', '\n'])
}

pub(crate) fn is_key(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|c| c.is_ascii_hexdigit())
}

/// A value as one would write it in the file.
pub(crate) fn written(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(written).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let pairs: Vec<_> = map
                .iter()
                .map(|(n, v)| format!("{n} = {}", written(v)))
                .collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_and_what_does_not() {
        let span = Kind::Span("forever");
        for (kind, good, bad) in [
            (Kind::Word, json!("sonnet"), json!("--dangerously")),
            (Kind::Text, json!("a b"), json!("a\u{1b}[2J")),
            (Kind::Share, json!(1), json!(0)),
            (Kind::Money, json!(0.3), json!(-1)),
            (span, json!("30d"), json!("30")),
            (span, json!("forever"), json!("d")),
            (Kind::Texts, json!([]), json!(["a", 1])),
            (Kind::Map, json!({"A": "b"}), json!({"A=": "b"})),
            (
                Kind::Key,
                json!("0aF3".repeat(16)),
                json!("0aF3".repeat(15)),
            ),
            (Kind::Key, json!("00".repeat(32)), json!("ü".repeat(32))),
            (
                Kind::Limits,
                json!([{"tool": "Bash(make:*)", "max": 2, "per": "4h"}]),
                json!([{"tool": "Bash(make:*)", "max": 2, "per": "4"}]),
            ),
            (
                Kind::Limits,
                json!([]),
                json!([{"tool": "Bash(git * x)", "max": 2, "per": "4h"}]),
            ),
        ] {
            assert!(kind.fits(&good), "{good}");
            assert!(!kind.fits(&bad), "{bad}");
        }
    }

    #[test]
    fn lists_and_maps_are_written_in_a_variable() {
        assert_eq!(Kind::Texts.parse("--a, b"), Some(json!(["--a", "b"])));
        assert_eq!(Kind::Texts.parse(r#"["a,b"]"#), Some(json!(["a,b"])));
        assert_eq!(
            Kind::Map.parse("A=1,B=x=y"),
            Some(json!({"A": "1", "B": "x=y"}))
        );
        assert_eq!(Kind::Map.parse("A"), None);
        assert_eq!(Kind::Bool.parse("maybe"), None);
    }
}
