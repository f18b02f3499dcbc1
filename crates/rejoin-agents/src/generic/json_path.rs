//! Location of a value in a line of JSON: `TYPE /pointer`, or `/pointer` in a line of any type.

use std::str::FromStr;

use serde_json::Value;

/// Location of a value in lines of a certain type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath {
    of_type: Option<String>,
    pointer: String,
}

impl FromStr for JsonPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (of_type, pointer) = match text.split_once(char::is_whitespace) {
            Some((of_type, pointer)) => (Some(of_type.to_owned()), pointer.trim()),
            None => (None, text),
        };
        if pointer.starts_with('/') {
            return Ok(Self {
                of_type,
                pointer: pointer.to_owned(),
            });
        }
        Err(format!(
            "`{text}` is no place: write /key/key, or TYPE /key/key for lines with that `type`"
        ))
    }
}

impl JsonPath {
    /// Returns the value at this location. None if the line has another type or no value there.
    pub fn find<'v>(&self, line: &'v Value) -> Option<&'v Value> {
        let is_it = match &self.of_type {
            Some(wanted) => [&line["type"], &line["role"]]
                .iter()
                .any(|found| found.as_str() == Some(wanted)),
            None => true,
        };
        line.pointer(&self.pointer).filter(|_| is_it)
    }

    pub(super) fn text(&self, line: &Value) -> Option<String> {
        match self.find(line)? {
            Value::String(text) => Some(text.clone()),
            Value::Array(parts) => {
                // Blocks of text, as in many APIs.
                let texts = parts.iter().filter_map(|part| part["text"].as_str());
                Some(texts.collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_in_lines() {
        let line =
            json!({"type": "result", "a": {"b": "x"}, "c": [{"text": "y"}, {"text": "z"}, 1]});
        let text = |pick: &str| pick.parse::<JsonPath>().unwrap().text(&line);
        assert_eq!(text("/a/b").as_deref(), Some("x"));
        assert_eq!(text("result /a/b").as_deref(), Some("x"));
        assert_eq!(text("result /c").as_deref(), Some("yz"));
        assert_eq!(text("other /a/b"), None);
        assert_eq!(text("/a/nope"), None);
        for bad in ["", "a", "result a/b", "result"] {
            assert!(bad.parse::<JsonPath>().is_err(), "{bad}");
        }
    }
}
