//! JSON types of the outer contract: turns, conversations, messages. Fields may be added, never
//! renamed.

use rejoin_core::{
    Class, Context, ConversationId, Counts, LimitState, MessageId, MessageState, Micros, Role,
    Sent, ToolNote, TurnId, TurnStatus, Usage,
};
use rejoin_store::{Conversation, Read, StoredMessage, StoredTurn};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Hub;
use crate::climb::{approval_of, shown_escalation, waits_for_approval};
use crate::clock::rfc3339;
use crate::error::{Error, Result};
use crate::finish::took_ms;
use crate::partial::partial_text;
use crate::questions::{QuestionView, shown};
use crate::row::{conversation_view, unfinished};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TurnView {
    pub conversation_id: ConversationId,
    pub turn_id: TurnId,
    pub message_id: MessageId,
    pub reply_id: Option<MessageId>,
    pub handle: String,
    pub agent: String,
    pub model: Option<String>,
    pub status: String,
    pub text: Option<String>,
    /// Text written before a turn without an answer ended, 16 KiB at most. No agent is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial_text: Option<String>,
    pub summary: String,
    pub verdict: Option<String>,
    pub reason: Option<String>,
    pub checks: Value,
    pub sent: Sent,
    pub session_id: Option<String>,
    pub attempts: Vec<AttemptView>,
    pub usage: UsageView,
    pub cost_usd: Option<f64>,
    pub context: Option<Context>,
    pub denied: Value,
    pub saved: String,
    pub tier: Option<String>,
    /// Limits of the tier, with the calls that were left when the turn was accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitState>,
    pub parent_turn_id: Option<TurnId>,
    /// Root of the chain of a turn with a tier.
    pub chain_id: Option<TurnId>,
    /// Request for a higher tier, and the decision about it.
    pub escalation: Option<Value>,
    pub machine: String,
    pub started_at: Option<String>,
    pub duration_ms: u64,
    pub policy: Value,
    pub version: Option<String>,
    pub command: Vec<String>,
    pub leftovers: Vec<String>,
    /// Pending questions; of a lost turn those that were pending; of a turn that asked for a higher tier its
    /// approval.
    pub questions: Vec<QuestionView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorView>,
    /// Number of the last event that this view contains: a stream with `after` and this number continues exactly here.
    /// Only in the answer of `GET /api/turns/{id}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<i64>,
    /// Newest to-do list of a turn that has not ended: `text` and `status` of each item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub todo: Option<Value>,
    /// Text of a turn that has not ended, behind its last event `text`: the pieces of `text.delta` so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streamed_text: Option<String>,
    /// Estimated cost without the session, if the turn continued one and was cheaper for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh_estimate_usd: Option<f64>,
}

/// Tokens of a turn; each is null where its CLI did not report it. `input` excludes cache reads and writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UsageView {
    pub input: Option<u64>,
    pub cache_read: Option<u64>,
    pub cache_write: Option<u64>,
    pub output: Option<u64>,
}

impl From<Usage> for UsageView {
    fn from(usage: Usage) -> Self {
        let counts = Counts::from(usage);
        Self {
            input: counts.input,
            cache_read: counts.cache_read,
            cache_write: counts.cache_write,
            output: counts.output,
        }
    }
}

impl UsageView {
    /// Returns the counts, if one of them is known.
    pub fn known(self) -> Option<Usage> {
        (self != Self::default()).then(|| {
            Usage::from(Counts {
                input: self.input,
                cache_read: self.cache_read,
                cache_write: self.cache_write,
                output: self.output,
            })
        })
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AttemptView {
    pub verdict: String,
    pub reason: Option<String>,
    pub status: String,
    pub session_id: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ErrorView {
    pub class: String,
    pub message: String,
    #[serde(rename = "try")]
    pub next: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ConversationView {
    pub id: ConversationId,
    pub handle: String,
    pub key: Option<String>,
    pub title: String,
    pub agent: String,
    pub workdir: String,
    pub permission: String,
    pub scope: String,
    pub state: String,
    pub created_at: String,
    pub updated_at: String,
    pub cost_usd: Option<f64>,
    /// False if a turn ran whose cost is unknown: `cost_usd` is then a lower bound.
    #[serde(default)]
    pub cost_known: bool,
    pub last_turn: Option<LastTurnView>,
    /// Number of turns.
    #[serde(default)]
    pub turns: i64,
    /// Number of messages in the history, which is the position of the last one.
    #[serde(default)]
    pub messages: i64,
    /// Current action of a running turn.
    #[serde(default)]
    pub activity: Option<ActivityView>,
    /// First pending question of a waiting turn.
    #[serde(default)]
    pub asks: Option<AsksView>,
    /// Class of failure of the newest turn, if it did not succeed.
    #[serde(default)]
    pub error: Option<String>,
    /// Position of the newest message that was marked as seen.
    #[serde(default)]
    pub seen: i64,
    /// True if the newest message is an answer behind that position.
    #[serde(default)]
    pub unread: bool,
    /// The conversation that this one was forked from.
    pub parent_id: Option<ConversationId>,
    pub archived: bool,
    /// Effect of a message on an idle conversation: `auto`, `ask` or `never`.
    #[serde(rename = "continue")]
    pub continues: String,
}

/// The newest turn of a conversation, in short.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LastTurnView {
    pub turn_id: TurnId,
    pub status: String,
    pub verdict: Option<String>,
    pub reason: Option<String>,
    pub agent: String,
    pub summary: String,
    #[serde(default)]
    pub started_at: Option<String>,
    #[serde(default)]
    pub ended_at: Option<String>,
}

/// Current action of a running turn.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ActivityView {
    /// `starting`, `thinking`, `writing` or `tool`.
    pub doing: String,
    /// The tool, and the subject of its call.
    pub tool: Option<String>,
    pub subject: Option<String>,
    /// Begin of the action.
    pub since: String,
}

/// A pending question, in short.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AsksView {
    pub question_id: rejoin_core::QuestionId,
    pub kind: rejoin_core::QuestionKind,
    /// The tool that needs an approval.
    pub tool: String,
    /// The first question, or the subject of the call.
    pub text: String,
    pub asked_at: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MessageView {
    pub id: MessageId,
    pub seq: Option<i64>,
    pub role: Role,
    pub agent: Option<String>,
    pub text: String,
    /// The turn; none: the message is external.
    pub turn_id: Option<TurnId>,
    pub edited: bool,
    pub origin: String,
    pub state: MessageState,
    /// No longer part of the history.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// Earlier texts, oldest first; only with all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<VersionView>,
    pub created_at: String,
    /// Actions of the turn's tools, in short.
    pub tools: Vec<ToolNote>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct VersionView {
    pub text: String,
    pub replaced_at: String,
}

impl TurnView {
    /// Returns true if the turn has ended and cannot change any more.
    pub fn ended(&self) -> bool {
        self.status
            .parse::<TurnStatus>()
            .is_ok_and(TurnStatus::ended)
    }
}

impl Hub {
    pub async fn turn_view(&self, id: TurnId) -> Result<TurnView> {
        Ok(TurnView {
            as_of: None,
            ..self.turn_view_as_of(id).await?
        })
    }

    /// Returns the view of a turn with the number of the last event that it contains.
    pub async fn turn_view_as_of(&self, id: TurnId) -> Result<TurnView> {
        let mut read = self.store.read_consistent().await?;
        let as_of = read.events().last().await?;
        let turn = read
            .turns()
            .get(id)
            .await?
            .ok_or_else(|| Error::NotFound(format!("there is no turn {id}")))?;
        let handle = handle_of(&mut read, &turn).await?;
        let mut view = turn_view(&mut read, &handle, turn).await?;
        read.finish().await;
        view.as_of = Some(as_of);
        Ok(view)
    }

    /// Returns summary and answer of a succeeded turn, for callers that need no more.
    pub async fn reply(&self, id: TurnId) -> Result<Option<(String, String)>> {
        let mut read = self.store.read().await?;
        let turn = read.turns().get(id).await?;
        // A request for a higher tier is part of the report.
        let plain = |t: &StoredTurn| t.status == TurnStatus::Succeeded && t.escalation.is_none();
        let Some(turn) = turn.filter(plain) else {
            return Ok(None);
        };
        let reply = match turn.reply {
            Some(id) => read.messages().get_ever(id).await?,
            None => None,
        };
        Ok(reply.map(|reply| (turn.summary, reply.message.text)))
    }

    pub async fn conversation_view(&self, c: &Conversation) -> Result<ConversationView> {
        let mut read = self.store.read().await?;
        conversation_view(&mut read, c).await
    }
}

pub(crate) fn message_view(stored: StoredMessage) -> MessageView {
    let m = stored.message;
    MessageView {
        id: m.id,
        seq: (m.seq > 0).then_some(m.seq),
        role: m.role,
        agent: m.agent.map(|a| a.to_string()),
        text: m.text,
        turn_id: (!stored.turn.is_nil()).then_some(stored.turn),
        edited: stored.edited,
        removed: stored.removed,
        versions: vec![],
        origin: stored.origin,
        state: m.state,
        created_at: rfc3339(stored.created_at),
        tools: m.trail,
    }
}

/// Returns the error of a turn that ended without an answer.
fn error_view(turn: &StoredTurn, reference: &str) -> Option<ErrorView> {
    let (class, message, advice) = match (&turn.error, turn.status) {
        (Some(e), _) => (e.class.as_str(), e.message.clone(), e.class),
        (None, TurnStatus::Cancelled) => {
            let message = "it was cancelled before it had answered";
            ("cancelled", message.into(), Class::Interrupted)
        }
        (None, _) => return None,
    };
    Some(ErrorView {
        class: class.to_owned(),
        message,
        next: Some(advice.advise(reference, turn.agent.as_str())),
    })
}

async fn handle_of(read: &mut Read, turn: &StoredTurn) -> Result<String> {
    let conversation = read.conversations().get(turn.conversation).await?;
    let conversation =
        conversation.ok_or_else(|| Error::NotFound("the conversation is gone".into()))?;
    Ok(read
        .conversations()
        .short_handle(&conversation.handle)
        .await?)
}

/// Returns the view of a turn in the conversation with this handle.
pub(crate) async fn turn_view(read: &mut Read, handle: &str, turn: StoredTurn) -> Result<TurnView> {
    let reply = match turn.reply {
        Some(id) => read.messages().get_ever(id).await?,
        None => None,
    };
    let seq = match &reply {
        Some(reply) => reply.message.seq,
        None => read
            .messages()
            .get_ever(turn.message)
            .await?
            .map_or(0, |m| m.message.seq),
    };
    let attempts = read.attempts().of(turn.id).await?;
    let asked = match turn.status {
        TurnStatus::Waiting | TurnStatus::Lost => read.questions().of(turn.id).await?,
        TurnStatus::Succeeded if waits_for_approval(&turn) => approval_of(read, &turn).await?,
        TurnStatus::Succeeded if turn.agent.as_str() == rejoin_agents::WORKFLOW_AGENT => {
            read.questions().of(turn.id).await?
        }
        TurnStatus::Queued
        | TurnStatus::Running
        | TurnStatus::Succeeded
        | TurnStatus::Failed
        | TurnStatus::Cancelled => vec![],
    };
    let questions = shown(turn.status, asked);
    let partial_text = partial_text(read, &turn).await?;
    let (todo, streamed_text) = match turn.status {
        TurnStatus::Running | TurnStatus::Waiting => unfinished(read, turn.id).await?,
        TurnStatus::Queued
        | TurnStatus::Succeeded
        | TurnStatus::Failed
        | TurnStatus::Cancelled
        | TurnStatus::Lost => (None, None),
    };
    let reference = if seq > 0 {
        format!("{handle}:{seq}")
    } else {
        handle.to_owned()
    };
    Ok(TurnView {
        conversation_id: turn.conversation,
        turn_id: turn.id,
        message_id: turn.message,
        reply_id: turn.reply,
        error: error_view(&turn, &reference),
        handle: reference,
        agent: turn.agent.to_string(),
        model: turn
            .model
            .clone()
            .or_else(|| turn.request["model"].as_str().map(str::to_owned)),
        status: turn.status.to_string(),
        text: reply.map(|m| m.message.text),
        partial_text,
        summary: turn.summary.clone(),
        verdict: turn.verdict.map(|v| v.to_string()),
        reason: turn.reason.map(|r| r.to_string()),
        checks: if turn.record.checks.is_null() {
            Value::Array(vec![])
        } else {
            turn.record.checks.clone()
        },
        sent: turn.record.sent,
        session_id: turn.record.session_id.clone(),
        attempts: attempts
            .into_iter()
            .map(|a| AttemptView {
                verdict: a.verdict.to_string(),
                reason: a.reason.map(|r| r.to_string()),
                status: a.status,
                session_id: a.session_id,
            })
            .collect(),
        usage: turn.usage.map(UsageView::from).unwrap_or_default(),
        cost_usd: turn.cost.known().map(Micros::dollars),
        context: turn.context,
        denied: turn.denied.clone(),
        saved: turn.saved.clone(),
        tier: turn.tier.clone(),
        limits: serde_json::from_value(turn.request["limits"].clone()).unwrap_or_default(),
        parent_turn_id: turn.parent,
        chain_id: turn.chain,
        escalation: shown_escalation(&turn, &questions),
        as_of: None,
        todo,
        streamed_text,
        fresh_estimate_usd: turn.record.fresh_estimate.map(Micros::dollars),
        machine: turn.machine.clone(),
        started_at: turn.started_at.map(rfc3339),
        duration_ms: took_ms(&turn),
        policy: turn.record.policy.clone(),
        version: turn.record.runtime.clone(),
        command: turn.record.command.clone(),
        leftovers: turn.record.leftovers.clone(),
        questions,
    })
}
