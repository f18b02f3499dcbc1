//! Checks if the real Messages API would accept a history.
//!
//! A lenient model hides a broken history until a user meets the real API. Known messages are the
//! API's own, because CLIs examine them.

use std::collections::BTreeSet;

use serde_json::Value;

/// Checks a history. Returns the error in the API's words.
pub(super) fn check(body: &Value) -> Result<(), String> {
    let Some(messages) = body["messages"].as_array() else {
        return Err("messages: Input should be a valid list".to_owned());
    };
    if messages.is_empty() {
        return Err("messages: at least one message is required".to_owned());
    }
    for (position, message) in messages.iter().enumerate() {
        check_role(position, message)?;
        check_content(position, message, position + 1 == messages.len())?;
    }
    check_tools(&turns(messages))
}

/// Checks the role. Current CLIs send `system` between the messages, and the API accepts it.
fn check_role(position: usize, message: &Value) -> Result<(), String> {
    match message["role"].as_str() {
        Some("user" | "assistant" | "system") => Ok(()),
        _ => Err(format!(
            "messages.{position}.role: Input should be 'user' or 'assistant'"
        )),
    }
}

fn check_content(position: usize, message: &Value, last: bool) -> Result<(), String> {
    let check_text = |text: &str| {
        if text.is_empty() {
            Err(format!(
                "messages.{position}: text content blocks must be non-empty"
            ))
        } else if text.trim().is_empty() {
            let rule = "text content blocks must contain non-whitespace text";
            Err(format!("messages.{position}: {rule}"))
        } else {
            Ok(())
        }
    };
    let empty = match &message["content"] {
        Value::String(text) if text.is_empty() => true,
        Value::String(text) => return check_text(text),
        Value::Array(blocks) => {
            for block in blocks.iter().filter(|block| block["type"] == "text") {
                check_text(block["text"].as_str().unwrap_or_default())?;
            }
            blocks.is_empty()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            return Err(format!(
                "messages.{position}.content: Input should be a valid list"
            ));
        }
    };
    // Claude Code 2.1.325 sets the effort of the following messages this way after a compaction.
    let control = message["role"] == "system" && message["output_config"].is_object();
    if empty && !control && !(last && message["role"] == "assistant") {
        return Err(format!(
            "messages.{position}: all messages must have non-empty content except for the \
             optional final assistant message"
        ));
    }
    Ok(())
}

/// Consecutive messages of one side: the API joins messages of one role, and system messages may
/// come between a call and its result.
#[derive(Default)]
struct Turn<'a> {
    role: &'a str,
    /// Position of its last message.
    position: usize,
    calls: BTreeSet<&'a str>,
    results: Vec<(String, &'a str)>,
}

fn turns(messages: &[Value]) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for (position, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "system" {
            continue;
        }
        if turns.last().is_none_or(|turn| turn.role != role) {
            turns.push(Turn {
                role,
                ..Turn::default()
            });
        }
        let Some(turn) = turns.last_mut() else {
            continue;
        };
        turn.position = position;
        let blocks = message["content"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        for (at, block) in blocks.iter().enumerate() {
            match block["type"].as_str() {
                Some("tool_use") => {
                    turn.calls.insert(block["id"].as_str().unwrap_or_default());
                }
                Some("tool_result") => turn.results.push((
                    format!("messages.{position}.content.{at}"),
                    block["tool_use_id"].as_str().unwrap_or_default(),
                )),
                _ => {}
            }
        }
    }
    turns
}

fn check_tools(turns: &[Turn<'_>]) -> Result<(), String> {
    let mut open = BTreeSet::new();
    for (at, turn) in turns.iter().enumerate() {
        let mut seen = BTreeSet::new();
        for (place, id) in &turn.results {
            if !open.contains(id) {
                return Err(format!(
                    "{place}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each \
                     `tool_result` block must have a corresponding `tool_use` block in the \
                     previous message."
                ));
            }
            if !seen.insert(*id) {
                return Err(format!(
                    "{place}: each tool_use must have a single result. Found multiple \
                     `tool_result` blocks with id: {id}"
                ));
            }
        }
        let answered: BTreeSet<&str> = turns
            .get(at + 1)
            .into_iter()
            .flat_map(|next| &next.results)
            .map(|(_, id)| *id)
            .collect();
        let missing: Vec<&str> = turn.calls.difference(&answered).copied().collect();
        if !missing.is_empty() {
            return Err(format!(
                "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately \
                 after: {}. Each `tool_use` block must have a corresponding `tool_result` block in \
                 the next message.",
                turn.position,
                missing.join(", ")
            ));
        }
        open.clone_from(&turn.calls);
    }
    Ok(())
}

#[cfg(test)]
#[path = "strict_tests.rs"]
mod tests;
