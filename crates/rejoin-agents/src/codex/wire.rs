//! The lines of `codex exec --json`, as far as they are used. Unknown fields are ignored.

use rejoin_core::{Counts, Usage};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
pub(super) struct Head {
    #[serde(rename = "type")]
    pub(super) kind: String,
}

#[derive(Deserialize)]
pub(super) struct Thread {
    pub(super) thread_id: String,
}

#[derive(Deserialize)]
pub(super) struct WithItem {
    pub(super) item: Item,
}

/// `N` of its id counts from zero in every process.
#[derive(Deserialize)]
pub(super) struct Item {
    #[serde(default)]
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) text: Option<String>,
    pub(super) message: Option<String>,
    pub(super) status: Option<String>,
    /// Everything that differs from kind to kind.
    #[serde(flatten)]
    pub(super) rest: Value,
}

#[derive(Deserialize)]
pub(super) struct Completed {
    pub(super) usage: Option<Tokens>,
}

#[derive(Deserialize)]
pub(super) struct Failed {
    pub(super) error: Message,
}

#[derive(Deserialize)]
pub(super) struct Message {
    pub(super) message: String,
}

/// Of what a call is about, in a note.
const SUBJECT_CHARS: usize = 120;

pub(super) fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= SUBJECT_CHARS {
        return line;
    }
    line.chars().take(SUBJECT_CHARS - 1).chain(['…']).collect()
}

/// What was cached is part of the input here. The server writes the names otherwise.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    #[serde(rename = "input_tokens", alias = "inputTokens")]
    pub(super) input: u64,
    #[serde(rename = "cached_input_tokens", alias = "cachedInputTokens")]
    cached: Option<u64>,
    #[serde(rename = "cache_write_input_tokens", alias = "cacheWriteInputTokens")]
    written: Option<u64>,
    #[serde(rename = "output_tokens", alias = "outputTokens")]
    output: u64,
    #[serde(rename = "total_tokens", alias = "totalTokens")]
    pub(super) total: u64,
}

impl From<Tokens> for Usage {
    fn from(tokens: Tokens) -> Self {
        let (cached, written) = (tokens.cached.unwrap_or(0), tokens.written.unwrap_or(0));
        let cached = cached.saturating_add(written);
        Self::from(Counts {
            input: Some(tokens.input.saturating_sub(cached)),
            cache_read: tokens.cached,
            cache_write: tokens.written,
            output: Some(tokens.output),
        })
    }
}
