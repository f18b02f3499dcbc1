//! Lines of the Agent Client Protocol (JSON-RPC), limited to the fields that are used.

use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
pub(super) struct PermissionRequest {
    #[serde(default)]
    pub(super) options: Vec<PermissionOption>,
    #[serde(rename = "toolCall")]
    pub(super) call: Call,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionOption {
    pub(super) option_id: String,
    #[serde(default)]
    pub(super) kind: String,
}

#[derive(Deserialize)]
#[serde(tag = "sessionUpdate")]
pub(super) enum Update {
    #[serde(rename = "agent_message_chunk")]
    StoredText { content: Piece },
    #[serde(rename = "agent_thought_chunk")]
    Thought { content: Piece },
    #[serde(rename = "tool_call", alias = "tool_call_update")]
    Called(Call),
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
pub(super) struct Piece {
    #[serde(default)]
    pub(super) text: String,
}

/// A tool call. The CLI does not report its arguments, only the parts that an editor would show.
#[derive(Deserialize)]
pub(super) struct Call {
    #[serde(rename = "toolCallId")]
    pub(super) id: String,
    pub(super) status: Option<String>,
    pub(super) title: Option<String>,
    pub(super) kind: Option<String>,
    #[serde(default)]
    pub(super) content: Vec<Shown>,
    #[serde(default)]
    pub(super) locations: Vec<Location>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Shown {
    #[serde(rename = "content")]
    Text { content: Piece },
    Diff {
        path: String,
        #[serde(rename = "oldText")]
        old: Option<String>,
        #[serde(rename = "newText", default)]
        new: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
pub(super) struct Location {
    pub(super) path: String,
}

pub(super) fn request(id: &str, method: &str, params: &Value) -> String {
    let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    format!("{line}\n")
}

pub(super) fn response(id: &Value, result: &Value) -> String {
    format!(
        "{}\n",
        json!({"jsonrpc": "2.0", "id": id, "result": result})
    )
}

pub(super) fn refusal(id: &Value, error: &Value) -> String {
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "error": error}))
}
