//! What every change of a history has in common: one transaction, nothing of the conversation
//! running, and an answer to the question which agents' sessions it affects.
//!
//! No session is touched. What an agent's session has seen is a value; whether that is still the
//! value of a prefix of the history is asked before and after, and that is all.

mod edit;
mod fork;
mod merge;
mod retry;
mod settings;
mod undo;

use std::collections::BTreeMap;

use rejoin_core::{
    AgentName, Altered, ConversationId, EventBody, MessageId, PinId, PinState, Reason, ScopeValue,
    TurnId,
};
use rejoin_store::{Change as StoredChange, Conversation, Read, Tx};
use serde::{Deserialize, Serialize};

pub use fork::{ForkView, ForkWish};
pub use merge::Merged;
pub use retry::Again;
pub use settings::{Continues, Wish};

use crate::Hub;
use crate::accept::to_json;
use crate::error::{Error, Result};

/// Is it to be done, or only shown?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    Now,
    /// `--dry-run`
    Later,
}

/// What a change came to, or would.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Changed {
    pub conversation_id: ConversationId,
    pub message_id: Option<MessageId>,
    pub removed: Vec<MessageId>,
    /// Those that are in the history again.
    pub restored: Vec<MessageId>,
    pub affected: Vec<Affected>,
    /// What could not be as it was before.
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
    /// Can one of its sessions serve the next turn, as far as the history goes?
    pub usable: bool,
    pub was_usable: bool,
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub reason: Option<Reason>,
    pub epoch: i64,
}

/// What takes a change back.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
enum Undo {
    Edit {
        message: MessageId,
        text: String,
        edited: bool,
    },
    /// Everything from a place on was removed.
    Cut {
        from: i64,
        removed: Vec<MessageId>,
        retried: Option<retry::Retried>,
    },
    Merge(merge::Undo),
    Reset {
        pins: Vec<PinId>,
    },
    Settings(settings::Before),
}

/// What each agent sees that ever had a session.
type Sight = BTreeMap<AgentName, Seeing>;

#[derive(Clone, Copy)]
struct Seeing {
    value: ScopeValue,
    /// It has a session that was not retired.
    session: bool,
    /// One of its sessions has seen a prefix of that.
    usable: bool,
}

/// A change in the making.
struct Change {
    tx: Tx,
    conversation: Conversation,
    before: Sight,
}

/// A change that is made, but not yet kept.
struct Made {
    kind: &'static str,
    /// None: there is nothing to take back.
    undo: Option<Undo>,
    message: Option<MessageId>,
    removed: Vec<MessageId>,
    restored: Vec<MessageId>,
}

impl Hub {
    /// Nothing of the conversation may be running: a turn would answer to a history that is not
    /// there any more.
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

    async fn end_change(&self, change: Change, made: Made, doing: Doing) -> Result<Changed> {
        let Change {
            mut tx,
            conversation,
            before,
        } = change;
        let (c, now) = (conversation.id, self.clock.now());
        // A setting may have changed with it.
        let conversation = tx.conversation(c).await?.ok_or_else(gone)?;
        let after = sight(&mut tx, &conversation).await?;
        let mut affected = vec![];
        for (agent, now) in after {
            let was = before.get(&agent);
            if was.is_none_or(|was| was.value != now.value) {
                tx.bump_epoch(c, &agent).await?;
            }
            let usable = now.usable;
            if !now.session {
                continue;
            }
            affected.push(Affected {
                usable,
                was_usable: was.is_some_and(|was| was.usable),
                reason: (!usable).then_some(Reason::HistoryChanged),
                epoch: tx.epoch(c, &agent).await?,
                agent,
            });
        }
        if let Some(undo) = &made.undo {
            tx.add_change(c, made.kind, &to_json(undo)?, now).await?;
        }
        let event = EventBody::HistoryChanged {
            change: made.kind.to_owned(),
            affected: to_json(&affected)?,
        };
        tx.add_events(c, TurnId::nil(), now, &[event]).await?;
        tx.stamp_conversation(c, now).await?;
        if doing == Doing::Now {
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
            dry_run: doing == Doing::Later,
        })
    }
}

/// The conversation, if nobody is at it.
async fn must_be_idle(tx: &mut Tx, c: ConversationId) -> Result<Conversation> {
    let conversation = tx.conversation(c).await?.ok_or_else(gone)?;
    let handle = tx.short_handle(&conversation.handle).await?;
    if tx.unfinished_turn(c).await?.is_some() || tx.queued_in_place(c).await? {
        return Err(Error::Running(handle));
    }
    if conversation.opened_by.is_some() {
        return Err(Error::Opened(handle));
    }
    Ok(conversation)
}

async fn sight(tx: &mut Tx, conversation: &Conversation) -> Result<Sight> {
    let (c, scope) = (conversation.id, conversation.scope);
    let before = tx.last_seq(c).await? + 1;
    let mut sight = Sight::new();
    for agent in tx.agents_with_sessions(c).await? {
        let state = tx.scope_before(c, scope, &agent, before).await?;
        let mut seeing = Seeing {
            value: state.value,
            session: false,
            usable: false,
        };
        for stored in tx.pins_of(c, &agent).await? {
            let retired = matches!(stored.state, PinState::Retired(_));
            if let Some(pin) = stored.pin.filter(|_| !retired) {
                let seen = pin.seen;
                let today = tx.value_through(c, scope, &state, seen.last_seq).await?;
                seeing.session = true;
                seeing.usable |= today == Some(seen.value);
            }
        }
        sight.insert(agent, seeing);
    }
    Ok(sight)
}

/// Where a change of the history begins, if it is one.
pub(crate) async fn altered(read: &mut Read, change: &StoredChange) -> Result<Option<Altered>> {
    Ok(match serde_json::from_value(change.body.clone()) {
        Ok(Undo::Edit { message, .. }) => {
            let stored = read.message(message).await?;
            stored.map(|m| Altered::Edited(m.message.seq))
        }
        Ok(Undo::Cut { from, .. }) => Some(Altered::Removed(from)),
        Ok(Undo::Merge(_) | Undo::Reset { .. } | Undo::Settings(_)) | Err(_) => None,
    })
}

fn gone() -> Error {
    Error::NotFound("the conversation is gone".into())
}
