//! The JSON of the outer contract: turns, conversations, messages. Fields may be added, none
//! renamed.

use rejoin_core::{
    Class, Context, ConversationId, Counts, MessageId, MessageState, Role, Sent, ToolNote, TurnId,
    TurnStatus, Usage,
};
use rejoin_store::{Conversation, Read, StoredMessage, StoredTurn};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Hub;
use crate::clock::rfc3339;
use crate::error::{Error, Result};
use crate::finish::took_ms;
use crate::questions::{QuestionView, shown};

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
    pub parent_turn_id: Option<TurnId>,
    pub machine: String,
    pub started_at: Option<String>,
    pub duration_ms: u64,
    pub policy: Value,
    pub version: Option<String>,
    pub command: Vec<String>,
    pub leftovers: Vec<String>,
    /// What it waits for, or waited for when it was lost.
    pub questions: Vec<QuestionView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorView>,
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

#[derive(Debug, Clone, Serialize, Deserialize)]
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
    pub last_turn: Option<Value>,
    /// Of which it is a fork.
    pub parent_id: Option<ConversationId>,
    pub archived: bool,
    /// What a message does that finds it idle: `auto`, `ask` or `never`.
    #[serde(rename = "continue")]
    pub continues: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MessageView {
    pub id: MessageId,
    pub seq: Option<i64>,
    pub role: Role,
    pub agent: Option<String>,
    pub text: String,
    /// None: it was said outside.
    pub turn_id: Option<TurnId>,
    pub edited: bool,
    pub origin: String,
    pub state: MessageState,
    /// No longer part of the history.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// What it said before, oldest first; only with all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<VersionView>,
    pub created_at: String,
    /// What the tools of its turn did, in short.
    pub tools: Vec<ToolNote>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct VersionView {
    pub text: String,
    pub replaced_at: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SessionView {
    pub agent: String,
    pub session_id: String,
    pub state: String,
    pub why: Option<String>,
    pub seen_message_id: Option<MessageId>,
    pub epoch: i64,
    pub machine: Option<String>,
}

impl TurnView {
    /// Nothing of it can change any more.
    pub fn ended(&self) -> bool {
        self.status
            .parse::<TurnStatus>()
            .is_ok_and(TurnStatus::ended)
    }
}

impl Hub {
    pub async fn turn_view(&self, id: TurnId) -> Result<TurnView> {
        let mut read = self.store.read().await?;
        let turn = read
            .turn(id)
            .await?
            .ok_or_else(|| Error::NotFound(format!("there is no turn {id}")))?;
        let handle = handle_of(&mut read, &turn).await?;
        turn_view(&mut read, &handle, turn).await
    }

    /// Summary and answer of a turn that succeeded, for those who need no more.
    pub async fn reply(&self, id: TurnId) -> Result<Option<(String, String)>> {
        let mut read = self.store.read().await?;
        let turn = read.turn(id).await?;
        let Some(turn) = turn.filter(|t| t.status == TurnStatus::Succeeded) else {
            return Ok(None);
        };
        let reply = match turn.reply {
            Some(id) => read.message_ever(id).await?,
            None => None,
        };
        Ok(reply.map(|reply| (turn.summary, reply.message.text)))
    }

    pub async fn conversation_view(&self, c: &Conversation) -> Result<ConversationView> {
        let mut read = self.store.read().await?;
        let state = match read.unfinished_turn(c.id).await? {
            Some(turn) => turn.status.to_string(),
            None if c.opened_by.is_some() => "running".into(),
            None if read.has_queued(c.id).await? => "queued".into(),
            None => "idle".into(),
        };
        let last = read.last_turn(c.id).await?;
        Ok(ConversationView {
            id: c.id,
            handle: read.short_handle(&c.handle).await?,
            key: c.key.clone(),
            title: c.title.clone(),
            agent: c.agent.to_string(),
            workdir: c.workdir.clone(),
            permission: c.permission.to_string(),
            scope: c.scope.as_str().into(),
            state,
            created_at: rfc3339(c.created_at),
            updated_at: rfc3339(c.updated_at),
            cost_usd: read.cost_of(c.id).await?.map(rejoin_core::Micros::dollars),
            last_turn: last.map(|t| {
                serde_json::json!({
                    "turn_id": t.id, "status": t.status, "verdict": t.verdict, "reason": t.reason,
                    "agent": t.agent, "summary": t.summary,
                })
            }),
            parent_id: c.parent.map(|p| p.id),
            archived: c.archived_at.is_some(),
            continues: c.continues.clone(),
        })
    }

    pub async fn session_views(&self, c: ConversationId) -> Result<Vec<SessionView>> {
        let mut read = self.store.read().await?;
        let mut views = vec![];
        for stored in read.all_pins(c).await? {
            let (state, why) = match &stored.state {
                rejoin_core::PinState::Open(_) => ("open", None),
                rejoin_core::PinState::Confirmed => ("confirmed", None),
                rejoin_core::PinState::Retired(why) => ("retired", Some(why.clone())),
            };
            views.push(SessionView {
                epoch: read.epoch(c, &stored.agent).await?,
                agent: stored.agent.to_string(),
                session_id: stored.session.to_string(),
                state: state.into(),
                why,
                seen_message_id: stored.pin.as_ref().and_then(|p| p.seen.last),
                machine: stored.pin.map(|p| p.machine),
            });
        }
        Ok(views)
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

/// Every turn that ended without an answer says why.
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
    let conversation = read.conversation(turn.conversation).await?;
    let conversation =
        conversation.ok_or_else(|| Error::NotFound("the conversation is gone".into()))?;
    Ok(read.short_handle(&conversation.handle).await?)
}

/// Returns the view of a turn in the conversation with this handle.
pub(crate) async fn turn_view(read: &mut Read, handle: &str, turn: StoredTurn) -> Result<TurnView> {
    let reply = match turn.reply {
        Some(id) => read.message_ever(id).await?,
        None => None,
    };
    let seq = match &reply {
        Some(reply) => reply.message.seq,
        None => read
            .message_ever(turn.message)
            .await?
            .map_or(0, |m| m.message.seq),
    };
    let attempts = read.attempts(turn.id).await?;
    let asked = match turn.status {
        TurnStatus::Waiting | TurnStatus::Lost => read.questions(turn.id).await?,
        TurnStatus::Queued
        | TurnStatus::Running
        | TurnStatus::Succeeded
        | TurnStatus::Failed
        | TurnStatus::Cancelled => vec![],
    };
    let questions = shown(turn.status, asked);
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
        cost_usd: turn.cost.known().map(rejoin_core::Micros::dollars),
        context: turn.context,
        denied: turn.denied.clone(),
        saved: turn.saved.clone(),
        tier: None,
        parent_turn_id: None,
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
