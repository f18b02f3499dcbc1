//! Runs a message again: what followed it is removed, its id stays, and no session is resumed.

use rejoin_core::{AgentName, EventBody, MessageId, MessageState, Role, ToolNote, TurnId};
use rejoin_store::{Change as StoredChange, NewTurn, StoredMessage, StoredTurn, Tx};
use serde::{Deserialize, Serialize};

use super::edit::place_of;
use super::{Change, Changed, Doing, Made, Undo};
use crate::Hub;
use crate::accept::{Accepted, may_continue, settle_request, to_json};
use crate::claim::Claimed;
use crate::error::{Error, Result};
use crate::hold::Hold;
use crate::request::{FreshWish, TurnFlags, TurnRequest};

/// A message as it was before it was run again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Retried {
    pub(super) message: MessageId,
    /// The turn that was made for it, and the one it belonged to.
    turn: TurnId,
    old_turn: TurnId,
    answered: bool,
    trail: Vec<ToolNote>,
}

impl Retried {
    pub(super) async fn put_back(&self, tx: &mut Tx) -> Result<()> {
        let state = if self.answered {
            MessageState::Ok
        } else {
            MessageState::Unanswered
        };
        Ok(tx
            .hand_over(self.message, self.old_turn, state, &self.trail)
            .await?)
    }
}

/// How a message is to be run again.
#[derive(Debug, Clone)]
pub struct Again {
    pub message: MessageId,
    /// None: the agent of the conversation's newest turn.
    pub agent: Option<AgentName>,
    pub flags: TurnFlags,
    pub request: TurnRequest,
    /// The same key again returns the same turn and never runs it twice.
    pub client_key: Option<String>,
    /// The user said yes to continuing a conversation that asks.
    pub confirmed: bool,
    /// The turn would wait: refused if so many wait already. None: it runs at once, or waits without a limit.
    pub queue_limit: Option<u64>,
}

/// Stands in the request of a turn for the message that it runs again: no other request has it.
fn digest_of(message: MessageId) -> String {
    format!("retry {message}")
}

impl Hub {
    /// In one transaction: what followed is removed, and the turn is in hand.
    pub async fn retry(&self, again: &Again, holder: &str) -> Result<Accepted> {
        let c = self.conversation_of(again.message).await?;
        let mut change = match self.begin_change(c).await {
            Ok(change) => change,
            // It may be busy with this very request, which came before.
            Err(error) => {
                let mut tx = self.store.begin().await?;
                let before = self.retried_before(&mut tx, again).await?;
                return before.ok_or(error);
            }
        };
        if let Some(before) = self.retried_before(&mut change.tx, again).await? {
            return Ok(before);
        }
        may_continue(&mut change.tx, &change.conversation, again.confirmed).await?;
        let now = self.clock.now();
        let (seq, stored) = place_of_users(&mut change, again.message).await?;
        let tx = &mut change.tx;
        let removed = self.cut(tx, c, seq + 1).await?;
        tx.drop_queued_turns_of(again.message).await?;
        if let Some(most) = again.queue_limit
            && tx.queued().await? >= most
        {
            return Err(Error::QueueFull { most });
        }
        let turn = self.clock.turn_id()?;
        let retried = Retried {
            message: again.message,
            turn,
            old_turn: stored.turn,
            answered: stored.message.state == MessageState::Ok,
            trail: stored.message.trail.clone(),
        };
        tx.hand_over(again.message, turn, MessageState::Ok, &[])
            .await?;
        let agent = again
            .agent
            .clone()
            .unwrap_or_else(|| change.conversation.agent.clone());
        let conversation = change.conversation.clone();
        // Never wider than it was sent: what was asked for then holds, but for what is asked for now.
        let before = tx.turn(stored.turn).await?;
        let was = before.as_ref().and_then(asked_before);
        let same = before.is_some_and(|turn| turn.agent == agent);
        let flags = match &was {
            Some(was) => again.flags.clone().after(was, same),
            None => again.flags.clone(),
        };
        let mut wishes = again.request.clone();
        if let Some(was) = was {
            wishes.raw = was.raw;
            wishes.instructions = wishes.instructions.or(was.instructions);
        }
        let mut request = settle_request(tx, &flags, &wishes, &conversation, &agent).await?;
        self.may_run(&agent, &request)?;
        request.fresh = Some(FreshWish::Retry);
        request.digest = Some(digest_of(again.message));
        tx.add_turn(&NewTurn {
            id: turn,
            conversation: c,
            message: again.message,
            agent: &agent,
            request: to_json(&request)?,
            client_key: again.client_key.as_deref(),
            machine: &self.machine,
            holder: Some(holder),
            now,
        })
        .await?;
        tx.touch_conversation(c, &agent, &request.workdir, now)
            .await?;
        let accepted = EventBody::TurnAccepted {
            message_id: again.message,
        };
        tx.add_events(c, turn, now, &[accepted]).await?;
        let lease = self.first_lease(tx, turn, holder).await?;
        let stored_turn = tx.turn(turn).await?;
        let message = tx.message(again.message).await?.map(|m| m.message);
        let claimed = message
            .zip(stored_turn)
            .map(|(message, turn)| Claimed {
                hold: Hold::new(turn.id),
                turn,
                conversation,
                message,
                request,
                attempts: vec![],
                taken_from: None,
                lease,
                since: Some(self.clock.since_boot()),
            })
            .ok_or_else(|| Error::Internal("a new turn is gone".into()))?;
        let made = Made {
            kind: "retry",
            undo: Some(Undo::Cut {
                from: seq + 1,
                removed: removed.clone(),
                retried: Some(retried),
            }),
            message: Some(again.message),
            removed,
            restored: vec![],
        };
        self.end_change(change, made, Doing::Now).await?;
        Ok(Accepted {
            conversation: c,
            turn,
            replayed: false,
            created: false,
            claimed: Some(Box::new(claimed)),
        })
    }

    /// Finds the turn that was made under the key of this request.
    async fn retried_before(&self, tx: &mut Tx, again: &Again) -> Result<Option<Accepted>> {
        let Some(key) = &again.client_key else {
            return Ok(None);
        };
        let Some(before) = tx.turn_by_key(&self.namespace, key).await? else {
            return Ok(None);
        };
        let digest = asked_before(&before).and_then(|request| request.digest);
        if digest != Some(digest_of(again.message)) {
            return Err(Error::KeyReused(key.clone()));
        }
        Ok(Some(Accepted {
            conversation: before.conversation,
            turn: before.id,
            replayed: true,
            created: false,
            claimed: None,
        }))
    }

    /// What a retry would remove, and whom it would affect.
    pub async fn would_retry(&self, id: MessageId) -> Result<Changed> {
        let c = self.conversation_of(id).await?;
        let mut change = self.begin_change(c).await?;
        let (seq, _) = place_of_users(&mut change, id).await?;
        let removed = self.cut(&mut change.tx, c, seq + 1).await?;
        let made = Made {
            kind: "retry",
            undo: None,
            message: Some(id),
            removed,
            restored: vec![],
        };
        self.end_change(change, made, Doing::Later).await
    }

    /// The retry for which nothing could be run: as if it had never been asked for. False: this turn
    /// is no retry.
    pub(crate) async fn take_back_retry(&self, tx: &mut Tx, turn: &StoredTurn) -> Result<bool> {
        let Some(change) = retry_of(tx, turn).await? else {
            return Ok(false);
        };
        self.revert(tx, turn.conversation, &change).await?;
        tx.mark_undone(change.id, self.clock.now()).await?;
        Ok(true)
    }

    pub(crate) async fn is_retry(&self, tx: &mut Tx, turn: &StoredTurn) -> Result<bool> {
        Ok(retry_of(tx, turn).await?.is_some())
    }
}

/// The change that a turn was made by.
async fn retry_of(tx: &mut Tx, turn: &StoredTurn) -> Result<Option<StoredChange>> {
    let of_this = |change: &StoredChange| {
        let undo = serde_json::from_value::<Undo>(change.body.clone());
        undo.is_ok_and(
            |undo| matches!(undo, Undo::Cut { retried: Some(r), .. } if r.turn == turn.id),
        )
    };
    let changes = tx.changes(turn.conversation, CHANGES).await?;
    Ok(changes.into_iter().find(of_this))
}

/// A turn that was never run is among the newest of them.
const CHANGES: i64 = 32;

fn asked_before(turn: &StoredTurn) -> Option<TurnRequest> {
    serde_json::from_value(turn.request.clone()).ok()
}

/// The place of a message, if a user said it.
async fn place_of_users(change: &mut Change, id: MessageId) -> Result<(i64, StoredMessage)> {
    let seq = place_of(&mut change.tx, id).await?;
    let stored = change.tx.message(id).await?.ok_or_else(super::gone)?;
    if stored.message.role == Role::User {
        return Ok((seq, stored));
    }
    let handle = change.tx.short_handle(&change.conversation.handle).await?;
    Err(Error::IsAnswer {
        to: format!("{handle}:{}", seq - 1),
    })
}
