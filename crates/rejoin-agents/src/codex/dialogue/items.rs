//! Items of a turn. They are the items of `exec --json` with other names.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::wire::Item;

/// Converts an item into the form that `exec` prints.
pub(super) fn as_printed(item: &Value) -> Option<Item> {
    let fields = item.as_object()?.iter();
    let printed: Map<String, Value> = fields
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (snake(name), value.clone()))
        .collect();
    let mut item = Item::deserialize(Value::Object(printed)).ok()?;
    item.kind = snake(&item.kind);
    Some(item)
}

/// Converts `commandExecution` into `command_execution`.
fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// Returns the visible reasoning of the model.
pub(super) fn thoughts(item: &Item) -> Option<String> {
    let parts = |field: &str| item.rest[field].as_array().cloned().unwrap_or_default();
    let summary = parts("summary");
    let told = if summary.is_empty() {
        parts("content")
    } else {
        summary
    };
    let texts: Vec<&str> = told.iter().filter_map(Value::as_str).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_those_of_exec() {
        let item = json!({"type": "commandExecution", "id": "c", "status": "inProgress",
            "aggregatedOutput": "x", "exitCode": null});
        let item = as_printed(&item).unwrap();
        assert_eq!(
            (item.kind.as_str(), item.id.as_str()),
            ("command_execution", "c")
        );
        assert_eq!(item.rest, json!({"aggregated_output": "x"}));
        assert!(as_printed(&json!(7)).is_none() && as_printed(&json!({"id": "c"})).is_none());
    }
}
