//! Finds the step for a request in its prompt.
//!
//! `#s:NAME` names a script, `#j:[…steps…]#` is one. The last of them in the newest prompt counts,
//! and the number of answers since that prompt is the step. So the same request gets the same step
//! on every retry and every server.

use std::collections::BTreeMap;

use super::{Script, Step};
use crate::conversation::{Conversation, own_words};

/// Result of the search for a script.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chosen {
    /// Name of the script, `json` for one in the prompt, `None` without a script.
    pub(crate) script: Option<String>,
    /// Number of answers since the prompt.
    pub(crate) index: usize,
    /// The step; `None` beyond the last one or without a script. An error if the script is not
    /// valid.
    pub(crate) step: Result<Option<Step>, String>,
}

/// Finds the step for the newest prompt.
pub(crate) fn choose(conversation: &Conversation, named: &BTreeMap<String, Script>) -> Chosen {
    let Some(position) = conversation.newest_prompt() else {
        return Chosen {
            script: None,
            index: 0,
            step: Ok(None),
        };
    };
    let index = conversation.answers_after(position);
    // Text that a product put around the message may quote old marks.
    let prompt = own_words(&conversation.messages[position].prompt());
    let (script, steps) = match last_mark(&prompt) {
        None => (None, Ok(Vec::new())),
        Some(Mark::Inline(steps)) => (Some("json".to_owned()), steps),
        Some(Mark::Named(name)) => {
            let steps = named.get(name).cloned().ok_or_else(|| unknown(name, named));
            (Some(name.to_owned()), steps)
        }
    };
    Chosen {
        script,
        index,
        step: steps.map(|steps| steps.into_iter().nth(index)),
    }
}

enum Mark<'a> {
    Named(&'a str),
    Inline(Result<Script, String>),
}

/// Returns the last mark. Reads from the front, because the prompt of a sub-agent inside an inline
/// script may contain marks that are not for this request.
fn last_mark(prompt: &str) -> Option<Mark<'_>> {
    let mut last = None;
    let mut rest = prompt;
    while let Some(at) = rest.find('#') {
        rest = &rest[at + 1..];
        if let Some(tail) = rest.strip_prefix("s:") {
            let end = tail.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'));
            let (name, after) = tail.split_at(end.unwrap_or(tail.len()));
            if !name.is_empty() {
                last = Some(Mark::Named(name));
            }
            rest = after;
        } else if let Some(tail) = rest.strip_prefix("j:").filter(|tail| tail.starts_with('[')) {
            let (steps, after) = inline(tail);
            last = Some(Mark::Inline(steps));
            rest = after;
        }
    }
    last
}

/// Parses the JSON itself instead of searching its end, because a text may contain `]#`.
fn inline(tail: &str) -> (Result<Script, String>, &str) {
    let mut parsed = serde_json::Deserializer::from_str(tail).into_iter::<Script>();
    let error = match parsed.next() {
        Some(Ok(steps)) => {
            let after = &tail[parsed.byte_offset()..];
            match after.strip_prefix('#') {
                Some(after) => return (Ok(steps), after),
                None => "it must end with `]#`".to_owned(),
            }
        }
        Some(Err(error)) => error.to_string(),
        None => "it is empty".to_owned(),
    };
    let after = tail.split_once("]#").map_or("", |(_, after)| after);
    (
        Err(format!("the script in the prompt is not valid: {error}")),
        after,
    )
}

fn unknown(name: &str, named: &BTreeMap<String, Script>) -> String {
    let names = named
        .keys()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    format!("no script is named `{name}`; there are: {names}")
}

#[cfg(test)]
#[path = "find_tests.rs"]
mod tests;
