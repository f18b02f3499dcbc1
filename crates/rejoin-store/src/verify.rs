//! Verifies that snapshots are present and unchanged. The next capture writes missing chunks again.

use std::collections::HashMap;

use futures_util::stream::{self, StreamExt as _};
use rejoin_core::SnapshotId;

use crate::blobs::{ObjectName, Objects};
use crate::chunks::ChunkRef;
use crate::db::{Ask, Row, one, rows, topic, vals};
use crate::error::Result;
use crate::snapshots::{ManifestFile, Snapshot, Unusable};
use crate::vault::{ChunkError, Vault};

/// Chunks checked in parallel.
const AT_ONCE: usize = 8;

/// Thoroughness of a verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyDepth {
    /// Checks that every chunk exists with its length.
    Present,
    /// Checks every byte of every chunk.
    Data,
}

/// A problem of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotFlaw {
    Manifest(Unusable),
    /// A chunk is stored at another location than the configured one, which this names.
    Elsewhere(String),
    Chunk {
        /// Part of the session, as in [`ManifestFile`].
        part: String,
        path: String,
        chunk: [u8; 32],
        why: String,
    },
}

/// Chunks checked so far. A chunk of several snapshots is checked once.
#[derive(Debug, Default)]
pub struct CheckedChunks {
    chunks: HashMap<[u8; 32], Option<Wrong>>,
    /// Bytes of intact chunks before packing.
    pub bytes: u64,
}

#[derive(Debug, Clone)]
enum Wrong {
    Lost(String),
    Elsewhere(String),
}

impl CheckedChunks {
    pub fn chunks(&self) -> u64 {
        self.chunks.len() as u64
    }
}

/// Contents of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Inventory {
    pub snapshots: i64,
    /// Snapshots that have expired. Their rows remain.
    pub expired: i64,
    pub chunks: i64,
    /// Size as stored.
    pub bytes: i64,
}

impl Vault {
    /// Verifies a snapshot and returns its problems; empty if it is intact. `watch` receives the
    /// number of chunks checked. An error means that the result is unknown.
    pub async fn verify(
        &self,
        snapshot: &Snapshot,
        depth: VerifyDepth,
        checked: &mut CheckedChunks,
        watch: &(dyn Fn(u64) + Send + Sync),
    ) -> std::result::Result<Vec<SnapshotFlaw>, ChunkError> {
        let manifest = match snapshot.manifest() {
            Ok(manifest) => manifest,
            Err(unusable) => return Ok(vec![SnapshotFlaw::Manifest(unusable)]),
        };
        let mut new: HashMap<[u8; 32], ChunkRef> = HashMap::new();
        for at in manifest.files.iter().flat_map(|file| &file.chunks.0) {
            if !checked.chunks.contains_key(&at.name) {
                new.insert(at.name, *at);
            }
        }
        let look = |at: ChunkRef| async move { (at, self.look(&at, depth).await) };
        let mut missed = vec![];
        let mut looks = stream::iter(new.into_values().map(look)).buffer_unordered(AT_ONCE);
        while let Some((at, looked)) = looks.next().await {
            let wrong = match looked {
                Ok(()) => {
                    checked.bytes += u64::from(at.length);
                    None
                }
                Err(ChunkError::Elsewhere { here }) => Some(Wrong::Elsewhere(here)),
                Err(lost) if lost.for_good() => {
                    // Damaged bytes do not count: the network may have caused them.
                    if matches!(lost, ChunkError::Missing) {
                        missed.push(at.name);
                    }
                    Some(Wrong::Lost(lost.to_string()))
                }
                Err(lost) => return Err(lost),
            };
            checked.chunks.insert(at.name, wrong);
            watch(checked.chunks());
        }
        drop(looks);
        self.miss(&missed).await?;
        let wrong = |at: &ChunkRef| checked.chunks.get(&at.name)?.as_ref();
        let elsewhere = |at: &ChunkRef| match wrong(at)? {
            Wrong::Elsewhere(here) => Some(SnapshotFlaw::Elsewhere(here.clone())),
            Wrong::Lost(_) => None,
        };
        let mut all = manifest.files.iter().flat_map(|file| &file.chunks.0);
        let elsewhere = all.find_map(elsewhere);
        let flaws = |file: &ManifestFile| {
            let lost = |at: &ChunkRef| match wrong(at)? {
                Wrong::Lost(why) => Some(SnapshotFlaw::Chunk {
                    part: file.part.clone(),
                    path: file.path.clone(),
                    chunk: at.name,
                    why: why.clone(),
                }),
                Wrong::Elsewhere(_) => None,
            };
            file.chunks.0.iter().filter_map(lost).collect::<Vec<_>>()
        };
        let lost = manifest.files.iter().flat_map(flaws);
        Ok(lost.chain(elsewhere).collect())
    }

    async fn look(&self, at: &ChunkRef, depth: VerifyDepth) -> std::result::Result<(), ChunkError> {
        match depth {
            VerifyDepth::Present => self.present(at).await,
            VerifyDepth::Data => self.chunk(at).await.map(drop),
        }
    }

    async fn present(&self, at: &ChunkRef) -> std::result::Result<(), ChunkError> {
        // As in `chunk`, nearest location first.
        let sql = "select length, stored, copy, place, cast(length(body) as bigint) as here
            from chunks where name = $1
            order by case place when 'db' then 0 when $2 then 1 when '-' || $2 then 2 else 3 end, place";
        let body = |row: &Row| row.maybe_int("here");
        let size = async |objects: &Objects, name: &ObjectName| {
            Ok(objects.size(name).await?.map(|size| size as i64))
        };
        let (there, row) = self.find(at, body, size, sql).await?;
        if there != row.int("stored")? || row.int("length")? != i64::from(at.length) {
            return Err(ChunkError::Damaged("it has another length than was kept"));
        }
        Ok(())
    }
}

topic! {
    /// Counts and ids of all snapshots.
    Inventories, inventory
}

impl<C: Ask> Inventories<'_, C> {
    /// Lists snapshots, newest first, including expired ones.
    pub async fn newest_snapshots(&mut self, most: i64) -> Result<Vec<Snapshot>> {
        let sql = "select * from snapshots order by id desc limit $1 /* scan: from the end, as far as the limit */";
        crate::snapshots::read_all(self.0, sql, vals![most]).await
    }

    /// Lists the ids of all snapshots, oldest first.
    pub async fn snapshot_ids(&mut self) -> Result<Vec<SnapshotId>> {
        let found = rows(
            self.0,
            "select id from snapshots order by id /* scan: all are verified */",
            vals![],
        )
        .await?;
        let id = |row: &Row| Ok(SnapshotId::from_uuid(row.id("id")?));
        found.iter().map(id).collect()
    }

    pub async fn count(&mut self) -> Result<Inventory> {
        let sql = "select /* scan: counts what is verified */
                (select count(*) from snapshots where manifest is not null) as snapshots,
                (select count(*) from snapshots where manifest is null) as expired,
                (select count(*) from chunks) as chunks,
                (select cast(coalesce(sum(stored), 0) as bigint) from chunks) as bytes";
        let Some(row) = one(self.0, sql, vals![]).await? else {
            return Ok(Inventory::default());
        };
        Ok(Inventory {
            snapshots: row.int("snapshots")?,
            expired: row.int("expired")?,
            chunks: row.int("chunks")?,
            bytes: row.int("bytes")?,
        })
    }
}
