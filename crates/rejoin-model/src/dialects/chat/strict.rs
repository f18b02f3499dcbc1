//! Checks if the real chat completions API would accept a history. Uses its own messages as far as
//! known.

use std::collections::BTreeSet;

use serde_json::Value;

/// Checks a history. Returns the error.
pub(super) fn check(body: &Value) -> Result<(), String> {
    let Some(messages) = body["messages"].as_array() else {
        return Err("Missing required parameter: 'messages'.".to_owned());
    };
    if messages.is_empty() {
        return Err("[] is too short - 'messages'".to_owned());
    }
    // Calls of the last assistant message, open and answered.
    let (mut open, mut answered) = (BTreeSet::new(), BTreeSet::new());
    for (position, message) in messages.iter().enumerate() {
        check_role(position, message)?;
        check_content(position, message)?;
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if answered.contains(id) {
                return Err(format!(
                    "Invalid parameter: 'tool_call_id' of 'messages.[{position}]' was answered \
                     before: {id}"
                ));
            }
            if !open.remove(id) {
                return Err(format!(
                    "Invalid parameter: messages with role 'tool' must be a response to a \
                     preceeding message with 'tool_calls'. ('messages.[{position}].role')"
                ));
            }
            answered.insert(id);
        } else {
            check_answered(&open)?;
            open = calls(message);
            answered.clear();
        }
    }
    check_answered(&open)
}

fn check_role(position: usize, message: &Value) -> Result<(), String> {
    const ROLES: [&str; 6] = [
        "system",
        "assistant",
        "user",
        "function",
        "tool",
        "developer",
    ];
    match message["role"].as_str() {
        Some(role) if ROLES.contains(&role) => Ok(()),
        Some(role) => Err(format!(
            "Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', \
             'function', 'tool', and 'developer'. ('messages[{position}].role')"
        )),
        None => Err(format!(
            "Missing required parameter: 'messages[{position}].role'."
        )),
    }
}

/// Checks the content. Only an assistant message may be empty, and only if it calls a tool.
fn check_content(position: usize, message: &Value) -> Result<(), String> {
    let content = &message["content"];
    let silent = message["role"] == "assistant" && !calls(message).is_empty();
    if content.is_string() || content.is_array() || (content.is_null() && silent) {
        return Ok(());
    }
    Err(format!(
        "Invalid value for 'content': expected a string, got {content}. \
         ('messages.[{position}].content')"
    ))
}

fn check_answered(open: &BTreeSet<&str>) -> Result<(), String> {
    if open.is_empty() {
        return Ok(());
    }
    let ids: Vec<&str> = open.iter().copied().collect();
    Err(format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to \
         each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        ids.join(", ")
    ))
}

fn calls(message: &Value) -> BTreeSet<&str> {
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    calls
        .map(|call| call["id"].as_str().unwrap_or_default())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(role: &str, content: &str) -> Value {
        json!({"role": role, "content": content})
    }

    fn called(ids: &[&str]) -> Value {
        let calls: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
        json!({"role": "assistant", "content": null, "tool_calls": calls})
    }

    fn result(id: &str) -> Value {
        json!({"role": "tool", "tool_call_id": id, "content": ""})
    }

    #[test]
    fn good_histories_are_taken() {
        let hi = said("user", "hi");
        let table = [
            vec![said("system", "s"), hi.clone(), hi.clone()],
            vec![hi.clone(), said("assistant", ""), hi.clone()],
            vec![
                hi.clone(),
                called(&["1", "2"]),
                result("2"),
                result("1"),
                hi.clone(),
            ],
            vec![hi, called(&["1"]), result("1"), called(&["2"]), result("2")],
        ];
        for messages in table {
            assert_eq!(check(&json!({"messages": messages})), Ok(()));
        }
    }

    #[test]
    fn bad_histories_are_refused() {
        let hi = said("user", "hi");
        let table = [
            (vec![], "too short"),
            (
                vec![json!(1)],
                "Missing required parameter: 'messages[0].role'",
            ),
            (vec![said("model", "x")], "Invalid value: 'model'"),
            (vec![json!({"role": "user"})], "expected a string, got null"),
            (vec![hi.clone(), result("1")], "must be a response"),
            (
                vec![hi.clone(), called(&["1"]), result("2")],
                "must be a response",
            ),
            (
                vec![hi.clone(), called(&["1"]), result("1"), result("1")],
                "answered before: 1",
            ),
            (
                vec![hi.clone(), called(&["1", "2"]), result("1")],
                "response messages: 2",
            ),
            (vec![hi.clone(), called(&["1"]), hi], "response messages: 1"),
        ];
        for (messages, expected) in table {
            let error = check(&json!({"messages": messages})).unwrap_err();
            assert!(error.contains(expected), "{messages:?}: {error}");
        }
        assert!(check(&json!(null)).is_err());
    }
}
