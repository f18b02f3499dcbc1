//! The CLI's own types, limited to the fields that are read. Unknown fields are expected: each
//! version adds some.

use std::collections::BTreeMap;

use rejoin_core::{Counts, Usage};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Line {
    Init {
        session_id: Option<String>,
        model: Option<String>,
    },
    Message {
        role: Option<String>,
        #[serde(default)]
        content: String,
    },
    ToolUse {
        tool_name: String,
        tool_id: String,
        #[serde(default)]
        parameters: Value,
    },
    ToolResult {
        tool_id: String,
        status: Option<String>,
        output: Option<String>,
        error: Option<ErrorBody>,
    },
    Error {
        severity: Option<String>,
        #[serde(default)]
        message: String,
    },
    Result(Finished),
}

#[derive(Deserialize, Clone, Default)]
pub(super) struct ErrorBody {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    #[serde(default)]
    pub(super) message: String,
    /// HTTP status of the API, if it is reported separately.
    #[serde(skip)]
    pub(super) status: Option<u64>,
}

#[derive(Deserialize, Default)]
pub(super) struct Finished {
    pub(super) status: Option<String>,
    pub(super) error: Option<ErrorBody>,
    #[serde(default)]
    pub(super) stats: Stats,
}

/// Token counts of this process alone, including calls of the model that chooses the model.
#[derive(Deserialize, Default)]
pub(super) struct Stats {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cached: Option<u64>,
    #[serde(default)]
    pub(super) models: BTreeMap<String, ModelStats>,
}

#[derive(Deserialize, Default)]
pub(super) struct ModelStats {
    pub(super) output_tokens: Option<u64>,
}

impl Stats {
    /// Creates counts from the only numbers that are reported. `models` are the output tokens of
    /// each model.
    pub(super) fn of(input: u64, output: u64, models: impl Iterator<Item = (String, u64)>) -> Self {
        let spoke = |output| ModelStats {
            output_tokens: Some(output),
        };
        Self {
            input_tokens: Some(input),
            output_tokens: Some(output),
            cached: None,
            models: models.map(|(name, output)| (name, spoke(output))).collect(),
        }
    }

    pub(super) fn usage(&self) -> Usage {
        let cached = self.cached.unwrap_or(0);
        // The CLI does not count cache writes.
        Usage::from(Counts {
            input: self.input_tokens.map(|input| input.saturating_sub(cached)),
            cache_read: self.cached,
            cache_write: None,
            output: self.output_tokens,
        })
    }
}
