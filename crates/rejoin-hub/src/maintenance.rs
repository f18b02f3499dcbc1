//! Daily maintenance. Any process with the store may do it.

use rejoin_store::{Retention, SweepProgress};

use crate::Hub;
use crate::error::Result;

const SWEPT: &str = "sweep";
const DAY: i64 = 24 * 3_600_000_000;

impl Hub {
    /// Removes snapshots older than the retention, at most once a day. Of several daemons on one
    /// store, one does it. Returns false if the last sweep is less than a day ago, another process
    /// took it, or the store has no vault.
    pub async fn sweep_daily(&self, keep: Retention) -> Result<bool> {
        let Some(vault) = &self.vault else {
            return Ok(false);
        };
        let mut read = self.store.read().await?;
        // Machines that share a store use its clock.
        let now = if self.store.is_shared() {
            read.leases().clock().await?
        } else {
            self.clock.now()
        };
        let last = read.deliveries().watermark(SWEPT).await?;
        drop(read);
        if last.is_some_and(|last| now - last < DAY) {
            return Ok(false);
        }
        let mut tx = self.store.begin().await?;
        let ours = tx.deliveries().move_watermark(SWEPT, last, now).await?;
        tx.commit().await?;
        if ours {
            let silent = |_: SweepProgress| {};
            let plan = vault.plan_sweep(keep, now, &silent).await?;
            vault.sweep(&plan, &silent).await?;
        }
        Ok(ours)
    }
}
