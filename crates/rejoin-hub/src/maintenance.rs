//! Daily maintenance: expired snapshots, and streamed pieces of old texts. Any process with the store may do it.

use rejoin_store::{Retention, SweepProgress};

use crate::Hub;
use crate::error::Result;

const SWEPT: &str = "sweep";
const THINNED: &str = "thin";
const DAY: i64 = 24 * 3_600_000_000;
/// Number of turns that are thinned in one transaction.
const TURNS: i64 = 200;

/// Retention of data besides the conversations themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    pub snapshots: Retention,
    /// Time after which the streamed pieces of a succeeded turn's text are removed, in microseconds. `None`:
    /// they stay.
    pub deltas: Option<i64>,
}

/// Effect of thinning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Thinned {
    /// Turns with pieces that are removed.
    pub turns: u64,
    /// Pieces of texts that are removed.
    pub events: u64,
}

impl Thinned {
    fn add(&mut self, events: u64) {
        self.turns += u64::from(events > 0);
        self.events += events;
    }
}

impl Hub {
    /// Removes snapshots and events that are older than their retention, at most once a day. Of several daemons
    /// on one store, one does it. Returns false if the last sweep is less than a day ago, or another process
    /// took it.
    pub async fn sweep_daily(&self, keep: Keep) -> Result<bool> {
        let now = self.shared_now().await?;
        let last = self.watermark(SWEPT).await?;
        if last.is_some_and(|last| now - last < DAY) {
            return Ok(false);
        }
        let mut tx = self.store.begin().await?;
        let ours = tx.deliveries().move_watermark(SWEPT, last, now).await?;
        tx.commit().await?;
        if ours {
            self.thin_events(keep.deltas, now).await?;
        }
        if ours && let Some(vault) = &self.vault {
            let silent = |_: SweepProgress| {};
            let plan = vault.plan_sweep(keep.snapshots, now, &silent).await?;
            vault.sweep(&plan, &silent).await?;
        }
        Ok(ours)
    }

    /// Returns the time. Machines that share a store use its clock.
    pub async fn shared_now(&self) -> Result<i64> {
        if self.store.is_shared() {
            let mut read = self.store.read().await?;
            return Ok(read.leases().clock().await?);
        }
        Ok(self.clock.now())
    }

    /// Removes the streamed pieces of texts from succeeded turns that are older than `keep` (microseconds). Each
    /// turn is looked at once: the next call continues where this one ends.
    pub async fn thin_events(&self, keep: Option<i64>, now: i64) -> Result<Thinned> {
        let mut thinned = Thinned::default();
        let Some(until) = keep.map(|keep| milliseconds(now.saturating_sub(keep))) else {
            return Ok(thinned);
        };
        loop {
            let mut tx = self.store.begin().await?;
            let last = tx.deliveries().watermark(THINNED).await?;
            let since = last.map_or(0, |last| last.max(0).unsigned_abs());
            let turns = tx.pieces().turns_between(since, until, TURNS).await?;
            for turn in turns.iter().filter_map(|(_, turn)| *turn) {
                thinned.add(tx.pieces().thin(turn).await?);
            }
            let more = turns.len() as i64 == TURNS;
            let next = next_position(
                since,
                until,
                turns.last().filter(|_| more).map(|(ms, _)| *ms),
            );
            let ours = (tx.deliveries())
                .move_watermark(THINNED, last, next as i64)
                .await?;
            if !ours {
                // Another process does it.
                return Ok(thinned);
            }
            tx.commit().await?;
            if !more {
                return Ok(thinned);
            }
        }
    }

    /// Returns the effect that [`Hub::thin_events`] would have.
    pub async fn plan_thinning(&self, keep: Option<i64>, now: i64) -> Result<Thinned> {
        let mut thinned = Thinned::default();
        let Some(until) = keep.map(|keep| milliseconds(now.saturating_sub(keep))) else {
            return Ok(thinned);
        };
        let last = self.watermark(THINNED).await?;
        let mut since = last.map_or(0, |last| last.max(0).unsigned_abs());
        loop {
            let mut read = self.store.read().await?;
            let turns = read.pieces().turns_between(since, until, TURNS).await?;
            for turn in turns.iter().filter_map(|(_, turn)| *turn) {
                thinned.add(read.pieces().thinnable(turn).await?);
            }
            if (turns.len() as i64) < TURNS {
                return Ok(thinned);
            }
            since = next_position(since, until, turns.last().map(|(ms, _)| *ms));
        }
    }

    async fn watermark(&self, name: &str) -> Result<Option<i64>> {
        let mut read = self.store.read().await?;
        Ok(read.deliveries().watermark(name).await?)
    }
}

fn milliseconds(micros: i64) -> u64 {
    (micros / 1000).max(0).unsigned_abs()
}

/// Returns the position after a page that ends with a turn of that millisecond; `None`: nothing follows.
fn next_position(since: u64, until: u64, last: Option<u64>) -> u64 {
    match last {
        // A page never ends where it began, so that every call makes progress.
        Some(ms) => ms.max(since + 1),
        None => until.max(since),
    }
}
