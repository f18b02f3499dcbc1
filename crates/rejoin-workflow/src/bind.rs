//! Values of inputs: defaults, types, unknown and missing names.

use serde_json::{Map, Value};

use crate::mistake::instead;
use crate::workflow::{Input, InputKind, Workflow};

impl Workflow {
    /// Returns a value for every declared input, or one sentence for each mistake. An optional
    /// input without a value is null.
    pub fn bind(&self, given: &Map<String, Value>) -> Result<Map<String, Value>, Vec<String>> {
        let mut mistakes: Vec<String> = (given.keys())
            .filter(|name| self.input(name).is_none())
            .map(|name| self.unknown(name))
            .collect();
        let mut bound = Map::new();
        for input in &self.inputs {
            let name = &input.name;
            match given.get(name).or(input.default.as_ref()) {
                Some(value) if input.kind.accepts(value) => {
                    bound.insert(name.clone(), value.clone());
                }
                None if !input.required => {
                    bound.insert(name.clone(), Value::Null);
                }
                None => mistakes.push(format!("the input `{name}` is required")),
                Some(_) => mistakes.push(format!(
                    "the input `{name}` must be {}",
                    article(input.kind)
                )),
            }
        }
        if mistakes.is_empty() {
            Ok(bound)
        } else {
            Err(mistakes)
        }
    }

    /// Returns the value that a text of the command line stands for: by the input's type, lists and
    /// objects as JSON.
    pub fn input_from_text(&self, name: &str, text: &str) -> Result<Value, String> {
        let input = self.input(name).ok_or_else(|| self.unknown(name))?;
        let value = match input.kind {
            InputKind::String => Some(Value::String(text.to_owned())),
            InputKind::Integer | InputKind::Number | InputKind::Boolean => {
                serde_json::from_str(text.trim()).ok()
            }
            InputKind::List | InputKind::Object => {
                let parsed = serde_json::from_str(text);
                Some(parsed.map_err(|error| {
                    format!(
                        "the input `{name}` must be {} as JSON: {error}",
                        article(input.kind)
                    )
                })?)
            }
        };
        value
            .filter(|value| input.kind.accepts(value))
            .ok_or_else(|| {
                format!(
                    "the input `{name}` must be {}, not `{text}`",
                    article(input.kind)
                )
            })
    }

    fn input(&self, name: &str) -> Option<&Input> {
        self.inputs.iter().find(|input| input.name == name)
    }

    fn unknown(&self, name: &str) -> String {
        let known: Vec<&str> = self
            .inputs
            .iter()
            .map(|input| input.name.as_str())
            .collect();
        if known.is_empty() {
            format!("unknown input `{name}`; the workflow declares no inputs")
        } else {
            format!("unknown input `{name}`; {}", instead(name, &known))
        }
    }
}

/// Returns the type with its article.
pub(crate) fn article(kind: InputKind) -> &'static str {
    match kind {
        InputKind::String => "a string",
        InputKind::Integer => "an integer",
        InputKind::Number => "a number",
        InputKind::Boolean => "true or false",
        InputKind::List => "a list",
        InputKind::Object => "an object",
    }
}

#[cfg(test)]
mod tests;
