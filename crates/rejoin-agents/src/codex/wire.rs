//! Lines of `codex exec --json`, limited to the fields that are used. Unknown fields are ignored.

use rejoin_core::{Counts, Usage};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
pub(super) struct LineHeader {
    #[serde(rename = "type")]
    pub(super) kind: String,
}

#[derive(Deserialize)]
pub(super) struct ThreadStarted {
    pub(super) thread_id: String,
}

#[derive(Deserialize)]
pub(super) struct ItemLine {
    pub(super) item: Item,
}

/// An item. The number in its id counts from zero in every process.
#[derive(Deserialize)]
pub(super) struct Item {
    #[serde(default)]
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) text: Option<String>,
    pub(super) message: Option<String>,
    pub(super) status: Option<String>,
    /// All fields that differ by kind.
    #[serde(flatten)]
    pub(super) rest: Value,
}

#[derive(Deserialize)]
pub(super) struct TurnCompleted {
    pub(super) usage: Option<Tokens>,
}

#[derive(Deserialize)]
pub(super) struct TurnFailed {
    pub(super) error: ErrorBody,
}

#[derive(Deserialize)]
pub(super) struct ErrorBody {
    pub(super) message: String,
}

/// Token counts. The input includes the cached tokens. `codex app-server` writes the fields in
/// camelCase.
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
