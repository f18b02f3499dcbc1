//! Scripts: the model's actions at each of its turns, as data that fits into a prompt.

mod builtin;
mod find;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use builtin::builtin_scripts;
pub(crate) use find::choose;

/// The steps of one script, one per answer of the model.
pub type Script = Vec<Step>;

/// An answer of the model, or a failure to give one.
///
/// Unknown fields are an error: a misspelt `delay` without effect would make a test pass for the
/// wrong reason.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Step {
    /// Text of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Number of pieces in which the text is streamed (2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunks: Option<usize>,
    /// Wait after each piece of text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// Thinking in front of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// Tools the model calls, all in one answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolCall>,
    /// Token counts of the input, field by field over the defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<StepUsage>,
    /// Token count of the output (25).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// HTTP status of a failure. The other fields of the answer are then ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Type of the failure in the API's words. Derived from the status if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Message of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Seconds for the failure's `retry-after` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// Begin the answer, then be silent for this time and close the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hang_ms: Option<u64>,
    /// Drop the connection after that many pieces of text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_after: Option<usize>,
    /// End the stream properly after the text, but without the answer's own end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    /// Close the connection without an answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub refuse: bool,
    /// Answer with the text of every user message in the request, one per line.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recall: bool,
}

impl Step {
    /// Creates a step with only a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: Some(text.into()),
            ..Self::default()
        }
    }

    /// Creates a step that fails with this HTTP status, with the API's usual type and message.
    pub fn status(status: u16) -> Self {
        Self {
            status: Some(status),
            ..Self::default()
        }
    }
}

/// A tool call in a script. Its id is generated when it is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    pub name: String,
    #[serde(default = "empty_object")]
    pub input: Value,
}

impl ToolCall {
    pub fn new(name: impl Into<String>, input: Value) -> Self {
        Self {
            name: name.into(),
            input,
        }
    }
}

/// Token counts of the input. Absent ones keep their default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StepUsage {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read_input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_creation_input_tokens: Option<u64>,
}

fn empty_object() -> Value {
    Value::Object(serde_json::Map::new())
}
