//! Messages of the server, limited to the fields that are used. Unknown fields are ignored.

use rejoin_core::QuestionOption;
use serde::Deserialize;
use serde_json::Value;

use super::super::wire::Tokens;

#[derive(Deserialize, Default)]
pub(super) struct RpcError {
    #[serde(default)]
    pub(super) message: String,
    #[serde(default)]
    pub(super) data: Value,
}

/// Response to `thread/start` and `thread/resume`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Opened {
    pub(super) thread: Named,
    pub(super) model: Option<String>,
    #[serde(default)]
    pub(super) approval_policy: Value,
    #[serde(default)]
    pub(super) approvals_reviewer: Value,
    #[serde(default)]
    pub(super) sandbox: Value,
}

#[derive(Deserialize)]
pub(super) struct Named {
    pub(super) id: String,
}

#[derive(Deserialize)]
pub(super) struct WithTurn {
    pub(super) turn: Turn,
}

#[derive(Deserialize)]
pub(super) struct Turn {
    pub(super) id: String,
    #[serde(default)]
    pub(super) status: String,
    pub(super) error: Option<ErrorBody>,
}

#[derive(Deserialize)]
pub(super) struct ErrorBody {
    #[serde(default)]
    pub(super) message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TokenUsageUpdate {
    pub(super) turn_id: String,
    pub(super) token_usage: Counts,
}

#[derive(Deserialize)]
pub(super) struct Counts {
    pub(super) total: Tokens,
}

/// Parameters of a request for approval or input.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApprovalParams {
    pub(super) thread_id: String,
    pub(super) item_id: String,
    pub(super) kind: Option<String>,
    pub(super) command: Option<String>,
    pub(super) cwd: Option<String>,
    pub(super) reason: Option<String>,
    #[serde(default)]
    pub(super) questions: Vec<Item>,
}

/// A question of `request_user_input`.
#[derive(Deserialize)]
pub(super) struct Item {
    pub(super) id: String,
    pub(super) question: String,
    pub(super) options: Option<Vec<QuestionOption>>,
}
