//! The state of a conversation for a scheduler: what has to be run, and whether that takes a new process.

use rejoin_core::{ConversationId, TurnId};
use rejoin_hub::{Accepted, Next};
use tokio::sync::watch;

use crate::error::Result;
use crate::lease::{Hands, hands};
use crate::turn::{IfBusy, Runner};

/// What a conversation waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pending {
    /// Nothing is queued and nothing runs.
    Idle,
    /// Another process or task has it.
    Elsewhere,
    /// This turn waits for a person, and no process of it runs.
    Resting(TurnId),
    /// This turn was begun: it has to be followed, or ended.
    Begun(TurnId),
    /// For this turn an agent has to be started.
    Startable(TurnId),
}

impl Runner {
    pub async fn pending(&self, c: ConversationId) -> Result<Pending> {
        Ok(match self.hub.next(c).await? {
            Next::Idle => Pending::Idle,
            Next::Queued(turn) => Pending::Startable(turn),
            Next::Opened(opened) => {
                self.release_if_dead(&opened).await?;
                Pending::Elsewhere
            }
            Next::Held(held) => match hands(&self.hub, self.here()?, &held).await? {
                Hands::Held => Pending::Elsewhere,
                Hands::Resting => Pending::Resting(held.id),
                Hands::Free(_) if !held.cancel && self.hub.is_deferred(held.id).await? => {
                    Pending::Startable(held.id)
                }
                Hands::Free(_) => Pending::Begun(held.id),
            },
        })
    }

    /// Runs a turn that was claimed when it was accepted, to its end or until it waits for a person
    /// without a process.
    pub async fn run_in_hand(
        &self,
        accepted: &Accepted,
        if_busy: IfBusy,
        cancel: &watch::Receiver<bool>,
    ) -> Result<()> {
        if let Some(claimed) = &accepted.claimed {
            rejoin_hub::fault::point("after_claim");
            self.run(claimed, if_busy, cancel.clone()).await?;
        }
        Ok(())
    }
}
