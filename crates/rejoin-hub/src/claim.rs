//! Hands out turns: one holder at a time, in order. A fence rejects writes of a holder that lost
//! its turn.

use std::time::Duration;

use rejoin_core::{ConversationId, Message, TurnId, TurnStatus};
use rejoin_store::{Attempt, Conversation, StoredTurn, Tx};

use crate::Hub;
use crate::active::ActiveTurn;
use crate::climb::BY_SCHEDULE;
use crate::error::{Error, Result};
use crate::lease::{Lease, TakeoverReason};
use crate::metrics;
use crate::request::TurnRequest;

/// Next action for a conversation.
#[derive(Debug, Clone)]
pub enum NextAction {
    /// Nothing is queued and nothing runs.
    Idle,
    /// A process holds a turn. The caller must find out if that process is alive.
    Held(Box<StoredTurn>),
    /// An agent's own terminal interface has it open. The caller must find out if that process is
    /// alive.
    Opened(Box<Conversation>),
    Queued(TurnId),
}

/// A turn that this process holds.
#[derive(Debug, Clone)]
pub struct Claimed {
    pub turn: StoredTurn,
    pub conversation: Conversation,
    pub message: Message,
    pub request: TurnRequest,
    pub attempts: Vec<Attempt>,
    /// Previous holder, if the turn was taken over.
    pub taken_from: Option<String>,
    pub lease: Lease,
    /// Time at which this process started the turn, by
    /// [`Clock::since_boot`](crate::Clock::since_boot). `None`: another process started it.
    pub since: Option<Duration>,
    /// Registers the turn in this process for as long as a task works on it.
    pub active: ActiveTurn,
}

impl Claimed {
    /// Returns true if the turn that asked for a climb, or an occurrence of a schedule, names this turn.
    pub fn is_named_elsewhere(&self) -> bool {
        self.turn.parent.is_some() || self.turn.trigger.as_deref() == Some(BY_SCHEDULE)
    }
}

impl Hub {
    /// Returns a turn; None if it was withdrawn.
    pub async fn stored_turn(&self, turn: TurnId) -> Result<Option<StoredTurn>> {
        Ok(self.store.read().await?.turns().get(turn).await?)
    }

    /// Returns the turns that run or wait for an answer.
    pub async fn running_turns(&self) -> Result<Vec<StoredTurn>> {
        Ok(self.store.read().await?.turns().running().await?)
    }

    /// Returns the turns that run or wait for an answer, and the conversations with turns that are
    /// queued on this machine.
    pub async fn unfinished(&self) -> Result<(Vec<StoredTurn>, Vec<ConversationId>)> {
        let mut read = self.store.read().await?;
        let queued = read.turns().queued_conversations(&self.machine).await?;
        Ok((read.turns().running().await?, queued))
    }

    /// Returns the conversations that a process has open.
    pub async fn opened(&self) -> Result<Vec<Conversation>> {
        Ok(self.store.read().await?.conversations().opened().await?)
    }

    pub async fn next(&self, c: ConversationId) -> Result<NextAction> {
        let mut read = self.store.read().await?;
        if let Some(turn) = read.turns().unfinished(c).await? {
            return Ok(NextAction::Held(Box::new(turn)));
        }
        let conversation = read.conversations().get(c).await?;
        if let Some(opened) = conversation.filter(|c| c.opened_by.is_some()) {
            return Ok(NextAction::Opened(Box::new(opened)));
        }
        Ok(read
            .turns()
            .oldest_queued(c)
            .await?
            .map_or(NextAction::Idle, NextAction::Queued))
    }

    /// Claims a queued turn and gives its message a position in the history.
    pub async fn claim(&self, turn: TurnId, holder: &str) -> Result<Claimed> {
        let active = ActiveTurn::new(turn);
        let mut tx = self.store.begin().await?;
        let (now, since) = (self.clock.now(), self.clock.since_boot());
        tx.turns().claim(turn, holder, now).await?;
        let stored = tx.turns().get(turn).await?.ok_or_else(gone)?;
        if let Some(c) = tx.conversations().get(stored.conversation).await?
            && c.opened_by.is_some()
        {
            return Err(rejoin_store::Error::Conflict("somebody has opened it meanwhile").into());
        }
        tx.messages().place(stored.message).await?;
        let lease = self.first_lease(&mut tx, turn, holder).await?;
        tx.commit().await?;
        let mut claimed = self.claimed(turn, lease, active).await?;
        // A deferred turn began earlier.
        claimed.since = (claimed.turn.started_at == Some(now)).then_some(since);
        Ok(claimed)
    }

    /// Takes over a turn whose holder is gone.
    pub async fn take_over(
        &self,
        turn: &StoredTurn,
        holder: &str,
        taking: TakeoverReason,
    ) -> Result<Claimed> {
        let active = ActiveTurn::new(turn.id);
        let mut tx = self.store.begin().await?;
        tx.turns().take_over(turn.id, turn.fence, holder).await?;
        let lease = self.lease_taken(&mut tx, turn, holder, taking).await?;
        tx.commit().await?;
        metrics::taken_over();
        tracing::info!(turn = %turn.id, "took over a turn whose holder is gone");
        let mut claimed = self.claimed(turn.id, lease, active).await?;
        claimed.taken_from.clone_from(&turn.holder);
        Ok(claimed)
    }

    /// Releases a turn that still runs, so that any process may take it over, this one included.
    pub async fn let_go(&self, claimed: &Claimed) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.turns()
            .release(claimed.turn.id, claimed.turn.fence)
            .await?;
        Ok(tx.commit().await?)
    }

    /// Releases a turn by its id. Does nothing if `holder` does not hold it.
    pub async fn let_go_held(&self, turn: TurnId, holder: &str) -> Result<()> {
        let mut tx = self.store.begin().await?;
        if let Some(stored) = tx.turns().get(turn).await?
            && stored.holder.as_deref() == Some(holder)
        {
            tx.turns().release(turn, stored.fence).await?;
        }
        Ok(tx.commit().await?)
    }

    /// Puts a turn back into the queue as if never claimed. Only for turns for which no process was
    /// started.
    pub async fn requeue(&self, claimed: &Claimed) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.turns()
            .requeue(claimed.turn.id, claimed.turn.fence)
            .await?;
        // Queued messages are not part of the history. Only a retried message was in it before.
        if !self.is_retry(&mut tx, &claimed.turn).await? {
            tx.changes().unplace(claimed.turn.message).await?;
        }
        for attempt in tx.attempts().of(claimed.turn.id).await? {
            tx.pins().forget(attempt.pin).await?;
        }
        tx.attempts().forget_all(claimed.turn.id).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Withdraws a message for which no process ran (`would_reseed`, a permission that the agent
    /// cannot enforce), as if it had never been sent.
    pub async fn withdraw(&self, claimed: &Claimed) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.turns()
            .check_fence(claimed.turn.id, claimed.turn.fence)
            .await?;
        self.take_back(&mut tx, &claimed.turn).await?;
        Ok(tx.commit().await?)
    }

    /// Withdraws a message whose turn is still queued. Returns false if it is queued no longer.
    pub async fn withdraw_queued(&self, turn: TurnId) -> Result<bool> {
        let mut tx = self.store.begin().await?;
        let stored = tx.turns().get(turn).await?.ok_or_else(gone)?;
        if stored.status != TurnStatus::Queued {
            return Ok(false);
        }
        self.take_back(&mut tx, &stored).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Removes the turn as if its message had never been sent, or never been retried.
    async fn take_back(&self, tx: &mut Tx, turn: &StoredTurn) -> Result<()> {
        if self.take_back_retry(tx, turn).await? {
            tx.turns().withdraw(turn.id).await?;
            return sticky(tx, turn).await;
        }
        tx.turns().withdraw(turn.id).await?;
        tx.messages().withdraw(turn.message).await?;
        sticky(tx, turn).await?;
        tx.conversations()
            .drop_empty(turn.conversation, self.clock.now())
            .await?;
        Ok(())
    }

    /// Takes the lease of a conversation for the agent's own terminal interface.
    pub async fn hold_open(&self, c: ConversationId, holder: &str) -> Result<()> {
        let mut tx = self.store.begin().await?;
        if tx.turns().unfinished(c).await?.is_some() || tx.changes().queued_in_place(c).await? {
            return Err(Error::Busy);
        }
        tx.conversations()
            .set_opened_by(c, None, Some(holder))
            .await?;
        let (_, until) = self.lease(&mut tx).await?;
        tx.leases().renew_open(c, holder, until).await?;
        Ok(tx.commit().await?)
    }

    /// Releases that lease, also for a holder that died.
    pub async fn release_open(&self, c: ConversationId, holder: &str) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.conversations()
            .set_opened_by(c, Some(holder), None)
            .await?;
        Ok(tx.commit().await?)
    }

    pub async fn ask_cancel(&self, turn: TurnId) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.turns().request_cancel(turn).await?;
        Ok(tx.commit().await?)
    }

    pub async fn cancel_asked(&self, turn: TurnId) -> Result<bool> {
        Ok(self
            .store
            .read()
            .await?
            .turns()
            .get(turn)
            .await?
            .is_some_and(|t| t.cancel))
    }

    async fn claimed(&self, turn: TurnId, lease: Lease, active: ActiveTurn) -> Result<Claimed> {
        let mut read = self.store.read().await?;
        let turn = read.turns().get(turn).await?.ok_or_else(gone)?;
        let conversation = read
            .conversations()
            .get(turn.conversation)
            .await?
            .ok_or_else(gone)?;
        let message = read
            .messages()
            .get(turn.message)
            .await?
            .ok_or_else(gone)?
            .message;
        let attempts = read.attempts().of(turn.id).await?;
        let request = serde_json::from_value(turn.request.clone())
            .map_err(|e| Error::Internal(format!("the request of a turn cannot be read: {e}")))?;
        Ok(Claimed {
            turn,
            conversation,
            message,
            request,
            attempts,
            taken_from: None,
            lease,
            since: None,
            active,
        })
    }
}

/// Resets the conversation's agent and folder to those of its newest turn: accepting the withdrawn
/// message had changed them.
pub(crate) async fn sticky(tx: &mut Tx, turn: &StoredTurn) -> Result<()> {
    let c = turn.conversation;
    if let Some(newest) = tx.turns().last(c).await?
        && let Ok(request) = serde_json::from_value::<TurnRequest>(newest.request)
    {
        let at = newest.ended_at.unwrap_or(turn.created_at);
        tx.conversations()
            .touch(c, &newest.agent, &request.workdir, at)
            .await?;
    }
    tx.conversations()
        .forget_agent_settings(c, &turn.agent)
        .await?;
    Ok(())
}

fn gone() -> Error {
    Error::NotFound("the turn is gone".into())
}
