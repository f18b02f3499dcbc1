//! Stores the bytes of sessions: cut into chunks, each stored once, and verified when read back.

use std::collections::HashSet;
use std::io::{self, Write};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use crate::blobs::{Blobs, ObjectName, Objects};
use crate::chunks::{ChunkList, ChunkRef, cut};
use crate::connections::{Read, Store};
use crate::db::{Row, rows, vals};
use crate::error::{Error, Result};
use crate::seal::{Sealer, Unsealed};
use crate::snapshots::{Body, CapturedSession, ManifestFile, StoredChunk};

/// Bytes of chunks that are written together.
const BATCH: usize = 2 * 1024 * 1024;
/// Parallel transfers to or from an object store.
const AT_ONCE: usize = 8;
/// Chunks that are read with one query.
const TOGETHER: usize = 16;

/// Location and form of stored chunks. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Vault {
    pub store: Store,
    pub blobs: Blobs,
    pub sealer: Sealer,
}

/// Reason why a chunk cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ChunkError {
    #[error("a chunk is missing")]
    Missing,
    /// Only rows for other locations know of it.
    #[error("a chunk lies in another place than the one that is configured here, {here}")]
    Elsewhere { here: String },
    #[error("a chunk is damaged: {0}")]
    Damaged(&'static str),
    #[error("a chunk is sealed with the key {key}, which is not configured here")]
    WrongKey { key: String },
    #[error("{0}")]
    Unavailable(#[from] Error),
    #[error("it cannot be written here: {0}")]
    Io(#[from] io::Error),
}

impl ChunkError {
    /// Returns true if the chunk is missing or damaged, so that another try does not help.
    pub fn for_good(&self) -> bool {
        match self {
            Self::Missing | Self::Damaged(_) => true,
            Self::Elsewhere { .. } | Self::WrongKey { .. } | Self::Unavailable(_) | Self::Io(_) => {
                false
            }
        }
    }
}

/// A chunk that is not sealed yet.
type Plain = (ChunkRef, Vec<u8>);
type Cutting = Box<dyn Iterator<Item = io::Result<Vec<u8>>> + Send>;

/// Thread for the work on the bytes of a file, and time of writing its chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureMode {
    /// Chunks are returned, to be written together with the snapshot.
    Later,
    /// In the caller's thread.
    Here,
    /// On another thread, because the caller's has other work.
    Apart,
}

impl CaptureMode {
    /// Returns the mode for a file with that many new bytes.
    pub fn of(bytes: u64) -> Self {
        if bytes < BATCH as u64 {
            Self::Here
        } else {
            Self::Apart
        }
    }

    async fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        if self != Self::Apart {
            return Ok(work());
        }
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|error| Error::Read(io::Error::other(error)))
    }
}

/// Returns the next chunks with their names. Empty if there are no more.
fn batch(cutting: &mut Cutting, sealer: &Sealer) -> io::Result<Vec<Plain>> {
    let (mut batch, mut bytes) = (vec![], 0);
    while bytes < BATCH
        && let Some(plain) = cutting.next().transpose()?
    {
        bytes += plain.len();
        let at = ChunkRef {
            name: sealer.name(&plain),
            length: plain.len() as u32,
        };
        batch.push((at, plain));
    }
    Ok(batch)
}

fn sealed(sealer: &Sealer, (at, plain): Plain) -> StoredChunk {
    StoredChunk {
        name: at.name,
        length: at.length,
        body: sealer.seal(&plain),
    }
}

impl Vault {
    pub fn new(store: Store, blobs: Blobs, sealer: Sealer) -> Self {
        Self {
            store,
            blobs,
            sealer,
        }
    }

    /// Cuts the data of `from` into chunks and stores the new ones. `known` are the chunks of the
    /// bytes before.
    pub async fn keep(
        &self,
        from: impl io::Read + Send + 'static,
        known: Vec<ChunkRef>,
        captured: &mut CapturedSession,
        keeping: CaptureMode,
        now: i64,
    ) -> Result<ChunkList> {
        captured.began.get_or_insert(now);
        let mut all = known;
        let mut cutting: Cutting = Box::new(cut(from));
        loop {
            let sealer = self.sealer.clone();
            let next = move || {
                let batch = batch(&mut cutting, &sealer);
                (cutting, batch)
            };
            let batch;
            (cutting, batch) = keeping.run(next).await?;
            let batch = batch.map_err(Error::Read)?;
            if batch.is_empty() {
                return Ok(ChunkList(all));
            }
            all.extend(batch.iter().map(|(at, _)| *at));
            if keeping == CaptureMode::Later {
                let pending = batch.into_iter().map(|chunk| sealed(&self.sealer, chunk));
                for chunk in pending {
                    captured.added += chunk.body.len() as u64;
                    captured.pending.push(chunk);
                }
                continue;
            }
            captured.added += self.write(batch, keeping, now).await?;
        }
    }

    /// Stores chunks and returns the number of new bytes. Each chunk is stored before a row names
    /// it.
    async fn write(&self, batch: Vec<Plain>, keeping: CaptureMode, now: i64) -> Result<u64> {
        if batch.is_empty() {
            return Ok(0);
        }
        let mark = self.blobs.mark();
        let mut met = HashSet::new();
        let mut new = vec![];
        let mut tx = self.store.begin().await?;
        for (at, plain) in batch {
            // A chunk in use must be marked, or it could be swept meanwhile. One in an object store
            // other than the configured one counts as missing.
            let sql = "update chunks set at = $2 where name = $1 and place in ('db', $3)";
            let values = vals![at.name, now, mark.as_str()];
            if met.insert(at.name) && tx.run(sql, values).await? == 0 {
                new.push((at, plain));
            }
        }
        tx.commit().await?;
        let sealer = self.sealer.clone();
        let seal = move || {
            new.into_iter()
                .map(|chunk| sealed(&sealer, chunk))
                .collect()
        };
        let new: Vec<StoredChunk> = keeping.run(seal).await?;
        let added = new.iter().map(|chunk| chunk.body.len() as u64).sum();
        match &self.objects().await? {
            None => {
                let mut tx = self.store.begin().await?;
                tx.snapshots().put_chunks(&new, now).await?;
                tx.commit().await?;
            }
            Some(objects) => {
                let put = |chunk: StoredChunk| async move {
                    let (length, stored) = (chunk.length, chunk.body.len());
                    let name = ObjectName::new(chunk.name)?;
                    objects.put(&name, chunk.body).await?;
                    Ok::<_, Error>((name, length, stored))
                };
                let puts = stream::iter(new.into_iter().map(put)).buffer_unordered(AT_ONCE);
                let there: Vec<_> = puts.try_collect().await?;
                let mut tx = self.store.begin().await?;
                for (name, length, stored) in there {
                    let (copy, place) = (name.copy, mark.clone());
                    let body = Body::Object { copy, place };
                    tx.snapshots()
                        .put_chunk(&name.chunk, length, stored, body, now)
                        .await?;
                }
                tx.commit().await?;
            }
        }
        Ok(added)
    }

    /// Stores foreign chunks and returns the names they have here.
    pub async fn keep_chunks(&self, plain: Vec<Vec<u8>>, now: i64) -> Result<Vec<ChunkRef>> {
        let named = |plain: Vec<u8>| {
            let at = ChunkRef {
                name: self.sealer.name(&plain),
                length: plain.len() as u32,
            };
            (at, plain)
        };
        let batch: Vec<_> = plain.into_iter().map(named).collect();
        let names = batch.iter().map(|(at, _)| *at).collect();
        self.write(batch, CaptureMode::Here, now).await?;
        Ok(names)
    }

    /// Reads, opens and checks one chunk.
    pub async fn chunk(&self, at: &ChunkRef) -> std::result::Result<Vec<u8>, ChunkError> {
        // Nearest location first.
        let sql = "select body, copy, place from chunks where name = $1
            order by case place when 'db' then 0 when $2 then 1 when '-' || $2 then 2 else 3 end, place";
        let body = |row: &Row| row.maybe_bytes("body");
        let get = async |objects: &Objects, name: &ObjectName| objects.get(name).await;
        let (sealed, _) = self.find(at, body, get, sql).await?;
        self.open(at, &sealed)
    }

    fn open(&self, at: &ChunkRef, sealed: &[u8]) -> std::result::Result<Vec<u8>, ChunkError> {
        let opened = self.sealer.open(&at.name, at.length, sealed);
        opened.map_err(|unsealed| match unsealed {
            Unsealed::Damaged(why) => ChunkError::Damaged(why),
            Unsealed::WrongKey { key } => ChunkError::WrongKey { key },
        })
    }

    /// Writes all bytes of a file to `to`, in order. Cuts its last chunk to the length of the file.
    pub async fn fetch(
        &self,
        file: &ManifestFile,
        to: &mut (dyn Write + Send),
    ) -> std::result::Result<(), ChunkError> {
        let mut left = file.length;
        let mut write = |plain: &[u8]| {
            let most = usize::try_from(left).unwrap_or(usize::MAX);
            let these = &plain[..plain.len().min(most)];
            left -= these.len() as u64;
            to.write_all(these)
        };
        match &self.blobs {
            Blobs::Database => {
                for some in file.chunks.0.chunks(TOGETHER) {
                    // A large file takes long, so other tasks of this thread get their turn.
                    tokio::task::yield_now().await;
                    // The connection is released in between: the holder of a turn must be able to
                    // renew its lease.
                    let bodies = {
                        let mut read = self.store.read().await?;
                        bodies(&mut read, some).await?
                    };
                    for (at, body) in some.iter().zip(bodies) {
                        let plain = match body {
                            Some(sealed) => self.open(at, &sealed)?,
                            None => self.chunk(at).await?,
                        };
                        write(&plain)?;
                    }
                }
            }
            Blobs::Objects(_) => {
                let chunks = stream::iter(file.chunks.0.iter().map(|at| self.chunk(at)));
                let mut chunks = chunks.buffered(AT_ONCE);
                while let Some(plain) = chunks.try_next().await? {
                    write(&plain)?;
                }
            }
        }
        Ok(())
    }
}

/// Reads some chunks with one query, in their order.
async fn bodies(read: &mut Read, some: &[ChunkRef]) -> Result<Vec<Option<Vec<u8>>>> {
    let sql = "select name, body from chunks where place = 'db' and name in
        ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)";
    let nobody = [0; 32];
    let name = |n: usize| some.get(n).map_or(nobody, |at| at.name);
    let values = (0..TOGETHER).map(|n| name(n).into()).collect();
    let mut found = std::collections::HashMap::new();
    for row in &rows(read, sql, values).await? {
        found.insert(row.hash("name")?, row.maybe_bytes("body")?);
    }
    let body = |at: &ChunkRef| found.get(&at.name).cloned().flatten();
    Ok(some.iter().map(body).collect())
}
