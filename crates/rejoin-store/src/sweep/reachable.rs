//! The set of chunks that manifests name.

use std::collections::HashSet;

use rejoin_core::SnapshotId;

use super::{SweepProgress, Watcher};
use crate::connections::{Store, Tx};
use crate::db::{rows, vals};
use crate::error::{Error, Result};
use crate::snapshots::{Snapshot, Unusable};

/// Manifests read per query.
const PAGE: i64 = 32;

#[derive(Debug, Default)]
pub(super) struct Reachable {
    pub(super) names: HashSet<[u8; 32]>,
    /// Snapshots whose manifest was read. `damaged`: those whose manifest could not be read.
    read: HashSet<SnapshotId>,
    pub(super) damaged: Vec<SnapshotId>,
}

impl Reachable {
    /// Reads the manifests of all snapshots except these.
    pub(super) async fn read(
        store: &Store,
        without: &HashSet<SnapshotId>,
        watch: Watcher<'_>,
    ) -> Result<Self> {
        let mut reach = Self::default();
        let mut after = None;
        loop {
            // The connection is released between pages, so that other processes can write.
            let page = store.read().await?.snapshots().after(after, PAGE).await?;
            for snapshot in &page {
                after = Some(snapshot.id);
                if !without.contains(&snapshot.id) {
                    reach.add(snapshot)?;
                }
            }
            watch(SweepProgress::Reading(reach.read.len() as u64));
            if page.len() < PAGE as usize {
                return Ok(reach);
            }
        }
    }

    /// Adds snapshots that appeared since. No other process can begin to name a chunk that this
    /// transaction then removes.
    pub(super) async fn catch_up(&mut self, tx: &mut Tx) -> Result<()> {
        let sql = "select id from snapshots where manifest is not null /* scan: a sweep looks at all of them */";
        for row in &rows(tx, sql, vals![]).await? {
            let id = SnapshotId::from_uuid(row.id("id")?);
            if !self.read.contains(&id)
                && let Some(snapshot) = tx.snapshots().get(id).await?
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
            // The snapshot can never be restored, so chunks that only it names are useless.
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
