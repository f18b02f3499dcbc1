//! The rows of an archive. They do not name their conversation, because all belong to the same one.
//!
//! Left out on purpose: events (a store's own journal, and the larger part of it), queued turns
//! (they would run in two places), and data that only this machine can use (holders, plans of
//! attempts).

use std::collections::BTreeMap;

use rejoin_core::{
    AgentName, Context, ConversationId, Failure, MessageId, MessageState, PinId, Role, Scope,
    SessionId, SnapshotId, ToolNote, TurnId, Usage,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::conversations::AgentSettings;
use crate::snapshots::Manifest;
use crate::turns::TurnRecord;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    pub conversation: ConversationId,
    /// Version of the rejoin that wrote the archive.
    pub rejoin: String,
    pub machine: String,
    pub made_at: i64,
    pub generation: Generation,
}

/// Generation of a bundle: its number, and the end of the archive it came from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generation {
    pub number: u64,
    pub from: Option<String>,
}

/// Number of rows of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    pub chunks: u64,
    /// Messages in the history.
    pub messages: u64,
    pub removed: u64,
    pub versions: u64,
    pub turns: u64,
    pub attempts: u64,
    pub sessions: u64,
    pub epochs: u64,
    pub changes: u64,
    pub snapshots: u64,
    /// Bytes of the chunks.
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConversationRow {
    pub(super) id: ConversationId,
    pub(super) key: Option<String>,
    pub(super) title: String,
    pub(super) agent: AgentName,
    pub(super) workdir: String,
    pub(super) permission: String,
    pub(super) scope: Scope,
    pub(super) settings: BTreeMap<String, AgentSettings>,
    pub(super) fresh: bool,
    pub(super) outside_cost: Option<i64>,
    pub(super) created_at: i64,
    pub(super) updated_at: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MessageRow {
    pub(super) id: MessageId,
    /// `None`: written outside rejoin, or copied from another conversation.
    pub(super) turn: Option<TurnId>,
    pub(super) seq: i64,
    pub(super) role: Role,
    pub(super) agent: Option<AgentName>,
    pub(super) text: String,
    pub(super) attachments: Vec<String>,
    pub(super) state: MessageState,
    pub(super) origin: String,
    pub(super) edited: bool,
    pub(super) trail: Vec<ToolNote>,
    pub(super) root: Option<MessageId>,
    pub(super) removed_at: Option<i64>,
    pub(super) created_at: i64,
}

/// Earlier text of the preceding message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VersionRow {
    pub(super) n: i64,
    pub(super) text: String,
    pub(super) replaced_at: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TurnRow {
    pub(super) id: TurnId,
    pub(super) message: MessageId,
    pub(super) reply: Option<MessageId>,
    pub(super) agent: AgentName,
    pub(super) status: String,
    pub(super) request: Value,
    pub(super) client_key: Option<String>,
    pub(super) verdict: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) record: TurnRecord,
    pub(super) model: Option<String>,
    pub(super) usage: Option<Usage>,
    pub(super) cost: Option<i64>,
    pub(super) context: Option<Context>,
    pub(super) denied: Value,
    pub(super) error: Option<Failure>,
    pub(super) saved: String,
    pub(super) machine: String,
    pub(super) summary: String,
    pub(super) created_at: i64,
    pub(super) started_at: Option<i64>,
    pub(super) ended_at: Option<i64>,
    /// Left out without a tier, so that earlier versions read the archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) chain: Option<ChainRow>,
}

/// Place of a turn in a chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChainRow {
    pub(super) root: TurnId,
    pub(super) parent: Option<TurnId>,
    pub(super) tier: Option<String>,
    pub(super) trigger: Option<String>,
    pub(super) escalation: Option<Value>,
}

/// Attempt of the preceding turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AttemptRow {
    pub(super) n: i64,
    pub(super) verdict: String,
    pub(super) reason: Option<String>,
    pub(super) status: String,
    pub(super) session: String,
    pub(super) pin: PinId,
    pub(super) prompt: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PinRow {
    pub(super) id: PinId,
    pub(super) agent: AgentName,
    pub(super) session: SessionId,
    pub(super) retired_why: Option<String>,
    /// As in the store: the confirmed state, and earlier confirmed states.
    pub(super) confirmed: Option<Value>,
    pub(super) failures: u32,
    pub(super) created_at: i64,
    pub(super) updated_at: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EpochRow {
    pub(super) agent: AgentName,
    pub(super) epoch: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangeRow {
    pub(super) kind: String,
    pub(super) body: Value,
    pub(super) undone_at: Option<i64>,
    pub(super) created_at: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SnapshotRow {
    pub(super) id: SnapshotId,
    pub(super) pin: PinId,
    pub(super) last_seq: i64,
    pub(super) kept: bool,
    pub(super) taken_at: i64,
    /// Manifest with chunks by their plain names.
    pub(super) manifest: Manifest,
}
