//! Is what was kept still there, and still what was kept? Looks only.

use std::collections::HashMap;

use futures_util::stream::{self, StreamExt as _};
use rejoin_core::SnapshotId;

use crate::blobs::{Blobs, ObjectName};
use crate::chunks::ChunkRef;
use crate::connections::Read;
use crate::db::{Row, one, rows, vals};
use crate::error::Result;
use crate::snapshots::{ManifestFile, Snapshot, Unusable};
use crate::vault::{Lost, Vault};

/// Chunks that are looked at at once.
const AT_ONCE: usize = 8;

/// How closely to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// That every chunk is there, as long as it should be.
    Present,
    /// That every chunk is what it should be, byte for byte.
    Data,
}

/// What is wrong with a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flaw {
    Manifest(Unusable),
    Chunk {
        /// As [`ManifestFile`] calls it.
        part: String,
        path: String,
        chunk: [u8; 32],
        why: String,
    },
}

/// What was looked at so far: a chunk of many snapshots is looked at once.
#[derive(Debug, Default)]
pub struct Checked {
    chunks: HashMap<[u8; 32], Option<String>>,
    /// Bytes of chunks that are well, as they were before they were packed.
    pub bytes: u64,
}

impl Checked {
    pub fn chunks(&self) -> u64 {
        self.chunks.len() as u64
    }
}

/// What lies in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stock {
    pub snapshots: i64,
    /// Given up; that they were there is known.
    pub expired: i64,
    pub chunks: i64,
    /// As they are stored.
    pub bytes: i64,
}

impl Vault {
    /// What is wrong with a snapshot; nothing: it is well. `watch` is told how many chunks were
    /// looked at. An error means that it could not be found out.
    pub async fn verify(
        &self,
        snapshot: &Snapshot,
        depth: Depth,
        checked: &mut Checked,
        watch: &(dyn Fn(u64) + Send + Sync),
    ) -> std::result::Result<Vec<Flaw>, Lost> {
        let manifest = match snapshot.manifest() {
            Ok(manifest) => manifest,
            Err(unusable) => return Ok(vec![Flaw::Manifest(unusable)]),
        };
        let mut new: HashMap<[u8; 32], ChunkRef> = HashMap::new();
        for at in manifest.files.iter().flat_map(|file| &file.chunks.0) {
            if !checked.chunks.contains_key(&at.name) {
                new.insert(at.name, *at);
            }
        }
        let look = |at: ChunkRef| async move { (at, self.flaw(&at, depth).await) };
        let mut looks = stream::iter(new.into_values().map(look)).buffer_unordered(AT_ONCE);
        while let Some((at, flaw)) = looks.next().await {
            let flaw = flaw?;
            if flaw.is_none() {
                checked.bytes += u64::from(at.length);
            }
            checked.chunks.insert(at.name, flaw);
            watch(checked.chunks());
        }
        let flaws = |file: &ManifestFile| {
            let wrong = |at: &ChunkRef| {
                let why = checked.chunks.get(&at.name)?.clone()?;
                Some(Flaw::Chunk {
                    part: file.part.clone(),
                    path: file.path.clone(),
                    chunk: at.name,
                    why,
                })
            };
            file.chunks.0.iter().filter_map(wrong).collect::<Vec<_>>()
        };
        Ok(manifest.files.iter().flat_map(flaws).collect())
    }

    async fn flaw(&self, at: &ChunkRef, depth: Depth) -> std::result::Result<Option<String>, Lost> {
        let looked = match depth {
            Depth::Present => self.present(at).await,
            Depth::Data => self.chunk(at).await.map(drop),
        };
        match looked {
            Ok(()) => Ok(None),
            Err(lost) if lost.for_good() => Ok(Some(lost.to_string())),
            Err(lost) => Err(lost),
        }
    }

    async fn present(&self, at: &ChunkRef) -> std::result::Result<(), Lost> {
        let sql = "select length, stored, copy, cast(length(body) as bigint) as here
            from chunks where name = $1";
        let row = {
            let mut read = self.store.read().await?;
            one(&mut read, sql, vals![at.name]).await?
        };
        let row = row.ok_or(Lost::Missing)?;
        let stored = row.int("stored")?;
        let there = match (row.maybe_int("here")?, row.maybe_int("copy")?, &self.blobs) {
            (Some(here), _, _) => Some(here),
            (None, Some(copy), Blobs::Objects(objects)) => {
                let copy = u32::try_from(copy).map_err(|_| Lost::Missing)?;
                let name = ObjectName {
                    chunk: at.name,
                    copy,
                };
                objects.size(&name).await?.map(|size| size as i64)
            }
            (None, _, Blobs::Objects(_) | Blobs::Database) => None,
        };
        let there = there.ok_or(Lost::Missing)?;
        if there != stored || row.int("length")? != i64::from(at.length) {
            return Err(Lost::Damaged("it has another length than was kept"));
        }
        Ok(())
    }
}

impl Read {
    /// The newest first; those that are gone too.
    pub async fn newest_snapshots(&mut self, most: i64) -> Result<Vec<Snapshot>> {
        let sql = "select * from snapshots order by id desc limit $1";
        crate::snapshots::read_all(self, sql, vals![most]).await
    }

    /// All there are, oldest first.
    pub async fn snapshot_ids(&mut self) -> Result<Vec<SnapshotId>> {
        let found = rows(self, "select id from snapshots order by id", vals![]).await?;
        let id = |row: &Row| Ok(SnapshotId::from_uuid(row.id("id")?));
        found.iter().map(id).collect()
    }

    pub async fn stock(&mut self) -> Result<Stock> {
        let sql = "select
                (select count(*) from snapshots where manifest is not null) as snapshots,
                (select count(*) from snapshots where manifest is null) as expired,
                (select count(*) from chunks) as chunks,
                (select cast(coalesce(sum(stored), 0) as bigint) from chunks) as bytes";
        let Some(row) = one(self, sql, vals![]).await? else {
            return Ok(Stock::default());
        };
        Ok(Stock {
            snapshots: row.int("snapshots")?,
            expired: row.int("expired")?,
            chunks: row.int("chunks")?,
            bytes: row.int("bytes")?,
        })
    }
}
