//! Leases of turns on a store that machines share.
//!
//! A machine that disappears sends no notice. So a turn belongs to its holder only until a
//! deadline, which the holder extends while it lives. The shim receives the same deadline on its
//! machine's own clock, with a margin, and ends the CLI by itself. A later holder therefore finds
//! no process running.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rejoin_core::{ConversationId, TurnId};
use rejoin_store::{StoredTurn, Tx};

use crate::claim::Claimed;
use crate::error::Result;
use crate::{Hub, fault};

const LASTS: Duration = Duration::from_secs(30);
/// A lease is renewed six times before it expires. Its shim ends when a third of it is left.
const RENEWALS: u32 = 6;
const MARGIN: u32 = 3;

/// Time until which a held turn may run. Unlimited on a store of one machine.
#[derive(Debug, Clone, Default)]
pub struct Lease(Arc<AtomicU64>);

impl Lease {
    /// Returns the deadline for ending the CLI, in milliseconds of the machine's boot clock.
    pub fn deadline(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|at| *at > 0)
    }

    fn extend(&self, asked_at: Duration) {
        let until = asked_at + lasts() / MARGIN * (MARGIN - 1);
        self.0.store(until.as_millis() as u64, Ordering::Relaxed);
    }
}

/// Reason for taking a turn from its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeoverReason {
    /// The holder is known to be dead.
    Dead,
    /// The holder is elsewhere, and its lease has expired.
    Silent,
}

impl Hub {
    /// Returns true if several machines share the store.
    pub fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    /// Returns the time of the store's own clock, in microseconds since 1970.
    pub async fn store_clock(&self) -> Result<i64> {
        Ok(self.store.read().await?.leases().clock().await?)
    }

    /// Interval of renewals. `None`: leases of this store never expire.
    pub fn renews_every(&self) -> Option<Duration> {
        self.store.is_shared().then(|| lasts() / RENEWALS)
    }

    /// Stores the first lease of a turn and its location, which is the first word of `holder`.
    pub(crate) async fn first_lease(
        &self,
        tx: &mut Tx,
        turn: TurnId,
        holder: &str,
    ) -> Result<Lease> {
        let place = holder.split_once(' ').map(|(place, _)| place);
        let (lease, until) = self.lease(tx).await?;
        tx.leases().set_place(turn, place, until).await?;
        Ok(lease)
    }

    /// Returns a new lease and its end by the database's clock.
    pub(crate) async fn lease(&self, tx: &mut Tx) -> Result<(Lease, Option<i64>)> {
        let lease = Lease::default();
        if !self.store.is_shared() {
            return Ok((lease, None));
        }
        // Read before the database's clock: the shim must be early, never late.
        lease.extend(self.clock.since_boot());
        let until = tx.leases().clock().await? + lasts().as_micros() as i64;
        Ok((lease, Some(until)))
    }

    /// Leases a turn that is taken over. Its location stays, because the turn's folder stays there.
    /// Fails if a `Silent` holder's lease has not expired.
    pub(crate) async fn lease_taken(
        &self,
        tx: &mut Tx,
        turn: &StoredTurn,
        holder: &str,
        taking: TakeoverReason,
    ) -> Result<Lease> {
        if taking == TakeoverReason::Silent && self.store.is_shared() {
            let now = tx.leases().clock().await?;
            tx.leases().check_expired(turn.id, now).await?;
        }
        if turn.place.is_none() {
            return self.first_lease(tx, turn.id, holder).await;
        }
        let (lease, until) = self.lease(tx).await?;
        tx.leases()
            .set_place(turn.id, turn.place.as_deref(), until)
            .await?;
        Ok(lease)
    }

    /// Renews the lease. Returns false if another holder took the turn or it has ended.
    pub async fn renew(&self, claimed: &Claimed) -> Result<bool> {
        let mut tx = self.store.begin().await?;
        let asked_at = self.clock.since_boot();
        let until = tx.leases().clock().await? + lasts().as_micros() as i64;
        let (turn, fence) = (claimed.turn.id, claimed.turn.fence);
        let renewed = tx.leases().renew(turn, fence, until).await?;
        tx.commit().await?;
        if renewed {
            claimed.lease.extend(asked_at);
        }
        Ok(renewed)
    }

    pub async fn renew_open(&self, c: ConversationId, holder: &str) -> Result<()> {
        let mut tx = self.store.begin().await?;
        let (_, until) = self.lease(&mut tx).await?;
        tx.leases().renew_open(c, holder, until).await?;
        Ok(tx.commit().await?)
    }
}

fn lasts() -> Duration {
    fault::lease().unwrap_or(LASTS)
}
