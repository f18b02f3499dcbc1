//! Checks if the real Responses API would accept a history. Uses its own messages as far as known.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Checks a history. Returns the error.
pub(super) fn check(body: &Value) -> Result<(), String> {
    let items = match &body["input"] {
        Value::String(_) => return Ok(()),
        Value::Array(items) if !items.is_empty() => items,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            return Err(
                "One of \"input\" or \"previous_response_id\" or 'prompt' or \
                        'conversation_id' must be provided."
                    .to_owned(),
            );
        }
    };
    let mut ids = BTreeSet::new();
    let mut calls = BTreeMap::new();
    for (position, item) in items.iter().enumerate() {
        check_role(position, item)?;
        if let Some(id) = item["id"].as_str().filter(|id| !ids.insert(*id)) {
            return Err(format!(
                "Duplicate item found with id {id}. Remove duplicate items from your input and try \
                 again."
            ));
        }
        check_tool(item, &mut calls)?;
    }
    match calls.into_iter().find(|(_, call)| !call.answered) {
        Some((id, call)) => Err(format!("No tool output found for {} {id}.", call.words)),
        None => Ok(()),
    }
}

fn check_role(position: usize, item: &Value) -> Result<(), String> {
    if !matches!(item["type"].as_str(), Some("message") | None) {
        return Ok(());
    }
    match item["role"].as_str() {
        Some("assistant" | "system" | "developer" | "user") => Ok(()),
        Some(role) => Err(format!(
            "Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'developer', \
             and 'user'. ('input[{position}].role')"
        )),
        None => Err(format!(
            "Missing required parameter: 'input[{position}].role'."
        )),
    }
}

struct Seen {
    /// Name of this kind of call in the API's messages.
    words: &'static str,
    answered: bool,
}

/// Matches calls and outputs by id, at any position, but the call must come first.
fn check_tool<'a>(item: &'a Value, calls: &mut BTreeMap<&'a str, Seen>) -> Result<(), String> {
    let kind = item["type"].as_str().unwrap_or_default();
    let words = match kind.strip_suffix("_output").unwrap_or(kind) {
        "function_call" => "function call",
        "custom_tool_call" => "custom tool call",
        "local_shell_call" => "local shell call",
        _ => return Ok(()),
    };
    let id = item["call_id"].as_str().unwrap_or_default();
    if !kind.ends_with("_output") {
        let answered = false;
        calls.insert(id, Seen { words, answered });
        return Ok(());
    }
    match calls.get_mut(id).filter(|call| call.words == words) {
        None => Err(format!(
            "No tool call found for {words} output with call_id {id}."
        )),
        Some(call) if call.answered => Err(format!(
            "Multiple tool outputs found for {words} with call_id {id}."
        )),
        Some(call) => {
            call.answered = true;
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(role: &str) -> Value {
        json!({"type": "message", "role": role, "content": "x"})
    }

    fn item(kind: &str, id: &str) -> Value {
        json!({"type": kind, "call_id": id})
    }

    #[test]
    fn good_histories_are_taken() {
        let (call, output) = ("function_call", "function_call_output");
        let table = [
            json!("hi"),
            json!([said("developer"), said("user"), {"role": "assistant", "content": "x"}]),
            json!([
                said("user"),
                item(call, "1"),
                item(call, "2"),
                item(output, "2"),
                item(output, "1")
            ]),
            json!([said("user"), item("custom_tool_call", "1"), item("custom_tool_call_output", "1"),
                {"type": "reasoning", "id": "rs_1"}, {"type": "web_search_call", "id": "ws_1"}]),
        ];
        for input in table {
            assert_eq!(check(&json!({"input": input})), Ok(()), "{input}");
        }
    }

    #[test]
    fn bad_histories_are_refused() {
        let (call, output) = ("function_call", "function_call_output");
        let twice = json!({"role": "user", "content": "x", "id": "msg_1"});
        let table = [
            (json!(null), "must be provided"),
            (json!([]), "must be provided"),
            (json!([7]), "Missing required parameter: 'input[0].role'"),
            (json!([said("tool")]), "Invalid value: 'tool'"),
            (json!([twice, twice]), "Duplicate item found with id msg_1"),
            (
                json!([item(output, "1")]),
                "No tool call found for function call output with call_id 1.",
            ),
            (
                json!([item(output, "1"), item(call, "1")]),
                "No tool call found",
            ),
            (
                json!([item("custom_tool_call", "1"), item(output, "1")]),
                "No tool call found",
            ),
            (
                json!([item(call, "1"), item(output, "1"), item(output, "1")]),
                "Multiple tool outputs",
            ),
            (
                json!([item(call, "1"), said("user")]),
                "No tool output found for function call 1.",
            ),
        ];
        for (input, expected) in table {
            let error = check(&json!({"input": input})).unwrap_err();
            assert!(error.contains(expected), "{input}: {error}");
        }
    }
}
