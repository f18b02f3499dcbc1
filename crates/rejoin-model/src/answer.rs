//! Resolves a script step for one request: ids, token counts and pieces are fixed here, and the
//! dialect only has to format them.

use std::{
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use serde_json::Value;

use crate::{
    conversation::Conversation,
    script::{Step, StepUsage},
};

/// Response as the caller experiences it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    /// The connection closes without a response.
    Refused,
    Failed(Fault),
    Answered(Box<Answer>),
}

/// A failure that the API reports, before the dialect formats it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) status: u16,
    /// Error type in the API's words. `None`: the dialect's usual one for the status.
    pub(crate) kind: Option<String>,
    pub(crate) message: String,
    pub(crate) retry_after: Option<u64>,
}

impl Fault {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            ..Self::default()
        }
    }
}

/// A message of the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) thinking: Option<String>,
    /// Text, in the pieces in which it is streamed.
    pub(crate) pieces: Vec<String>,
    pub(crate) calls: Vec<Call>,
    pub(crate) usage: Usage,
    pub(crate) delay: Duration,
    pub(crate) ending: Ending,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) input: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) input: u64,
    pub(crate) cache_read: u64,
    pub(crate) cache_creation: u64,
    pub(crate) output: u64,
}

/// End of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Complete,
    /// Nothing after the opening. The connection closes when the time is over.
    Hangs(Duration),
    /// The connection drops after that many pieces of text.
    CutAfter(usize),
    /// The stream ends after the text as if nothing more were to come.
    Unfinished,
}

/// Resolves a step for one request.
pub(crate) fn settle(
    step: Step,
    conversation: &Conversation,
    usage: &StepUsage,
    ids: &Ids,
) -> Outcome {
    if step.refuse {
        return Outcome::Refused;
    }
    if let Some(status) = step.status {
        let message = step
            .message
            .unwrap_or_else(|| format!("scripted failure {status}"));
        let Step {
            error: kind,
            retry_after,
            ..
        } = step;
        return Outcome::Failed(Fault {
            status,
            kind,
            message,
            retry_after,
        });
    }
    let ending = match (step.hang_ms, step.cut_after) {
        (Some(ms), _) => Ending::Hangs(Duration::from_millis(ms)),
        (None, Some(pieces)) => Ending::CutAfter(pieces),
        (None, None) if step.unfinished => Ending::Unfinished,
        (None, None) => Ending::Complete,
    };
    let recalled = step.recall.then(|| conversation.recall());
    let text = [step.text, recalled]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("\n");
    let calls = step.tools.into_iter();
    Outcome::Answered(Box::new(Answer {
        id: ids.next(),
        model: conversation.model.clone(),
        thinking: step.thinking.filter(|thinking| !thinking.is_empty()),
        pieces: pieces(&text, step.chunks.unwrap_or(2)),
        calls: calls
            .map(|tool| Call {
                id: ids.next(),
                name: tool.name,
                input: tool.input,
            })
            .collect(),
        usage: Usage {
            output: step.output_tokens.unwrap_or(25),
            ..input_usage(step.usage.as_ref(), usage, conversation.messages.len())
        },
        delay: Duration::from_millis(step.delay_ms.unwrap_or(0)),
        ending,
    }))
}

/// Returns the counts of the step, else of the server, else a plausible default, which grows with
/// the history so that a resumed session can be told from a fresh one.
fn input_usage(step: Option<&StepUsage>, server: &StepUsage, messages: usize) -> Usage {
    let pick = |field: fn(&StepUsage) -> Option<u64>, default| {
        step.and_then(field)
            .or_else(|| field(server))
            .unwrap_or(default)
    };
    Usage {
        input: pick(|usage| usage.input_tokens, 10),
        cache_read: pick(
            |usage| usage.cache_read_input_tokens,
            1000 * messages as u64,
        ),
        cache_creation: pick(|usage| usage.cache_creation_input_tokens, 100),
        output: 0,
    }
}

/// Splits text into at most `count` pieces of equal length, between characters.
fn pieces(text: &str, count: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let size = characters.len().div_ceil(count.max(1)).max(1);
    characters
        .chunks(size)
        .map(|piece| piece.iter().collect())
        .collect()
}

/// Generator of ids that no other answer has, of this server or of an earlier one: a resumed
/// session contains the old ones.
#[derive(Debug)]
pub(crate) struct Ids {
    server: u64,
    given: AtomicU64,
}

impl Ids {
    pub(crate) fn new() -> Self {
        Self {
            server: RandomState::new().hash_one(()),
            given: AtomicU64::new(1),
        }
    }

    pub(crate) fn next(&self) -> String {
        format!(
            "{:016x}{:08x}",
            self.server,
            self.given.fetch_add(1, Ordering::Relaxed)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_lose_nothing() {
        let table: [(&str, usize, &[&str]); 6] = [
            ("", 3, &[]),
            ("abcd", 2, &["ab", "cd"]),
            ("abcde", 2, &["abc", "de"]),
            ("ab", 9, &["a", "b"]),
            ("äöü", 0, &["äöü"]),
            ("äöü", 3, &["ä", "ö", "ü"]),
        ];
        for (text, count, expected) in table {
            assert_eq!(pieces(text, count), expected, "{text} in {count}");
        }
    }

    #[test]
    fn usage_comes_from_the_step_then_the_server_then_the_default() {
        let step = StepUsage {
            input_tokens: Some(5),
            ..StepUsage::default()
        };
        let server = StepUsage {
            input_tokens: Some(7),
            cache_creation_input_tokens: Some(8),
            ..StepUsage::default()
        };
        let expected = Usage {
            input: 5,
            cache_read: 3000,
            cache_creation: 8,
            output: 0,
        };
        assert_eq!(input_usage(Some(&step), &server, 3), expected);
    }
}
