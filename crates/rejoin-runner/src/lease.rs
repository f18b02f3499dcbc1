//! Whether somebody holds a turn, and holding it oneself while something takes its time.

use std::future::Future;
use std::pin::Pin;

use rejoin_core::{ConversationId, TurnId, TurnStatus};
use rejoin_hub::{Claimed, Hub, Taking, figures, is_worked_on};
use rejoin_store::{Conversation, StoredTurn};

use crate::error::{Error, Result};
use crate::holder::Holder;
use crate::leftovers;
use crate::place::{HolderAt, Place};
use crate::turn::Runner;

/// Whose a turn is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hands {
    /// Somebody lives who has it.
    Held,
    /// It can be taken, for this reason.
    Free(Taking),
    /// It waits for a person, and nothing of it runs: there is nothing to be done.
    Resting,
}

/// What is known of somebody's hold.
struct Hold<'a> {
    holder: Option<&'a str>,
    /// Where it was held first.
    place: Option<&'a str>,
    until: Option<i64>,
    /// The turn that is held; none: a conversation that is open.
    turn: Option<TurnId>,
}

/// Whose a turn is, for somebody in this place.
pub(crate) async fn hands(hub: &Hub, here: &Place, turn: &StoredTurn) -> Result<Hands> {
    let let_go = turn.holder.is_none() && turn.place.is_none() && !turn.cancel;
    if let_go && turn.status == TurnStatus::Waiting && hub.is_deferred(turn.id).await? {
        return Ok(Hands::Resting);
    }
    let hold = Hold {
        holder: turn.holder.as_deref(),
        place: turn.place.as_deref(),
        until: turn.lease_until,
        turn: Some(turn.id),
    };
    whose(hub, here, &hold).await
}

/// Has somebody got it open who lives?
pub(crate) async fn is_open(hub: &Hub, here: &Place, c: &Conversation) -> Result<bool> {
    let hold = Hold {
        holder: c.opened_by.as_deref(),
        place: None,
        until: c.opened_until,
        turn: None,
    };
    Ok(whose(hub, here, &hold).await? == Hands::Held)
}

async fn whose(hub: &Hub, here: &Place, hold: &Hold<'_>) -> Result<Hands> {
    let holder = hold.holder.and_then(|h| h.parse::<HolderAt>().ok());
    let lives = |alive: bool, taking: Taking| {
        if alive {
            Hands::Held
        } else {
            Hands::Free(taking)
        }
    };
    let process = holder.as_ref().map(|holder| &holder.process);
    // This process lives, but holds only the turns that one of its tasks works on.
    let alive = match hold.turn {
        Some(turn) if process.is_some_and(Holder::is_me) => is_worked_on(turn),
        Some(_) | None => process.is_some_and(Holder::is_alive),
    };
    let place = match &holder {
        Some(HolderAt { place, .. }) => place.clone(),
        None => hold.place.and_then(|place| place.parse().ok()),
    };
    if place.is_none_or(|place| place == *here) {
        return Ok(lives(alive, Taking::Dead));
    }
    if hub.store.is_shared() {
        // Its processes cannot be seen from here, and the machine's name is only a name.
        let now = hub.store.read().await?.clock().await?;
        let until = hold.until.unwrap_or(0);
        return Ok(lives(until > now, Taking::Silent));
    }
    // Another home of the one machine that uses this store, or that machine by another name: its
    // processes can be seen.
    let runs = || {
        let turn = hold.turn.map(|turn| turn.to_string());
        turn.is_some_and(|turn| !leftovers::marked(&turn).is_empty())
    };
    Ok(lives(alive || runs(), Taking::Silent))
}

impl Runner {
    /// Where this is.
    pub(crate) fn here(&self) -> Result<&Place> {
        if self.place.get().is_none() {
            let place = Place::of(&self.config.home).map_err(Error::io("looking at the home"))?;
            drop(self.place.set(place));
        }
        let place = self.place.get();
        place.ok_or_else(|| Error::Internal("the home has no name".into()))
    }

    /// Who this process is, as a holder of turns.
    pub fn holder(&self) -> Result<String> {
        let process = Holder::me().map_err(Error::io("finding out who this process is"))?;
        let place = Some(self.here()?.clone());
        Ok(HolderAt { place, process }.to_string())
    }

    /// Does somebody live who has it?
    pub async fn is_held(&self, turn: &StoredTurn) -> Result<bool> {
        Ok(hands(&self.hub, self.here()?, turn).await? == Hands::Held)
    }

    /// Leaves a turn that this process has in hand to whoever comes next.
    pub async fn leave(&self, turn: TurnId) -> Result<()> {
        Ok(self.hub.let_go_held(turn, &self.holder()?).await?)
    }

    /// Does something that may take long with a turn in hand, and keeps it in hand meanwhile.
    ///
    /// In a box: it is by far the largest of all that a command does, and would stand on the stack several
    /// times over.
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

    /// Until the turn is in other hands: whoever lost it does nothing more.
    async fn renewing(&self, claimed: &Claimed) -> Error {
        loop {
            self.until_next().await;
            // Should the store be away, it is asked again: the shim knows how long it may go on.
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

    /// None: it has only ended meanwhile.
    async fn lost(&self, claimed: &Claimed) -> Option<Error> {
        let mut read = self.hub.store.read().await.ok()?;
        let turn = read.turn(claimed.turn.id).await.ok()??;
        (turn.fence != claimed.turn.fence).then(|| {
            figures::lease_lost();
            tracing::warn!(turn = %claimed.turn.id, "another machine has taken this turn over");
            let text =
                "another machine has taken this turn over: this one was not heard of in time";
            rejoin_store::Error::Conflict(text).into()
        })
    }

    /// The same for a conversation that somebody sits at: who is away for too long finds it changed.
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
