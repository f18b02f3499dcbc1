//! Scheduler loop of one conversation: runs its turns in order, until one of them has ended.

use std::time::Duration;

use rejoin_core::{ConversationId, TurnId};
use rejoin_hub::{Accepted, Claimed, IfBusy, NextAction, TakeoverReason, fault};
use rejoin_store::StoredTurn;
use tokio::sync::watch;

use crate::error::{Error, Result};
use crate::lease::{Ownership, ownership};
use crate::recover::WaitMode;
use crate::turn::{Runner, TurnState};

/// Interval between two checks of a turn that another process holds.
const POLL_HELD: Duration = Duration::from_millis(40);

/// Interval between two checks of a turn that waits for an answer.
const POLL_ANSWERS: Duration = Duration::from_millis(200);

/// State of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pending {
    /// Nothing is queued and nothing runs.
    Idle,
    /// Another process or task handles it.
    Elsewhere,
    /// Turn that waits for a person, and of which no process runs.
    Resting(TurnId),
    /// Turn that has begun: it has to be followed, or ended.
    Begun(TurnId),
    /// Turn for which an agent has to be started.
    Startable(TurnId),
}

/// Behaviour of the loop once the turn waits for a person without a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnDeferred {
    Wait,
    Return,
}

impl Runner {
    /// Returns the state of a conversation.
    pub async fn pending(&self, c: ConversationId) -> Result<Pending> {
        Ok(match self.hub.next(c).await? {
            NextAction::Idle => Pending::Idle,
            NextAction::Queued(turn) => Pending::Startable(turn),
            NextAction::Opened(opened) => {
                self.release_if_dead(&opened).await?;
                Pending::Elsewhere
            }
            NextAction::Held(held) => match ownership(&self.hub, self.here()?, &held).await? {
                Ownership::Held => Pending::Elsewhere,
                Ownership::Deferred => Pending::Resting(held.id),
                Ownership::Free(_) if !held.cancel && self.hub.is_deferred(held.id).await? => {
                    Pending::Startable(held.id)
                }
                Ownership::Free(_) => Pending::Begun(held.id),
            },
        })
    }

    /// Runs a turn that was claimed when it was accepted, until it ends or waits for a person
    /// without a process.
    pub async fn run_in_hand(
        &self,
        accepted: &Accepted,
        if_busy: IfBusy,
        cancel: &watch::Receiver<bool>,
    ) -> Result<()> {
        if let Some(claimed) = &accepted.claimed {
            fault::point("after_claim");
            self.run(claimed, if_busy, cancel.clone()).await?;
        }
        Ok(())
    }

    /// Runs a turn that was just accepted: at once if it is claimed, otherwise when it is next.
    pub async fn run_accepted(
        &self,
        accepted: &Accepted,
        if_busy: IfBusy,
        cancel: &watch::Receiver<bool>,
    ) -> Result<()> {
        if let Some(claimed) = &accepted.claimed {
            fault::point("after_claim");
            if self.run(claimed, if_busy, cancel.clone()).await? == TurnState::Ended {
                return Ok(());
            }
        }
        let (c, turn) = (accepted.conversation, accepted.turn);
        self.run_until(c, turn, if_busy, cancel).await
    }

    /// Runs the queued turns of a conversation, in order, until `turn` has ended.
    pub async fn run_until(
        &self,
        c: ConversationId,
        turn: TurnId,
        if_busy: IfBusy,
        cancel: &watch::Receiver<bool>,
    ) -> Result<()> {
        self.run_on(c, turn, if_busy, cancel, OnDeferred::Wait)
            .await
    }

    /// Runs like [`Self::run_until`], but also returns when `turn` waits for a person without a
    /// process.
    pub async fn run_to_rest(
        &self,
        c: ConversationId,
        turn: TurnId,
        if_busy: IfBusy,
        cancel: &watch::Receiver<bool>,
    ) -> Result<()> {
        self.run_on(c, turn, if_busy, cancel, OnDeferred::Return)
            .await
    }

    async fn run_on(
        &self,
        c: ConversationId,
        turn: TurnId,
        if_busy: IfBusy,
        cancel: &watch::Receiver<bool>,
        on_deferred: OnDeferred,
    ) -> Result<()> {
        let mut wake = self.wake.subscribe();
        loop {
            if *cancel.borrow() && self.hub.withdraw_queued(turn).await? {
                return Err(Error::Cancelled);
            }
            if self.has_ended(turn).await? {
                return Ok(());
            }
            match self.hub.next(c).await? {
                NextAction::Idle => {}
                NextAction::Queued(next) => match self.hub.claim(next, &self.holder()?).await {
                    Ok(claimed) if next == turn => {
                        fault::point("after_claim");
                        let state = self.run(&claimed, if_busy, cancel.clone()).await?;
                        if state == TurnState::Ended {
                            return Ok(());
                        }
                    }
                    Ok(claimed) => {
                        fault::point("after_claim");
                        self.run_before(&claimed, cancel.clone()).await?;
                    }
                    Err(error) if error.is_conflict() => {}
                    Err(error) => return Err(error.into()),
                },
                NextAction::Held(held) => match ownership(&self.hub, self.here()?, &held).await? {
                    Ownership::Held => tokio::time::sleep(POLL_HELD).await,
                    Ownership::Free(taking) => self.take_up(&held, taking, turn, cancel).await?,
                    Ownership::Deferred if held.id == turn && *cancel.borrow() => {
                        self.hub.ask_cancel(turn).await?;
                    }
                    Ownership::Deferred if held.id == turn && on_deferred == OnDeferred::Return => {
                        return Ok(());
                    }
                    Ownership::Deferred => {
                        // An answer that is given in this process sends a wake-up.
                        let _waked = tokio::time::timeout(POLL_ANSWERS, wake.changed()).await;
                    }
                },
                NextAction::Opened(opened) => {
                    if self.release_if_dead(&opened).await? {
                        tokio::time::sleep(POLL_HELD).await;
                    }
                }
            }
        }
    }

    /// Returns true if the turn has ended. Returns an error if it was withdrawn.
    async fn has_ended(&self, turn: TurnId) -> Result<bool> {
        let stored = self.hub.stored_turn(turn).await?;
        let withdrawn = || rejoin_hub::Error::NotFound("the turn was withdrawn".into());
        Ok(stored.ok_or_else(withdrawn)?.status.ended())
    }

    /// Takes over a turn without a holder: `ours`, or one that comes before it.
    async fn take_up(
        &self,
        held: &StoredTurn,
        taking: TakeoverReason,
        ours: TurnId,
        cancel: &watch::Receiver<bool>,
    ) -> Result<()> {
        let claimed = match self.hub.take_over(held, &self.holder()?, taking).await {
            Ok(claimed) => claimed,
            Err(error) if error.is_conflict() => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let done = if held.id == ours {
            self.pick_up(&claimed, WaitMode::Wait(cancel.clone())).await
        } else {
            self.let_finish(&claimed, cancel.clone()).await
        };
        // Otherwise no process could try again while this one lives.
        if done.is_err() {
            drop(self.hub.let_go(&claimed).await);
        }
        done
    }

    /// Runs a turn of another sender that comes before ours. Giving up the wait does not cancel it.
    async fn run_before(&self, claimed: &Claimed, mut cancel: watch::Receiver<bool>) -> Result<()> {
        let (_open, never) = watch::channel(false);
        tokio::select! {
            ran = self.run(claimed, IfBusy::Wait, never) => match ran {
                Err(error @ Error::Hub(_)) => Err(error),
                // The result is recorded in the turn, or reported to its sender.
                Ok(_) | Err(_) => Ok(()),
            },
            () = cancelled(&mut cancel) => Ok(self.hub.let_go(claimed).await?),
        }
    }

    /// Follows a turn that comes before ours to its end. Giving up the wait does not cancel it.
    async fn let_finish(&self, claimed: &Claimed, mut cancel: watch::Receiver<bool>) -> Result<()> {
        let (_open, never) = watch::channel(false);
        tokio::select! {
            done = self.pick_up(claimed, WaitMode::Wait(never)) => done,
            () = cancelled(&mut cancel) => Ok(self.hub.let_go(claimed).await?),
        }
    }
}

/// Waits for the signal to stop. Never returns if the sender is gone.
pub(crate) async fn cancelled(cancel: &mut watch::Receiver<bool>) {
    if cancel.wait_for(|asked| *asked).await.is_err() {
        std::future::pending::<()>().await;
    }
}
