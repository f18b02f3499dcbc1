//! What is done once a day, by whoever is there.

use rejoin_store::{Progress, Retention};

use crate::Hub;
use crate::error::Result;

const SWEPT: &str = "sweep";
const DAY: i64 = 24 * 3_600_000_000;

impl Hub {
    /// Gives up snapshots that are kept for long enough, if nobody did today. Of several daemons on one
    /// store one does it. False: it was not the time.
    pub async fn sweep_daily(&self, keep: Retention) -> Result<bool> {
        let Some(vault) = &self.vault else {
            return Ok(false);
        };
        let mut read = self.store.read().await?;
        // Machines that share a store go by its clock.
        let now = if self.store.is_shared() {
            read.clock().await?
        } else {
            self.clock.now()
        };
        let last = read.watermark(SWEPT).await?;
        drop(read);
        if last.is_some_and(|last| now - last < DAY) {
            return Ok(false);
        }
        let mut tx = self.store.begin().await?;
        let ours = tx.move_on(SWEPT, last, now).await?;
        tx.commit().await?;
        if ours {
            let silent = |_: Progress| {};
            let plan = vault.plan_sweep(keep, now, &silent).await?;
            vault.sweep(&plan, &silent).await?;
        }
        Ok(ours)
    }
}
