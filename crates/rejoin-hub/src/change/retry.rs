//! Runs a message again: later messages are removed, the message keeps its id, and no session is
//! resumed.

use rejoin_core::{AgentName, EventBody, Fresh, MessageId, MessageState, Role, ToolNote, TurnId};
use rejoin_store::{Change as StoredChange, NewTurn, StoredMessage, StoredTurn, Tx};
use serde::{Deserialize, Serialize};

use super::edit::place_of;
use super::{Change, ChangeMode, Changed, Made, Undo};
use crate::Hub;
use crate::accept::{Accepted, may_continue, settle_request, to_json};
use crate::active::ActiveTurn;
use crate::claim::Claimed;
use crate::climb::BY_USER;
use crate::error::{Error, Result};
use crate::request::{TurnFlags, TurnRequest};

/// State of a message before it was run again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RetriedMessage {
    pub(super) message: MessageId,
    /// Turn that the retry created. `old_turn` is the one that the message belonged to before.
    turn: TurnId,
    old_turn: TurnId,
    answered: bool,
    trail: Vec<ToolNote>,
}

impl RetriedMessage {
    pub(super) async fn put_back(&self, tx: &mut Tx) -> Result<()> {
        let state = if self.answered {
            MessageState::Ok
        } else {
            MessageState::Unanswered
        };
        Ok(tx
            .changes()
            .hand_over(self.message, self.old_turn, state, &self.trail)
            .await?)
    }
}

/// Options of a retry.
#[derive(Debug, Clone)]
pub struct RetryOptions {
    pub message: MessageId,
    /// `None`: the agent that answered the message before.
    pub agent: Option<AgentName>,
    pub flags: TurnFlags,
    pub request: TurnRequest,
    /// Idempotency key: a second request with it returns the same turn and never runs it twice.
    pub client_key: Option<String>,
    /// True if the caller confirmed continuing a conversation whose policy is `ask`.
    pub confirmed: bool,
    /// Refuses the retry if the store already has this many queued messages. `None`: no limit.
    pub queue_limit: Option<u64>,
}

/// Digest that marks the request of a turn as a retry of this message. No other request has it.
fn digest_of(message: MessageId) -> String {
    format!("retry {message}")
}

impl Hub {
    /// Removes later messages and claims the new turn for `holder`, in one transaction.
    pub async fn retry(&self, again: &RetryOptions, holder: &str) -> Result<Accepted> {
        let c = self.conversation_of(again.message).await?;
        let mut change = match self.begin_change(c).await {
            Ok(change) => change,
            // The conversation may be busy with the turn of an earlier request under the same key.
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
        tx.changes().drop_queued_turns_of(again.message).await?;
        if let Some(most) = again.queue_limit
            && tx.turns().count_queued().await? >= most
        {
            return Err(Error::QueueFull { most });
        }
        let turn = self.clock.turn_id()?;
        let retried = RetriedMessage {
            message: again.message,
            turn,
            old_turn: stored.turn,
            answered: stored.message.state == MessageState::Ok,
            trail: stored.message.trail.clone(),
        };
        tx.changes()
            .hand_over(again.message, turn, MessageState::Ok, &[])
            .await?;
        let conversation = change.conversation.clone();
        let before = tx.turns().get(stored.turn).await?;
        let agent = again.agent.clone();
        let agent = agent.or_else(|| before.as_ref().map(|turn| turn.agent.clone()));
        let agent = agent.unwrap_or_else(|| conversation.agent.clone());
        // Never wider than the original turn: its permissions apply unless this request changes
        // them.
        let was = before.as_ref().and_then(asked_before);
        let same = before.is_some_and(|turn| turn.agent == agent);
        let flags = match &was {
            Some(was) => again.flags.clone().after(was, same),
            None => again.flags.clone(),
        };
        let mut asked = again.request.clone();
        if let Some(was) = was {
            asked.raw = was.raw;
            asked.instructions = asked.instructions.or(was.instructions);
        }
        let mut request = settle_request(tx, &flags, &asked, &conversation, &agent).await?;
        self.may_run(&agent, &request)?;
        if let Some(tier) = &mut request.tier {
            tier.ceiling = self.ceiling;
        }
        self.limit_request(tx, &conversation.namespace, &mut request, now)
            .await?;
        request.fresh = Some(Fresh::Retry);
        request.digest = Some(digest_of(again.message));
        tx.turns()
            .add(&NewTurn {
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
        self.reserve_calls(tx, &conversation.namespace, turn, &request)
            .await?;
        self.begin_chain(tx, turn, &request, BY_USER).await?;
        tx.conversations()
            .touch(c, &agent, &request.workdir, now)
            .await?;
        let accepted = EventBody::TurnAccepted {
            message_id: again.message,
        };
        tx.events().add(c, turn, now, &[accepted]).await?;
        let lease = self.first_lease(tx, turn, holder).await?;
        let stored_turn = tx.turns().get(turn).await?;
        let message = tx.messages().get(again.message).await?.map(|m| m.message);
        let claimed = message
            .zip(stored_turn)
            .map(|(message, turn)| Claimed {
                active: ActiveTurn::new(turn.id),
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
        self.end_change(change, made, ChangeMode::Now).await?;
        Ok(Accepted {
            conversation: c,
            turn,
            replayed: false,
            created: false,
            claimed: Some(Box::new(claimed)),
        })
    }

    /// Returns the turn that an earlier request created under the same key, or `None`. Fails if the
    /// key belongs to another request.
    async fn retried_before(&self, tx: &mut Tx, again: &RetryOptions) -> Result<Option<Accepted>> {
        let Some(key) = &again.client_key else {
            return Ok(None);
        };
        let Some(before) = tx.turns().by_key(&self.namespace, key).await? else {
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

    /// Returns the agent of the turn that a message belongs to. `None`: no turn ran for it.
    pub async fn agent_of(&self, message: MessageId) -> Result<Option<AgentName>> {
        let mut read = self.store.read().await?;
        let Some(stored) = read.messages().get(message).await? else {
            return Ok(None);
        };
        let turn = read.turns().get(stored.turn).await?;
        Ok(turn.map(|turn| turn.agent))
    }

    /// Returns the messages that a retry would remove and the agents it would affect.
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
        self.end_change(change, made, ChangeMode::Later).await
    }

    /// Undoes the retry that created this turn, for which no process could be started. Returns
    /// false if the turn is no retry.
    pub(crate) async fn take_back_retry(&self, tx: &mut Tx, turn: &StoredTurn) -> Result<bool> {
        let Some(change) = retry_of(tx, turn).await? else {
            return Ok(false);
        };
        self.revert(tx, turn.conversation, &change).await?;
        tx.changes()
            .mark_undone(change.id, self.clock.now())
            .await?;
        Ok(true)
    }

    pub(crate) async fn is_retry(&self, tx: &mut Tx, turn: &StoredTurn) -> Result<bool> {
        Ok(retry_of(tx, turn).await?.is_some())
    }
}

/// Returns the change that created this turn, if it is a retry.
async fn retry_of(tx: &mut Tx, turn: &StoredTurn) -> Result<Option<StoredChange>> {
    let of_this = |change: &StoredChange| {
        let undo = serde_json::from_value::<Undo>(change.body.clone());
        undo.is_ok_and(
            |undo| matches!(undo, Undo::Cut { retried: Some(r), .. } if r.turn == turn.id),
        )
    };
    let changes = tx.changes().list(turn.conversation, CHANGES).await?;
    Ok(changes.into_iter().find(of_this))
}

/// Number of changes to search. The retry of a turn that never ran is among the newest.
const CHANGES: i64 = 32;

fn asked_before(turn: &StoredTurn) -> Option<TurnRequest> {
    serde_json::from_value(turn.request.clone()).ok()
}

/// Returns the position of a user's message. Fails for an answer.
async fn place_of_users(change: &mut Change, id: MessageId) -> Result<(i64, StoredMessage)> {
    let seq = place_of(&mut change.tx, id).await?;
    let stored = change
        .tx
        .messages()
        .get(id)
        .await?
        .ok_or_else(super::gone)?;
    if stored.message.role == Role::User {
        return Ok((seq, stored));
    }
    let handle = change
        .tx
        .conversations()
        .short_handle(&change.conversation.handle)
        .await?;
    Err(Error::IsAnswer {
        to: format!("{handle}:{}", seq - 1),
    })
}
