//! Where the bytes of a chunk lie, as its rows say: one for each place. A row of another place than
//! the configured one is no reason not to write the chunk, and one to look for it all the same:
//! places are moved, and reached by other names.

use crate::blobs::{Blobs, ObjectName, Objects};
use crate::chunks::ChunkRef;
use crate::connections::Tx;
use crate::db::{Ask, Row, one, rows, vals};
use crate::error::{Error, Result};
use crate::vault::{Lost, Vault};

/// Before the place of a row whose object was missed there.
const MISSED: &str = "-";
/// Chunks that are asked for with one query.
const TOGETHER: usize = 4096;

impl Vault {
    /// The part of the object store that is this store's; none: chunks lie in the database.
    pub async fn objects(&self) -> Result<Option<Objects>> {
        match &self.blobs {
            Blobs::Database => Ok(None),
            Blobs::Objects(objects) => Ok(Some(objects.of_store(self.store.id().await?))),
        }
    }

    /// Are all of those there, as far as rows say, where they are looked for from here?
    pub async fn holds(&self, chunks: &[ChunkRef]) -> Result<bool> {
        let mark = self.blobs.mark();
        let mut read = self.store.read().await?;
        all_there(&mut read, chunks, Some(&mark)).await
    }

    /// What `body` gives of its row, or `ask` of the first of its objects that is there; and of which
    /// row. `sql` finds its rows, for its name and the mark of this place, the nearest first.
    pub(crate) async fn find<T>(
        &self,
        at: &ChunkRef,
        body: impl Fn(&Row) -> Result<Option<T>>,
        ask: impl AsyncFn(&Objects, &ObjectName) -> Result<Option<T>>,
        sql: &'static str,
    ) -> std::result::Result<(T, Row), Lost> {
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
            return Err(Lost::Missing);
        }
        let here = self.blobs.place();
        Err(Lost::Elsewhere { here })
    }

    /// Their objects are gone: whoever captures them writes them again. That they were there stays
    /// known, for they may turn up: a folder may just not be mounted.
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
    /// Are all of those there, as far as rows say, wherever it is?
    pub(crate) async fn all_there(&mut self, chunks: &[ChunkRef]) -> Result<bool> {
        all_there(self, chunks, None).await
    }
}

/// In the database or in that place; none: in any.
async fn all_there(at: &mut impl Ask, chunks: &[ChunkRef], place: Option<&str>) -> Result<bool> {
    // The names come as one text of bytes: as many as there are, in one question.
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
