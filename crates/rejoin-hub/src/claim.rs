//! Hands turns out: one holder at a time, in order, with a fence against those who lost theirs.

use std::time::Duration;

use rejoin_core::{ConversationId, Message, TurnId, TurnStatus};
use rejoin_store::{Attempt, Conversation, StoredTurn, Tx};

use crate::Hub;
use crate::error::{Error, Result};
use crate::figures;
use crate::hold::Hold;
use crate::lease::{Lease, Taking};
use crate::request::TurnRequest;

/// What to do next for a conversation.
#[derive(Debug, Clone)]
pub enum Next {
    /// Nothing is queued and nothing runs.
    Idle,
    /// Somebody holds a turn; whether that somebody lives is for the caller to find out.
    Held(Box<StoredTurn>),
    /// It is open in the agent's own terminal interface; whether that somebody lives, likewise.
    Opened(Box<Conversation>),
    Queued(TurnId),
}

/// A turn in the hands of a runner.
#[derive(Debug, Clone)]
pub struct Claimed {
    pub turn: StoredTurn,
    pub conversation: Conversation,
    pub message: Message,
    pub request: TurnRequest,
    pub attempts: Vec<Attempt>,
    /// Who held it before, if it was taken over.
    pub taken_from: Option<String>,
    pub lease: Lease,
    /// When this process began the turn, by [`Clock::since_boot`](crate::Clock::since_boot). None: another one did.
    pub since: Option<Duration>,
    /// Registers the turn in this process for as long as a task works on it.
    pub hold: Hold,
}

impl Hub {
    pub async fn next(&self, c: ConversationId) -> Result<Next> {
        let mut read = self.store.read().await?;
        if let Some(turn) = read.unfinished_turn(c).await? {
            return Ok(Next::Held(Box::new(turn)));
        }
        let conversation = read.conversation(c).await?;
        if let Some(opened) = conversation.filter(|c| c.opened_by.is_some()) {
            return Ok(Next::Opened(Box::new(opened)));
        }
        Ok(read
            .oldest_queued(c)
            .await?
            .map_or(Next::Idle, Next::Queued))
    }

    /// Takes a queued turn; its message takes its place in the history.
    pub async fn claim(&self, turn: TurnId, holder: &str) -> Result<Claimed> {
        let hold = Hold::new(turn);
        let mut tx = self.store.begin().await?;
        let (now, since) = (self.clock.now(), self.clock.since_boot());
        tx.claim_turn(turn, holder, now).await?;
        let stored = tx.turn(turn).await?.ok_or_else(gone)?;
        if let Some(c) = tx.conversation(stored.conversation).await?
            && c.opened_by.is_some()
        {
            return Err(rejoin_store::Error::Conflict("somebody has opened it meanwhile").into());
        }
        tx.place_message(stored.message).await?;
        let lease = self.first_lease(&mut tx, turn, holder).await?;
        tx.commit().await?;
        let mut claimed = self.claimed(turn, lease, hold).await?;
        // A turn that was put off began earlier.
        claimed.since = (claimed.turn.started_at == Some(now)).then_some(since);
        Ok(claimed)
    }

    /// Takes a turn whose holder is gone.
    pub async fn take_over(
        &self,
        turn: &StoredTurn,
        holder: &str,
        taking: Taking,
    ) -> Result<Claimed> {
        let hold = Hold::new(turn.id);
        let mut tx = self.store.begin().await?;
        tx.take_over_turn(turn.id, turn.fence, holder).await?;
        let lease = self.lease_taken(&mut tx, turn, holder, taking).await?;
        tx.commit().await?;
        figures::taken_over();
        tracing::info!(turn = %turn.id, "took over a turn whose holder is gone");
        let mut claimed = self.claimed(turn.id, lease, hold).await?;
        claimed.taken_from.clone_from(&turn.holder);
        Ok(claimed)
    }

    /// Leaves a turn that still runs to whoever comes next, this process included.
    pub async fn let_go(&self, claimed: &Claimed) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.let_go_turn(claimed.turn.id, claimed.turn.fence).await?;
        Ok(tx.commit().await?)
    }

    /// The same for a turn of which only its holder is known; of another's nothing is changed.
    pub async fn let_go_held(&self, turn: TurnId, holder: &str) -> Result<()> {
        let mut tx = self.store.begin().await?;
        if let Some(stored) = tx.turn(turn).await?
            && stored.holder.as_deref() == Some(holder)
        {
            tx.let_go_turn(turn, stored.fence).await?;
        }
        Ok(tx.commit().await?)
    }

    /// Nothing was started for it: back into the queue, as if never claimed.
    pub async fn requeue(&self, claimed: &Claimed) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.requeue_turn(claimed.turn.id, claimed.turn.fence).await?;
        // What is queued is not history yet; only a message that is run again was there before.
        if !self.is_retry(&mut tx, &claimed.turn).await? {
            tx.unplace(claimed.turn.message).await?;
        }
        for attempt in tx.attempts(claimed.turn.id).await? {
            tx.forget_pin(attempt.pin).await?;
        }
        tx.forget_attempts(claimed.turn.id).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Takes a message back for which nothing ran (`would_reseed`, a permission that cannot be
    /// expressed): as if it had never been sent.
    pub async fn withdraw(&self, claimed: &Claimed) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.holds(claimed.turn.id, claimed.turn.fence).await?;
        self.take_back(&mut tx, &claimed.turn).await?;
        Ok(tx.commit().await?)
    }

    /// Takes back a message whose turn is still in the queue. False: it is not any more.
    pub async fn withdraw_queued(&self, turn: TurnId) -> Result<bool> {
        let mut tx = self.store.begin().await?;
        let stored = tx.turn(turn).await?.ok_or_else(gone)?;
        if stored.status != TurnStatus::Queued {
            return Ok(false);
        }
        self.take_back(&mut tx, &stored).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// As if the message had never been sent, or never been run again.
    async fn take_back(&self, tx: &mut Tx, turn: &StoredTurn) -> Result<()> {
        if self.take_back_retry(tx, turn).await? {
            tx.withdraw_turn(turn.id).await?;
            return sticky(tx, turn).await;
        }
        tx.withdraw_turn(turn.id).await?;
        tx.withdraw_message(turn.message).await?;
        sticky(tx, turn).await?;
        tx.drop_empty_conversation(turn.conversation).await?;
        Ok(())
    }

    /// Takes the lease of a conversation for the agent's own terminal interface.
    pub async fn hold_open(&self, c: ConversationId, holder: &str) -> Result<()> {
        let mut tx = self.store.begin().await?;
        if tx.unfinished_turn(c).await?.is_some() || tx.queued_in_place(c).await? {
            return Err(Error::Busy);
        }
        tx.set_opened_by(c, None, Some(holder)).await?;
        let (_, until) = self.lease(&mut tx).await?;
        tx.renew_open(c, holder, until).await?;
        Ok(tx.commit().await?)
    }

    /// Gives it back, also in the place of a holder that died.
    pub async fn release_open(&self, c: ConversationId, holder: &str) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.set_opened_by(c, Some(holder), None).await?;
        Ok(tx.commit().await?)
    }

    pub async fn ask_cancel(&self, turn: TurnId) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.ask_cancel(turn).await?;
        Ok(tx.commit().await?)
    }

    pub async fn cancel_asked(&self, turn: TurnId) -> Result<bool> {
        Ok(self
            .store
            .read()
            .await?
            .turn(turn)
            .await?
            .is_some_and(|t| t.cancel))
    }

    async fn claimed(&self, turn: TurnId, lease: Lease, hold: Hold) -> Result<Claimed> {
        let mut read = self.store.read().await?;
        let turn = read.turn(turn).await?.ok_or_else(gone)?;
        let conversation = read
            .conversation(turn.conversation)
            .await?
            .ok_or_else(gone)?;
        let message = read.message(turn.message).await?.ok_or_else(gone)?.message;
        let attempts = read.attempts(turn.id).await?;
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
            hold,
        })
    }
}

/// The conversation's agent and folder are again those of its newest turn, which accepting the message
/// had changed.
pub(crate) async fn sticky(tx: &mut Tx, turn: &StoredTurn) -> Result<()> {
    let c = turn.conversation;
    if let Some(newest) = tx.last_turn(c).await?
        && let Ok(request) = serde_json::from_value::<TurnRequest>(newest.request)
    {
        let at = newest.ended_at.unwrap_or(turn.created_at);
        tx.touch_conversation(c, &newest.agent, &request.workdir, at)
            .await?;
    }
    tx.forget_agent_settings(c, &turn.agent).await?;
    Ok(())
}

fn gone() -> Error {
    Error::NotFound("the turn is gone".into())
}
