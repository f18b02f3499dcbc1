//! The CLI's own types, limited to the fields that are read. Unknown fields are expected: each
//! version adds some.

use std::collections::BTreeMap;

use rejoin_core::{Counts, Usage};
use serde::Deserialize;
use serde_json::Value;

/// Model name in lines that the CLI wrote itself.
pub(super) const SYNTHETIC: &str = "<synthetic>";

#[derive(Deserialize)]
pub(super) struct LineHeader {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) subtype: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Init {
    pub(super) session_id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) claude_code_version: Option<String>,
    #[serde(rename = "permissionMode")]
    pub(super) permission_mode: Option<String>,
    pub(super) tools: Option<Vec<String>>,
}

/// An `assistant` or `user` line.
#[derive(Deserialize)]
pub(super) struct MessageLine {
    pub(super) message: Message,
    pub(super) parent_tool_use_id: Option<String>,
    /// Kind of an API failure: `rate_limit`, `authentication_failed`, …
    pub(super) error: Option<String>,
    /// Only in 2.1.325.
    pub(super) is_api_error_message: Option<bool>,
    pub(super) api_error_status: Option<u64>,
    pub(super) tool_use_result: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Message {
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) content: Option<Content>,
    pub(super) usage: Option<Tokens>,
}

impl Message {
    pub(super) fn blocks(self) -> Vec<Block> {
        match self.content {
            Some(Content::Blocks(blocks)) => blocks,
            Some(Content::Text(text)) => vec![Block::Text { text }],
            None => vec![],
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block {
    Text {
        text: String,
    },
    Thinking {
        thinking: String,
    },
    ToolUse {
        id: String,
        name: String,
        #[serde(default)]
        input: Value,
    },
    ToolResult {
        tool_use_id: String,
        #[serde(default)]
        content: Value,
        is_error: Option<bool>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize, Clone, Copy, Default)]
pub(super) struct Tokens {
    #[serde(rename = "input_tokens")]
    input: Option<u64>,
    #[serde(rename = "cache_creation_input_tokens")]
    cache_write: Option<u64>,
    #[serde(rename = "cache_read_input_tokens")]
    cache_read: Option<u64>,
    #[serde(rename = "output_tokens")]
    output: Option<u64>,
}

impl From<Tokens> for Usage {
    fn from(tokens: Tokens) -> Self {
        Self::from(Counts {
            input: tokens.input,
            cache_read: tokens.cache_read,
            cache_write: tokens.cache_write,
            output: tokens.output,
        })
    }
}

#[derive(Deserialize, Default)]
pub(super) struct Finished {
    pub(super) subtype: Option<String>,
    pub(super) is_error: Option<bool>,
    pub(super) api_error_status: Option<u64>,
    pub(super) num_turns: Option<u64>,
    pub(super) result: Option<String>,
    pub(super) errors: Option<Vec<String>>,
    pub(super) terminal_reason: Option<String>,
    pub(super) stop_reason: Option<String>,
    pub(super) total_cost_usd: Option<f64>,
    pub(super) usage: Option<Tokens>,
    #[serde(rename = "modelUsage")]
    pub(super) models: Option<BTreeMap<String, ModelUse>>,
    pub(super) permission_denials: Option<Vec<Denial>>,
    /// The deferred call, if the stop reason is `tool_deferred`.
    pub(super) deferred_tool_use: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct ModelUse {
    #[serde(rename = "contextWindow")]
    pub(super) window: Option<u64>,
}

/// Denied call, in `result`, and as `system/permission_denied` without the input.
#[derive(Deserialize)]
pub(super) struct Denial {
    pub(super) tool_name: String,
    pub(super) tool_use_id: Option<String>,
    #[serde(default)]
    pub(super) tool_input: Value,
    pub(super) message: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ControlRequest {
    pub(super) request_id: String,
    pub(super) request: Wanted,
}

#[derive(Deserialize)]
pub(super) struct Wanted {
    pub(super) subtype: String,
    pub(super) tool_name: Option<String>,
    pub(super) tool_use_id: Option<String>,
    #[serde(default)]
    pub(super) input: Value,
    /// Rules that the CLI's own interface would offer as "do not ask again".
    pub(super) permission_suggestions: Option<Vec<Value>>,
}

/// Raw event of the API, with `--include-partial-messages`; main thread only (both versions).
#[derive(Deserialize)]
pub(super) struct Partial {
    pub(super) event: PartialEvent,
    pub(super) parent_tool_use_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum PartialEvent {
    ContentBlockDelta {
        delta: Delta,
    },
    MessageDelta {
        usage: Option<Tokens>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Delta {
    TextDelta {
        text: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
pub(super) struct Retry {
    pub(super) attempt: Option<u64>,
    pub(super) max_retries: Option<u64>,
    pub(super) error_status: Option<u64>,
    pub(super) error: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Boundary {
    #[serde(default)]
    pub(super) compact_metadata: Compacted,
}

#[derive(Deserialize, Default)]
pub(super) struct Compacted {
    pub(super) trigger: Option<String>,
    pub(super) pre_tokens: Option<u64>,
    pub(super) post_tokens: Option<u64>,
}

/// Never captured (no subscription available): derived from the binaries of both versions.
#[derive(Deserialize)]
pub(super) struct RateLimit {
    pub(super) rate_limit_info: LimitInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LimitInfo {
    pub(super) status: Option<String>,
    pub(super) resets_at: Option<f64>,
    pub(super) rate_limit_type: Option<String>,
}
