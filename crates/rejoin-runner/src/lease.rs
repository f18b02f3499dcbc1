//! Ownership of turns: finds out if another process holds a turn, and renews our own hold during
//! long work.

use std::future::Future;
use std::pin::Pin;

use rejoin_core::{ConversationId, TurnId, TurnStatus};
use rejoin_hub::{Claimed, Hub, TakeoverReason, is_worked_on, metrics};
use rejoin_store::{Conversation, StoredTurn, StoredWorkflow};

use crate::error::{Error, Result};
use crate::holder::Holder;
use crate::location::{HolderAt, HomeLocation};
use crate::stray_processes;
use crate::turn::Runner;

/// Ownership of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// A live process holds it.
    Held,
    /// Free to be taken over, for this reason.
    Free(TakeoverReason),
    /// Waits for a person without a process: there is nothing to do.
    Deferred,
}

/// Stored facts about a hold.
struct Hold<'a> {
    holder: Option<&'a str>,
    /// Home in which the hold was first taken.
    place: Option<&'a str>,
    until: Option<i64>,
    /// Turn that is held; None for a conversation that is open.
    turn: Option<TurnId>,
}

/// Returns the ownership of a turn as seen from this place.
pub(crate) async fn ownership(
    hub: &Hub,
    here: &HomeLocation,
    turn: &StoredTurn,
) -> Result<Ownership> {
    let let_go = turn.holder.is_none() && turn.place.is_none() && !turn.cancel;
    if let_go && turn.status == TurnStatus::Waiting && hub.is_deferred(turn.id).await? {
        return Ok(Ownership::Deferred);
    }
    let hold = Hold {
        holder: turn.holder.as_deref(),
        place: turn.place.as_deref(),
        until: turn.lease_until,
        turn: Some(turn.id),
    };
    owner(hub, here, &hold).await
}

/// Returns true if a live process has the conversation open.
pub(crate) async fn is_open(hub: &Hub, here: &HomeLocation, c: &Conversation) -> Result<bool> {
    let hold = Hold {
        holder: c.opened_by.as_deref(),
        place: None,
        until: c.opened_until,
        turn: None,
    };
    Ok(owner(hub, here, &hold).await? == Ownership::Held)
}

/// Returns true if a live process runs the workflow.
pub(crate) async fn is_held_workflow(
    hub: &Hub,
    here: &HomeLocation,
    run: &StoredWorkflow,
) -> Result<bool> {
    let hold = Hold {
        holder: run.holder.as_deref(),
        place: None,
        until: run.lease_until,
        turn: None,
    };
    Ok(run.holder.is_some() && owner(hub, here, &hold).await? == Ownership::Held)
}

async fn owner(hub: &Hub, here: &HomeLocation, hold: &Hold<'_>) -> Result<Ownership> {
    let holder = hold.holder.and_then(|h| h.parse::<HolderAt>().ok());
    let lives = |alive: bool, taking: TakeoverReason| {
        if alive {
            Ownership::Held
        } else {
            Ownership::Free(taking)
        }
    };
    let process = holder.as_ref().map(|holder| &holder.process);
    // This process is alive, but it holds only turns that one of its tasks works on.
    let alive = match hold.turn {
        Some(turn) if process.is_some_and(Holder::is_me) => is_worked_on(turn),
        Some(_) | None => process.is_some_and(Holder::is_alive),
    };
    let place = match &holder {
        Some(HolderAt { place, .. }) => place.clone(),
        None => hold.place.and_then(|place| place.parse().ok()),
    };
    if place.is_none_or(|place| place == *here) {
        return Ok(lives(alive, TakeoverReason::Dead));
    }
    if hub.is_shared() {
        // Processes on another machine are not visible from here, and a machine's name proves
        // nothing.
        let now = hub.store_clock().await?;
        let until = hold.until.unwrap_or(0);
        return Ok(lives(until > now, TakeoverReason::Silent));
    }
    // Another home on the only machine that uses this store, or that machine under another name:
    // its processes are visible.
    let runs = || {
        let turn = hold.turn.map(|turn| turn.to_string());
        turn.is_some_and(|turn| !stray_processes::marked(&turn).is_empty())
    };
    Ok(lives(alive || runs(), TakeoverReason::Silent))
}

impl Runner {
    /// Returns the place of this process: machine and home.
    pub(crate) fn here(&self) -> Result<&HomeLocation> {
        if self.place.get().is_none() {
            let place =
                HomeLocation::of(&self.config.home).map_err(Error::io("looking at the home"))?;
            drop(self.place.set(place));
        }
        let place = self.place.get();
        place.ok_or_else(|| Error::Internal("the home has no name".into()))
    }

    /// Returns the identity of this process as a holder of turns.
    pub fn holder(&self) -> Result<String> {
        let process = Holder::me().map_err(Error::io("finding out who this process is"))?;
        let place = Some(self.here()?.clone());
        Ok(HolderAt { place, process }.to_string())
    }

    /// Returns true if a live process holds the turn.
    pub async fn is_held(&self, turn: &StoredTurn) -> Result<bool> {
        Ok(ownership(&self.hub, self.here()?, turn).await? == Ownership::Held)
    }

    /// Gives up a turn that this process holds, so that another can take it over.
    pub async fn leave(&self, turn: TurnId) -> Result<()> {
        Ok(self.hub.let_go_held(turn, &self.holder()?).await?)
    }

    /// Runs `work`, which may take long, and renews the lease of the turn meanwhile. Returns an error if
    /// another holder took the turn.
    ///
    /// `work` is boxed because it is by far the largest future of a command and would otherwise take
    /// up the stack several times over.
    pub(crate) async fn holding<T>(
        &self,
        claimed: &Claimed,
        work: Pin<Box<impl Future<Output = Result<T>>>>,
    ) -> Result<T> {
        tokio::select! {
            biased;
            done = work => done,
            lost = self.renewing(claimed) => Err(lost),
        }
    }

    /// Renews the lease until another holder has the turn; then no more work may be done for it.
    async fn renewing(&self, claimed: &Claimed) -> Error {
        loop {
            self.until_next().await;
            // If the store is unreachable, try again: the shim knows how long it may continue.
            if matches!(self.hub.renew(claimed).await, Ok(false))
                && let Some(error) = self.lost(claimed).await
            {
                return error;
            }
        }
    }

    async fn until_next(&self) {
        match self.hub.renews_every() {
            Some(every) => tokio::time::sleep(every).await,
            None => std::future::pending().await,
        }
    }

    /// Returns an error if another holder took the turn, None if the turn has only ended.
    async fn lost(&self, claimed: &Claimed) -> Option<Error> {
        let turn = self.hub.stored_turn(claimed.turn.id).await.ok()??;
        (turn.fence != claimed.turn.fence).then(|| {
            metrics::lease_lost();
            tracing::warn!(turn = %claimed.turn.id, "another machine has taken this turn over");
            let text =
                "another machine has taken this turn over: this one was not heard of in time";
            rejoin_store::Error::Conflict(text).into()
        })
    }

    /// Runs `work` and renews the hold on an open conversation. If the hold is lost meanwhile, the
    /// work continues.
    pub(crate) async fn holding_open<T>(
        &self,
        c: ConversationId,
        holder: &str,
        work: impl Future<Output = T>,
    ) -> T {
        let renewing = async {
            loop {
                self.until_next().await;
                drop(self.hub.renew_open(c, holder).await);
            }
        };
        tokio::select! {
            biased;
            done = work => done,
            () = renewing => std::future::pending().await,
        }
    }
}
