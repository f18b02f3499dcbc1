//! Is what was kept still there, and still what was kept? What is not, the next capture writes again.

use std::collections::HashMap;

use futures_util::stream::{self, StreamExt as _};
use rejoin_core::SnapshotId;

use crate::blobs::{ObjectName, Objects};
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
    /// It lies in another place than this one, which is configured here.
    Elsewhere(String),
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
    chunks: HashMap<[u8; 32], Option<Wrong>>,
    /// Bytes of chunks that are well, as they were before they were packed.
    pub bytes: u64,
}

#[derive(Debug, Clone)]
enum Wrong {
    Lost(String),
    Elsewhere(String),
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
        let look = |at: ChunkRef| async move { (at, self.look(&at, depth).await) };
        let mut missed = vec![];
        let mut looks = stream::iter(new.into_values().map(look)).buffer_unordered(AT_ONCE);
        while let Some((at, looked)) = looks.next().await {
            let wrong = match looked {
                Ok(()) => {
                    checked.bytes += u64::from(at.length);
                    None
                }
                Err(Lost::Elsewhere { here }) => Some(Wrong::Elsewhere(here)),
                Err(lost) if lost.for_good() => {
                    // Not one that came otherwise than it was kept: that may be the network.
                    if matches!(lost, Lost::Missing) {
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
            Wrong::Elsewhere(here) => Some(Flaw::Elsewhere(here.clone())),
            Wrong::Lost(_) => None,
        };
        let mut all = manifest.files.iter().flat_map(|file| &file.chunks.0);
        let elsewhere = all.find_map(elsewhere);
        let flaws = |file: &ManifestFile| {
            let lost = |at: &ChunkRef| match wrong(at)? {
                Wrong::Lost(why) => Some(Flaw::Chunk {
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

    async fn look(&self, at: &ChunkRef, depth: Depth) -> std::result::Result<(), Lost> {
        match depth {
            Depth::Present => self.present(at).await,
            Depth::Data => self.chunk(at).await.map(drop),
        }
    }

    async fn present(&self, at: &ChunkRef) -> std::result::Result<(), Lost> {
        // As in `chunk`, the nearest first.
        let sql = "select length, stored, copy, place, cast(length(body) as bigint) as here
            from chunks where name = $1
            order by case place when 'db' then 0 when $2 then 1 when '-' || $2 then 2 else 3 end, place";
        let body = |row: &Row| row.maybe_int("here");
        let size = async |objects: &Objects, name: &ObjectName| {
            Ok(objects.size(name).await?.map(|size| size as i64))
        };
        let (there, row) = self.find(at, body, size, sql).await?;
        if there != row.int("stored")? || row.int("length")? != i64::from(at.length) {
            return Err(Lost::Damaged("it has another length than was kept"));
        }
        Ok(())
    }
}

impl Read {
    /// The newest first; those that are gone too.
    pub async fn newest_snapshots(&mut self, most: i64) -> Result<Vec<Snapshot>> {
        let sql = "select * from snapshots order by id desc limit $1 /* scan: from the end, as far as the limit */";
        crate::snapshots::read_all(self, sql, vals![most]).await
    }

    /// All there are, oldest first.
    pub async fn snapshot_ids(&mut self) -> Result<Vec<SnapshotId>> {
        let found = rows(
            self,
            "select id from snapshots order by id /* scan: all are verified */",
            vals![],
        )
        .await?;
        let id = |row: &Row| Ok(SnapshotId::from_uuid(row.id("id")?));
        found.iter().map(id).collect()
    }

    pub async fn stock(&mut self) -> Result<Stock> {
        let sql = "select /* scan: counts what is verified */
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
