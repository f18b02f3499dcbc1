//! Performs a planned sweep, as far as the plan is still valid.

use std::collections::HashSet;

use futures_util::stream::{self, StreamExt as _};

use super::reachable::Reachable;
use super::{GRACE, SweepPlan, SweepProgress, SweepStep, Unnamed, Watcher, known};
use crate::blobs::{ObjectName, Objects};
use crate::error::{Error, Result};
use crate::vault::Vault;

/// Rows changed per transaction: other processes want to write too.
const TOGETHER: usize = 500;
/// Objects removed in parallel.
const AT_ONCE: usize = 8;

/// Result of a sweep.
#[derive(Debug, Default)]
pub struct SweepResult {
    pub expired: u64,
    pub chunks: u64,
    pub bytes: u64,
    /// Objects that no row names.
    pub strays: u64,
    /// Number of objects that could not be removed; the next sweep finds them. `why`: the last
    /// error.
    pub left: u64,
    pub why: Option<Error>,
}

impl Vault {
    /// Expires the planned snapshots, then removes chunks that no manifest names.
    pub async fn sweep(&self, plan: &SweepPlan, watch: Watcher<'_>) -> Result<SweepResult> {
        let mut swept = SweepResult::default();
        for some in plan.expiring.chunks(TOGETHER) {
            let mut tx = self.store.begin().await?;
            let mut expired = 0;
            for over in some {
                expired += u64::from(tx.snapshots().expire(over.id, &over.why, plan.now).await?);
            }
            watch(SweepProgress::At(SweepStep::Expiring));
            tx.commit().await?;
            watch(SweepProgress::At(SweepStep::Expired));
            swept.expired += expired;
        }
        // Determined again: planned chunks may be in use by now.
        let mut reach = Reachable::read(&self.store, &HashSet::new(), watch).await?;
        let over = plan.now - GRACE;
        let unnamed = self.unnamed(&reach).await?;
        let old: Vec<Unnamed> = unnamed.into_iter().filter(|c| c.at < over).collect();
        let mut gone = vec![];
        watch(SweepProgress::At(SweepStep::Reached));
        for some in old.chunks(TOGETHER) {
            let mut tx = self.store.begin().await?;
            reach.catch_up(&mut tx).await?;
            let mut removed = vec![];
            for chunk in some.iter().filter(|c| !reach.names.contains(&c.name)) {
                if tx
                    .snapshots()
                    .remove_chunk(&chunk.name, &chunk.place, over)
                    .await?
                {
                    removed.push(chunk);
                }
            }
            watch(SweepProgress::At(SweepStep::Forgetting));
            tx.commit().await?;
            watch(SweepProgress::At(SweepStep::Forgotten));
            swept.chunks += removed.len() as u64;
            swept.bytes += removed.iter().map(|chunk| chunk.stored).sum::<u64>();
            gone.extend(removed.iter().filter_map(|chunk| {
                Some(ObjectName {
                    chunk: chunk.name,
                    copy: chunk.copy?,
                })
            }));
        }
        let Some(objects) = self.objects().await? else {
            return Ok(swept);
        };
        for stray in &plan.strays {
            // Checked again: a clock that is ahead takes an object being written for an old one.
            let mut read = self.store.read().await?;
            if !known(&mut read, &stray.name).await? {
                gone.push(stray.name);
                swept.strays += 1;
            }
        }
        remove(&objects, gone, &mut swept, watch).await;
        watch(SweepProgress::At(SweepStep::Removed));
        objects.tidy(over).await?;
        Ok(swept)
    }
}

async fn remove(
    objects: &Objects,
    gone: Vec<ObjectName>,
    swept: &mut SweepResult,
    watch: Watcher<'_>,
) {
    let total = gone.len() as u64;
    let delete = |name: ObjectName| async move { objects.delete(&name).await };
    let mut deletes = stream::iter(gone.into_iter().map(delete)).buffer_unordered(AT_ONCE);
    let mut done = 0;
    while let Some(deleted) = deletes.next().await {
        done += 1;
        watch(SweepProgress::Removing(done, total));
        if let Err(error) = deleted {
            swept.left += 1;
            // A storage that does not answer is not asked a thousand times.
            if swept.why.replace(error).is_some() {
                swept.left += total - done;
                return;
            }
        }
    }
}
