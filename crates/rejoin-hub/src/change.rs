//! Common steps of every change to a history: one transaction, no running turn, and a report of the
//! agents whose sessions it affects.
//!
//! A change touches no session. The history that a session has seen is stored as a scope value.
//! Before and after the change, the hub only asks if that value still belongs to a prefix of the
//! history.

mod edit;
mod fork;
mod merge;
mod retry;
mod settings;
mod undo;

use std::collections::BTreeMap;

use rejoin_core::{
    AgentName, ConversationId, EventBody, HistoryChange, MessageId, PinId, PinState, Reason,
    ScopeValue, SessionId, TurnId,
};
use rejoin_store::{Change as StoredChange, Conversation, Read, Tx};
use serde::{Deserialize, Serialize};

pub use fork::{ForkRequest, ForkView};
pub use merge::Merged;
pub use retry::RetryOptions;
pub use settings::{Continues, Setting};

use crate::Hub;
use crate::accept::to_json;
use crate::error::{Error, Result};

/// Selects between making a change and showing its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeMode {
    Now,
    /// `--dry-run`
    Later,
}

/// The result of a change, or its preview.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Changed {
    pub conversation_id: ConversationId,
    pub message_id: Option<MessageId>,
    pub removed: Vec<MessageId>,
    /// Messages that are in the history again.
    pub restored: Vec<MessageId>,
    pub affected: Vec<Affected>,
    /// A note on parts that could not be restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Which kind of change it was; with `undo`, the one that was taken back.
    pub change: String,
    pub dry_run: bool,
}

/// An agent that has a session of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Affected {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub agent: AgentName,
    /// True if one of the agent's sessions can serve the next turn, as far as the history goes.
    pub usable: bool,
    pub was_usable: bool,
    /// True if the next turn continues another session of the agent than before the change. That session is told
    /// the messages that it has not seen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub switches: bool,
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub reason: Option<Reason>,
    pub epoch: i64,
}

/// Data that `undo` needs to revert a change.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
enum Undo {
    Edit {
        message: MessageId,
        text: String,
        edited: bool,
    },
    /// Removal of every message from position `from` on.
    Cut {
        from: i64,
        removed: Vec<MessageId>,
        retried: Option<retry::RetriedMessage>,
    },
    Merge(merge::Undo),
    Reset {
        pins: Vec<PinId>,
    },
    Settings(settings::Before),
}

/// Scope of each agent that ever had a session.
type Sight = BTreeMap<AgentName, Seeing>;

#[derive(Clone)]
struct Seeing {
    value: ScopeValue,
    /// True if the agent has a session that is not retired.
    session: bool,
    /// True if one of the agent's sessions has seen a prefix of its scope.
    usable: bool,
    /// The usable session that has seen the most, with its last position.
    best: Option<(i64, SessionId)>,
}

/// A change in progress.
struct Change {
    tx: Tx,
    conversation: Conversation,
    before: Sight,
}

/// A change that was applied in the transaction but not committed.
struct Made {
    kind: &'static str,
    /// `None`: the change cannot be reverted, or changed nothing.
    undo: Option<Undo>,
    message: Option<MessageId>,
    removed: Vec<MessageId>,
    restored: Vec<MessageId>,
}

impl Hub {
    /// Starts a change. Fails while a turn of the conversation runs: that turn would answer a
    /// history that no longer exists.
    async fn begin_change(&self, c: ConversationId) -> Result<Change> {
        let mut tx = self.store.begin().await?;
        let conversation = must_be_idle(&mut tx, c).await?;
        let before = sight(&mut tx, &conversation).await?;
        Ok(Change {
            tx,
            conversation,
            before,
        })
    }

    async fn end_change(&self, change: Change, made: Made, doing: ChangeMode) -> Result<Changed> {
        let Change {
            mut tx,
            conversation,
            before,
        } = change;
        let (c, now) = (conversation.id, self.clock.now());
        let was = conversation;
        // The change may have altered a setting, such as the scope.
        let conversation = tx.conversations().get(c).await?.ok_or_else(gone)?;
        let fields = settings::Before::of(&was, &conversation).fields();
        let after = sight(&mut tx, &conversation).await?;
        let mut affected = vec![];
        for (agent, now) in after {
            let was = before.get(&agent);
            if was.is_none_or(|was| was.value != now.value) {
                tx.binaries().bump_epoch(c, &agent).await?;
            }
            let usable = now.usable;
            if !now.session {
                continue;
            }
            affected.push(Affected {
                usable,
                was_usable: was.is_some_and(|was| was.usable),
                switches: was.is_some_and(|was| switches(was, &now)),
                reason: (!usable).then_some(Reason::HistoryChanged),
                epoch: tx.binaries().epoch(c, &agent).await?,
                agent,
            });
        }
        if let Some(undo) = &made.undo {
            tx.changes().add(c, made.kind, &to_json(undo)?, now).await?;
        }
        let event = EventBody::HistoryChanged {
            change: made.kind.to_owned(),
            affected: to_json(&affected)?,
            message_id: made.message,
            removed: made.removed.clone(),
            restored: made.restored.clone(),
        };
        let mut events = vec![event];
        if !fields.is_empty() {
            events.push(EventBody::changed(fields));
        }
        tx.events().add(c, TurnId::nil(), now, &events).await?;
        tx.conversations().stamp(c, now).await?;
        if doing == ChangeMode::Now {
            tx.commit().await?;
        }
        Ok(Changed {
            conversation_id: c,
            message_id: made.message,
            removed: made.removed,
            restored: made.restored,
            affected,
            note: None,
            change: made.kind.to_owned(),
            dry_run: doing == ChangeMode::Later,
        })
    }
}

/// Returns the conversation. Fails if a turn of it runs, or if it is open in an agent's terminal
/// interface.
async fn must_be_idle(tx: &mut Tx, c: ConversationId) -> Result<Conversation> {
    let conversation = tx.conversations().get(c).await?.ok_or_else(gone)?;
    let handle = tx
        .conversations()
        .short_handle(&conversation.handle)
        .await?;
    if tx.turns().unfinished(c).await?.is_some() || tx.changes().queued_in_place(c).await? {
        return Err(Error::Running(handle));
    }
    if conversation.opened_by.is_some() {
        return Err(Error::Opened(handle));
    }
    Ok(conversation)
}

fn switches(was: &Seeing, now: &Seeing) -> bool {
    let session = |seeing: &Seeing| seeing.best.as_ref().map(|(_, session)| session.clone());
    matches!((session(was), session(now)), (Some(was), Some(now)) if was != now)
}

async fn sight(tx: &mut Tx, conversation: &Conversation) -> Result<Sight> {
    let (c, scope) = (conversation.id, conversation.scope);
    let before = tx.history().last_seq(c).await? + 1;
    let mut sight = Sight::new();
    for agent in tx.pins().agents_with_sessions(c).await? {
        let state = tx.history().scope_before(c, scope, &agent, before).await?;
        let mut seeing = Seeing {
            value: state.value,
            session: false,
            usable: false,
            best: None,
        };
        for stored in tx.pins().of(c, &agent).await? {
            let retired = matches!(stored.state, PinState::Retired(_));
            if let Some(pin) = stored.pin.filter(|_| !retired) {
                let seen = pin.seen;
                let today = tx
                    .history()
                    .value_through(c, scope, &state, seen.last_seq)
                    .await?;
                seeing.session = true;
                if today == Some(seen.value) {
                    seeing.usable = true;
                    let this = (seen.last_seq, pin.session);
                    let better = seeing.best.as_ref().is_none_or(|best| best.0 < this.0);
                    seeing.best = if better { Some(this) } else { seeing.best };
                }
            }
        }
        sight.insert(agent, seeing);
    }
    Ok(sight)
}

/// Returns the position at which a change altered the history, or `None` if it did not.
pub(crate) async fn altered(
    read: &mut Read,
    change: &StoredChange,
) -> Result<Option<HistoryChange>> {
    Ok(match serde_json::from_value(change.body.clone()) {
        Ok(Undo::Edit { message, .. }) => {
            let stored = read.messages().get(message).await?;
            stored.map(|m| HistoryChange::Edited(m.message.seq))
        }
        Ok(Undo::Cut { from, .. }) => Some(HistoryChange::Removed(from)),
        Ok(Undo::Merge(_) | Undo::Reset { .. } | Undo::Settings(_)) | Err(_) => None,
    })
}

fn gone() -> Error {
    Error::NotFound("the conversation is gone".into())
}
