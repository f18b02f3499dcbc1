//! The same session with every result of a tool in it once, and none without its call.
//!
//! 0.61.0 notes a result with its call and again as a message of its own, and on a resume sends
//! both: the API then refuses the history ("the number of function response parts is equal to the
//! number of function call parts"). The list is only ever set anew, never changed, so a line that
//! sets it without the second ones is all it takes.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::history::History;
use super::record::{self, Message, Record};

/// The line to append; none: nothing is there twice, or it cannot be read.
pub(in crate::gemini) fn mend(session: &[u8]) -> Option<Vec<u8>> {
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

/// With the results of calls that are still open; none: nothing is left of it.
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

/// Images that a tool gave back follow its result.
fn only_new(parts: &mut Vec<Value>, open: &mut HashSet<String>) {
    let mut keep = true;
    parts.retain(|part| {
        if let Some(id) = part["functionResponse"]["id"].as_str() {
            keep = open.remove(id);
        }
        keep
    });
}
