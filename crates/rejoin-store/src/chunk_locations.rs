//! Locations of a chunk's bytes: one row for each. A row for another location than the configured
//! one does not prevent writing the chunk again, but the chunk is looked for there all the same:
//! storage is moved, and reached by other names.

use crate::blobs::{Blobs, ObjectName, Objects};
use crate::chunks::ChunkRef;
use crate::connections::Tx;
use crate::db::{Ask, Row, one, rows, vals};
use crate::error::{Error, Result};
use crate::vault::{ChunkError, Vault};

/// Prefix of the location of a row whose object was missing.
const MISSED: &str = "-";
/// Number of chunks per query.
const TOGETHER: usize = 4096;

impl Vault {
    /// Returns this store's part of the object store. `None` if chunks are in the database.
    pub async fn objects(&self) -> Result<Option<Objects>> {
        match &self.blobs {
            Blobs::Database => Ok(None),
            Blobs::Objects(objects) => Ok(Some(objects.of_store(self.store.id().await?))),
        }
    }

    /// Returns true if rows exist for all of these chunks, at a location that is searched from
    /// here.
    pub async fn holds(&self, chunks: &[ChunkRef]) -> Result<bool> {
        let mark = self.blobs.mark();
        let mut read = self.store.read().await?;
        all_there(&mut read, chunks, Some(&mark)).await
    }

    /// Returns the value that `body` reads from a row, or `ask` from the first object that exists,
    /// and the row. `sql` selects the rows by chunk name and mark of this location, nearest first.
    pub(crate) async fn find<T>(
        &self,
        at: &ChunkRef,
        body: impl Fn(&Row) -> Result<Option<T>>,
        ask: impl AsyncFn(&Objects, &ObjectName) -> Result<Option<T>>,
        sql: &'static str,
    ) -> std::result::Result<(T, Row), ChunkError> {
        let mark = self.blobs.mark();
        let found = {
            let mut read = self.store.read().await?;
            rows(&mut read, sql, vals![at.name, mark.as_str()]).await?
        };
        let objects = self.objects().await?;
        let mut ours = found.is_empty();
        for row in found {
            if let Some(body) = body(&row)? {
                return Ok((body, row));
            }
            let place = row.text("place")?;
            ours |= place.strip_prefix(MISSED).unwrap_or(&place) == mark;
            let (Some(objects), Some(copy)) = (&objects, copy(&row)?) else {
                continue;
            };
            let name = ObjectName {
                chunk: at.name,
                copy,
            };
            if let Some(there) = ask(objects, &name).await? {
                return Ok((there, row));
            }
        }
        if ours {
            return Err(ChunkError::Missing);
        }
        let here = self.blobs.place();
        Err(ChunkError::Elsewhere { here })
    }

    /// Marks the objects of these chunks as missing, so that the next capture writes them again.
    /// The rows stay, because objects may reappear: a folder may just not be mounted.
    pub(crate) async fn miss(&self, chunks: &[[u8; 32]]) -> Result<()> {
        if chunks.is_empty() || matches!(self.blobs, Blobs::Database) {
            return Ok(());
        }
        let mark = self.blobs.mark();
        let mut tx = self.store.begin().await?;
        for name in chunks {
            let older = "delete from chunks where name = $1 and place = '-' || $2
                and exists (select 1 from chunks newer where newer.name = $1 and newer.place = $2)";
            tx.run(older, vals![*name, mark.as_str()]).await?;
            let sql = "update chunks set place = '-' || $2 where name = $1 and place = $2";
            tx.run(sql, vals![*name, mark.as_str()]).await?;
        }
        tx.commit().await
    }
}

impl Tx {
    /// Returns true if rows exist for all of these chunks, at any location.
    pub(crate) async fn all_there(&mut self, chunks: &[ChunkRef]) -> Result<bool> {
        all_there(self, chunks, None).await
    }
}

/// Returns true if all chunks are in the database or at that location. `None`: at any location.
async fn all_there(at: &mut impl Ask, chunks: &[ChunkRef], place: Option<&str>) -> Result<bool> {
    // The names are passed as one byte string: any number of them in one query.
    let sql = "with recursive names (n) as
            (select 1 union all select n + 32 from names where n + 32 < length($1))
        select count(*) as there from names where exists
            (select 1 from chunks where chunks.name = substr($1, names.n, 32)
                and substr(chunks.place, 1, 1) <> '-'
                and ($2 = '' or chunks.place in ('db', $2)))";
    for some in chunks.chunks(TOGETHER) {
        let names: Vec<u8> = some.iter().flat_map(|at| at.name).collect();
        let row = one(at, sql, vals![names, place.unwrap_or_default()]).await?;
        if row.map_or(Ok(0), |row| row.int("there"))? != some.len() as i64 {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(crate) fn copy(row: &Row) -> Result<Option<u32>> {
    let copy = row.maybe_int("copy")?;
    let foreign = |_| Error::Foreign("copy is not a number of ours".into());
    copy.map(|copy| u32::try_from(copy).map_err(foreign))
        .transpose()
}
