//! Leases of turns on a store that machines share.
//!
//! A machine that goes away says nothing. So a turn is its holder's only until some moment, which the
//! holder moves on while it lives; the shim is told the same moment on its machine's own clock, some
//! time before, and ends the CLI by itself. Whoever comes after that finds nothing running.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rejoin_core::{ConversationId, TurnId};
use rejoin_store::{StoredTurn, Tx};

use crate::claim::Claimed;
use crate::error::Result;
use crate::{Hub, fault};

const LASTS: Duration = Duration::from_secs(30);
/// A lease is renewed six times before it runs out, and its shim is gone when a third of it is left.
const RENEWALS: u32 = 6;
const MARGIN: u32 = 3;

/// How long a turn in hand may go on, as far as is known. Of a store of one machine: for ever.
#[derive(Debug, Clone, Default)]
pub struct Lease(Arc<AtomicU64>);

impl Lease {
    /// In milliseconds of the machine's boot clock: by then the CLI must be told to end.
    pub fn deadline(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|at| *at > 0)
    }

    fn extend(&self, asked_at: Duration) {
        let until = asked_at + lasts() / MARGIN * (MARGIN - 1);
        self.0.store(until.as_millis() as u64, Ordering::Relaxed);
    }
}

/// Why a turn is taken from its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taking {
    /// It is known to be dead.
    Dead,
    /// It is elsewhere, and was not heard of.
    Silent,
}

impl Hub {
    /// None: on this store nothing runs out.
    pub fn renews_every(&self) -> Option<Duration> {
        self.store.is_shared().then(|| lasts() / RENEWALS)
    }

    /// The first lease of a turn, with where it is held: the first word of the holder.
    pub(crate) async fn first_lease(
        &self,
        tx: &mut Tx,
        turn: TurnId,
        holder: &str,
    ) -> Result<Lease> {
        let place = holder.split_once(' ').map(|(place, _)| place);
        let (lease, until) = self.lease(tx).await?;
        tx.place_turn(turn, place, until).await?;
        Ok(lease)
    }

    /// A lease from now on, and when it ends by the database's clock.
    pub(crate) async fn lease(&self, tx: &mut Tx) -> Result<(Lease, Option<i64>)> {
        let lease = Lease::default();
        if !self.store.is_shared() {
            return Ok((lease, None));
        }
        // Before the database looks at its own: the shim is to be early, never late.
        lease.extend(self.clock.since_boot());
        let until = tx.clock().await? + lasts().as_micros() as i64;
        Ok((lease, Some(until)))
    }

    /// Of a turn that is taken over; its folder, if it has one, stays where it is.
    pub(crate) async fn lease_taken(
        &self,
        tx: &mut Tx,
        turn: &StoredTurn,
        holder: &str,
        taking: Taking,
    ) -> Result<Lease> {
        if taking == Taking::Silent && self.store.is_shared() {
            let now = tx.clock().await?;
            tx.must_have_run_out(turn.id, now).await?;
        }
        if turn.place.is_none() {
            return self.first_lease(tx, turn.id, holder).await;
        }
        let (lease, until) = self.lease(tx).await?;
        tx.place_turn(turn.id, turn.place.as_deref(), until).await?;
        Ok(lease)
    }

    /// False: the turn is not in this hand any more, or has ended.
    pub async fn renew(&self, claimed: &Claimed) -> Result<bool> {
        let mut tx = self.store.begin().await?;
        let asked_at = self.clock.since_boot();
        let until = tx.clock().await? + lasts().as_micros() as i64;
        let (turn, fence) = (claimed.turn.id, claimed.turn.fence);
        let renewed = tx.renew_turn(turn, fence, until).await?;
        tx.commit().await?;
        if renewed {
            claimed.lease.extend(asked_at);
        }
        Ok(renewed)
    }

    pub async fn renew_open(&self, c: ConversationId, holder: &str) -> Result<()> {
        let mut tx = self.store.begin().await?;
        let (_, until) = self.lease(&mut tx).await?;
        tx.renew_open(c, holder, until).await?;
        Ok(tx.commit().await?)
    }
}

fn lasts() -> Duration {
    fault::lease().unwrap_or(LASTS)
}
