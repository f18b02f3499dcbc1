//! Check of an agent's answer against the JSON Schema of its step.

use std::collections::BTreeSet;

use jsonschema::Validator;
use serde_json::Value;

/// Most lines of the validator's words in an error.
const MAX_LINES: usize = 10;

/// Longest line of an error in characters.
const MAX_LINE: usize = 300;

/// JSON Schema of a step's answer.
#[derive(Debug)]
pub struct AnswerSchema {
    validator: Validator,
}

impl AnswerSchema {
    /// Returns the compiled schema. Refuses references to other files or addresses.
    pub fn new(schema: &Value) -> Result<Self, String> {
        refuse_remote(schema)?;
        let cycle = reference_cycle(schema);
        if let Some(reference) = cycle {
            return Err(format!("the reference `{reference}` leads back to itself"));
        }
        let validator = jsonschema::options()
            .offline()
            .build(schema)
            .map_err(|error| format!("the schema is not valid: {}", line(&error.to_string())))?;
        Ok(Self { validator })
    }

    /// Returns the value of the answer: the last fenced block that is JSON, else the whole text.
    /// The error lists the validator's words.
    pub fn check(&self, answer: &str) -> Result<Value, String> {
        let value = value_of(answer)?;
        let mut lines: Vec<String> = Vec::new();
        for error in self.validator.iter_errors(&value) {
            if lines.len() == MAX_LINES {
                lines.push("…".to_owned());
                break;
            }
            let path = error.instance_path().to_string();
            let at = if path.is_empty() {
                "the value".to_owned()
            } else {
                path
            };
            lines.push(line(&format!("{at}: {error}")));
        }
        if lines.is_empty() {
            Ok(value)
        } else {
            Err(lines.join("\n"))
        }
    }
}

/// Returns the JSON value of an answer.
fn value_of(answer: &str) -> Result<Value, String> {
    for block in fenced(answer).into_iter().rev() {
        if let Ok(value) = serde_json::from_str(&block) {
            return Ok(value);
        }
    }
    serde_json::from_str(answer.trim()).map_err(|error| {
        format!("the answer is not JSON and contains no fenced block of JSON: {error}")
    })
}

/// Returns the texts of the fenced blocks, first to last.
fn fenced(answer: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<(char, usize, Vec<&str>)> = None;
    for line in answer.lines() {
        let text = line.trim_start();
        let sign = text.chars().next().filter(|c| matches!(c, '`' | '~'));
        let length = sign.map_or(0, |sign| text.chars().take_while(|c| *c == sign).count());
        match &mut open {
            Some((sign_open, length_open, lines)) => {
                let closes = sign == Some(*sign_open)
                    && length >= *length_open
                    && text.trim_end().chars().all(|c| c == *sign_open);
                if closes {
                    blocks.push(lines.join("\n"));
                    open = None;
                } else {
                    lines.push(line);
                }
            }
            None => {
                if let Some(sign) = sign.filter(|_| length >= 3) {
                    open = Some((sign, length, Vec::new()));
                }
            }
        }
    }
    blocks
}

/// Returns one line of at most [`MAX_LINE`] characters.
fn line(text: &str) -> String {
    let one = text.replace(['\n', '\r'], " ");
    match one.char_indices().nth(MAX_LINE) {
        Some((end, _)) => format!("{}…", one.get(..end).unwrap_or_default()),
        None => one,
    }
}

/// Refuses references out of the schema.
fn refuse_remote(schema: &Value) -> Result<(), String> {
    match schema {
        Value::Object(entries) => {
            for (key, value) in entries {
                match (key.as_str(), value.as_str()) {
                    ("$ref", Some(target)) if target != "#" && !target.starts_with("#/") => {
                        return Err(format!(
                            "the reference `{}` leads out of the schema; only `#/…` is available",
                            line(target)
                        ));
                    }
                    ("$dynamicRef" | "$recursiveRef" | "$id" | "$anchor", Some(_)) => {
                        return Err(format!("the keyword `{key}` is not available in a schema"));
                    }
                    _ => {}
                }
                refuse_remote(value)?;
            }
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(refuse_remote),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// Returns a reference that reaches itself without a step into the value: its check would not end.
fn reference_cycle(schema: &Value) -> Option<String> {
    let mut references = BTreeSet::new();
    all_references(schema, &mut references);
    references.into_iter().find(|start| {
        let mut seen = BTreeSet::new();
        let mut open = vec![start.clone()];
        while let Some(reference) = open.pop() {
            let Some(target) = reference
                .strip_prefix('#')
                .and_then(|at| schema.pointer(at))
            else {
                continue;
            };
            let mut next = BTreeSet::new();
            same_value(target, &mut next);
            if next.contains(start) {
                return true;
            }
            open.extend(
                next.into_iter()
                    .filter(|reference| seen.insert(reference.clone())),
            );
        }
        false
    })
}

fn all_references(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(entries) => {
            if let Some(Value::String(target)) = entries.get("$ref") {
                found.insert(target.clone());
            }
            entries
                .values()
                .for_each(|value| all_references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| all_references(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Adds the references that apply to the same value as the schema itself.
fn same_value(schema: &Value, found: &mut BTreeSet<String>) {
    let Value::Object(entries) = schema else {
        return;
    };
    for (key, value) in entries {
        match (key.as_str(), value) {
            ("$ref", Value::String(target)) => {
                found.insert(target.clone());
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(items)) => {
                for item in items {
                    same_value(item, found);
                }
            }
            ("not" | "if" | "then" | "else", value) => same_value(value, found),
            ("dependentSchemas" | "dependencies", Value::Object(inner)) => {
                inner.values().for_each(|value| same_value(value, found));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
