//! Repair of a session so that every tool result occurs once, and none without its call.
//!
//! 0.61.0 stores a result with its call and again as a message of its own, and on a resume sends
//! both: the API then refuses the history ("the number of function response parts is equal to the
//! number of function call parts"). Lines of a session replace the list and never change it in
//! place, so one line that sets it without the duplicates is enough.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::history::History;
use super::record::{self, Message, Record};

/// Returns the line to append. None if there are no duplicates, or if the session cannot be read.
pub(in crate::gemini) fn repair(session: &[u8]) -> Option<Vec<u8>> {
    let mut history = History::default();
    for line in session.split(|b| *b == b'\n') {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match record::read(line)? {
            Record::Header { messages, .. } => {
                for message in messages {
                    history.add(message);
                }
            }
            Record::Message(message) => history.add(message),
            Record::Messages(messages) => history.replace(messages),
            Record::Rewind(id) => history.rewind(&id),
            Record::Other => {}
        }
    }
    if !history.repeats() {
        return None;
    }
    let mut open = history.calls();
    let kept: Vec<Value> = history
        .messages()
        .filter_map(|message| once(message, &mut open))
        .collect();
    let line = json!({"$set": {"messages": kept}});
    Some(format!("{line}\n").into_bytes())
}

/// Removes results that are not of an open call. None if nothing of the message is left.
fn once(message: &Message, open: &mut HashSet<String>) -> Option<Value> {
    let mut value = message.value().clone();
    let calls = value.get_mut("toolCalls").and_then(Value::as_array_mut);
    for call in calls.into_iter().flatten() {
        match call.get_mut("result") {
            Some(Value::Array(parts)) => only_new(parts, open),
            Some(result) if !result.is_null() => {
                open.remove(call["id"].as_str().unwrap_or_default());
            }
            Some(_) | None => {}
        }
    }
    let Some(parts) = value.get_mut("content").and_then(Value::as_array_mut) else {
        return Some(value);
    };
    let had = parts.len();
    only_new(parts, open);
    (had == 0 || !parts.is_empty()).then_some(value)
}

/// Removes known results, each with the images after it, which belong to the same tool call.
fn only_new(parts: &mut Vec<Value>, open: &mut HashSet<String>) {
    let mut keep = true;
    parts.retain(|part| {
        if let Some(id) = part["functionResponse"]["id"].as_str() {
            keep = open.remove(id);
        }
        keep
    });
}
