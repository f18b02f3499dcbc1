//! Does what was planned, as far as it still holds.

use std::collections::HashSet;

use futures_util::stream::{self, StreamExt as _};

use super::reach::Reach;
use super::{GRACE, Progress, Stage, SweepPlan, Unnamed, Watcher, known};
use crate::blobs::{ObjectName, Objects};
use crate::error::{Error, Result};
use crate::vault::Vault;

/// Rows changed with one transaction: others want to write too.
const TOGETHER: usize = 500;
/// Objects removed at once.
const AT_ONCE: usize = 8;

/// What a sweep did.
#[derive(Debug, Default)]
pub struct Swept {
    pub expired: u64,
    pub chunks: u64,
    pub bytes: u64,
    /// Objects that no row named.
    pub strays: u64,
    /// Objects that could not be removed: the next sweep finds them. With why.
    pub left: u64,
    pub why: Option<Error>,
}

impl Vault {
    /// Expires what the plan says; removes what then nothing names.
    pub async fn sweep(&self, plan: &SweepPlan, watch: Watcher<'_>) -> Result<Swept> {
        let mut swept = Swept::default();
        for some in plan.expiring.chunks(TOGETHER) {
            let mut tx = self.store.begin().await?;
            let mut expired = 0;
            for over in some {
                expired += u64::from(tx.expire_snapshot(over.id, &over.why, plan.now).await?);
            }
            watch(Progress::At(Stage::Expiring));
            tx.commit().await?;
            watch(Progress::At(Stage::Expired));
            swept.expired += expired;
        }
        // Found out anew: what was planned may be in use by now.
        let mut reach = Reach::read(&self.store, &HashSet::new(), watch).await?;
        let over = plan.now - GRACE;
        let unnamed = self.unnamed(&reach).await?;
        let old: Vec<Unnamed> = unnamed.into_iter().filter(|c| c.at < over).collect();
        let mut gone = vec![];
        watch(Progress::At(Stage::Reached));
        for some in old.chunks(TOGETHER) {
            let mut tx = self.store.begin().await?;
            reach.catch_up(&mut tx).await?;
            let mut removed = vec![];
            for chunk in some.iter().filter(|c| !reach.names.contains(&c.name)) {
                if tx.remove_chunk(&chunk.name, &chunk.place, over).await? {
                    removed.push(chunk);
                }
            }
            watch(Progress::At(Stage::Forgetting));
            tx.commit().await?;
            watch(Progress::At(Stage::Forgotten));
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
            // Looked at again: a clock that is ahead takes what is being written for old.
            let mut read = self.store.read().await?;
            if !known(&mut read, &stray.name).await? {
                gone.push(stray.name);
                swept.strays += 1;
            }
        }
        remove(&objects, gone, &mut swept, watch).await;
        watch(Progress::At(Stage::Removed));
        objects.tidy(over).await?;
        Ok(swept)
    }
}

async fn remove(objects: &Objects, gone: Vec<ObjectName>, swept: &mut Swept, watch: Watcher<'_>) {
    let total = gone.len() as u64;
    let delete = |name: ObjectName| async move { objects.delete(&name).await };
    let mut deletes = stream::iter(gone.into_iter().map(delete)).buffer_unordered(AT_ONCE);
    let mut done = 0;
    while let Some(deleted) = deletes.next().await {
        done += 1;
        watch(Progress::Removing(done, total));
        if let Err(error) = deleted {
            swept.left += 1;
            // A place that does not answer is not asked a thousand times.
            if swept.why.replace(error).is_some() {
                swept.left += total - done;
                return;
            }
        }
    }
}
