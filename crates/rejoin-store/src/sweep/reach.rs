//! Which chunks are named by manifests.

use std::collections::HashSet;

use rejoin_core::SnapshotId;

use super::{Progress, Watcher};
use crate::connections::{Store, Tx};
use crate::db::{rows, vals};
use crate::error::{Error, Result};
use crate::snapshots::{Snapshot, Unusable};

/// Manifests read with one query.
const PAGE: i64 = 32;

#[derive(Debug, Default)]
pub(super) struct Reach {
    pub(super) names: HashSet<[u8; 32]>,
    /// Snapshots whose manifest was read, and those that could not be.
    read: HashSet<SnapshotId>,
    pub(super) damaged: Vec<SnapshotId>,
}

impl Reach {
    /// Of all snapshots but those.
    pub(super) async fn read(
        store: &Store,
        without: &HashSet<SnapshotId>,
        watch: Watcher<'_>,
    ) -> Result<Self> {
        let mut reach = Self::default();
        let mut after = None;
        loop {
            // Let go of between pages: others want to write meanwhile.
            let page = store.read().await?.snapshots_after(after, PAGE).await?;
            for snapshot in &page {
                after = Some(snapshot.id);
                if !without.contains(&snapshot.id) {
                    reach.add(snapshot)?;
                }
            }
            watch(Progress::Reading(reach.read.len() as u64));
            if page.len() < PAGE as usize {
                return Ok(reach);
            }
        }
    }

    /// What was added since. What this transaction then removes, nobody can have begun to name.
    pub(super) async fn catch_up(&mut self, tx: &mut Tx) -> Result<()> {
        let sql = "select id from snapshots where manifest is not null /* scan: a sweep looks at all of them */";
        for row in &rows(tx, sql, vals![]).await? {
            let id = SnapshotId::from_uuid(row.id("id")?);
            if !self.read.contains(&id)
                && let Some(snapshot) = tx.snapshot(id).await?
            {
                self.add(&snapshot)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, snapshot: &Snapshot) -> Result<()> {
        match snapshot.manifest() {
            Ok(manifest) => {
                for file in &manifest.files {
                    self.names.extend(file.chunks.0.iter().map(|at| at.name));
                }
            }
            Err(Unusable::Expired) => return Ok(()),
            // It can never be put back: what only it named serves nobody.
            Err(Unusable::Damaged) => self.damaged.push(snapshot.id),
            Err(Unusable::Newer) => {
                let why = "a snapshot was written by a newer rejoin, and only that one can sweep";
                return Err(Error::Foreign(why.into()));
            }
        }
        self.read.insert(snapshot.id);
        Ok(())
    }
}
