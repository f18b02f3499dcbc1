//! The SQLite engine: a database in a file. Queries run in the caller's thread: handing a query to
//! another thread and back takes longer than most answers.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};
use rusqlite::config::DbConfig;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{OpenFlags, Statement};

use crate::db::SqlValue;
use crate::error::{Error, Result};

/// Earlier versions could lose data that was written while the log restarted.
const _: () = assert!(rusqlite::ffi::SQLITE_VERSION_NUMBER >= 3_051_003);

/// Longest time that a writer waits for another process's transaction.
const BUSY: Duration = Duration::from_secs(20);
/// Number of prepared statements kept: planning one takes longer than running it.
const KEPT: usize = 128;
/// Longest delay between two tries to begin.
const PAUSE: Duration = Duration::from_millis(50);
/// Number of pages after which the log is written back. Every process that opens the file reads the
/// whole log.
const LOG_PAGES: i64 = 250;
/// Number of pages for a store that stays open.
const LONG_LOG_PAGES: i64 = 1000;

/// A connection to a file.
#[derive(Debug)]
pub(crate) struct Local {
    /// Never locked. The mutex only makes the connection `Sync`.
    at: Mutex<rusqlite::Connection>,
}

/// A row of a result.
#[derive(Debug)]
pub(crate) struct LocalRow {
    names: Arc<[String]>,
    values: Vec<Value>,
}

impl Local {
    /// Opens a file for writing, and creates it if it does not exist.
    pub(crate) fn open(path: &Path) -> rusqlite::Result<Self> {
        if unchanging(path).is_some() {
            return Self::another(path);
        }
        let at = Self::connect(path, OpenFlags::SQLITE_OPEN_CREATE)?;
        // Every commit survives the death of any process. A power cut may undo the newest commits,
        // in order: those since the log was last written back, or since the system last wrote on
        // its own.
        at.pragma_update(None, "synchronous", "normal")?;
        at.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
        at.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
        Ok(Self { at: Mutex::new(at) })
    }

    /// Opens another connection to an existing file.
    pub(crate) fn another(path: &Path) -> rusqlite::Result<Self> {
        let at = match unchanging(path) {
            Some(name) => Self::connect(Path::new(&name), OpenFlags::SQLITE_OPEN_URI)?,
            None => Self::connect(path, OpenFlags::empty())?,
        };
        Ok(Self { at: Mutex::new(at) })
    }

    #[expect(clippy::disallowed_methods, reason = "this is the place for stores")]
    fn connect(path: &Path, more: OpenFlags) -> rusqlite::Result<rusqlite::Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let at = rusqlite::Connection::open_with_flags(path, flags | more)?;
        at.busy_timeout(BUSY)?;
        at.set_prepared_statement_cache_capacity(KEPT);
        // A command does not wait for the disk when it ends: committed data is in the log.
        at.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        Ok(at)
    }

    pub(crate) fn at(&mut self) -> &mut rusqlite::Connection {
        self.at.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn all(&mut self, sql: &str, values: &[SqlValue]) -> Result<Vec<LocalRow>> {
        let mut statement = self.at().prepare_cached(sql)?;
        bind(&mut statement, values)?;
        let names: Arc<[String]> = statement.column_names().iter().map(|&n| n.into()).collect();
        let mut found = statement.raw_query();
        let mut rows = vec![];
        while let Some(row) = found.next()? {
            let values = (0..names.len()).map(|n| owned(row.get_ref(n)?));
            rows.push(LocalRow {
                values: values.collect::<Result<_>>()?,
                names: Arc::clone(&names),
            });
        }
        Ok(rows)
    }

    pub(crate) fn run(&mut self, sql: &str, values: &[SqlValue]) -> Result<u64> {
        let at = self.at();
        let mut statement = at.prepare_cached(sql)?;
        bind(&mut statement, values)?;
        let mut found = statement.raw_query();
        while found.next()?.is_some() {}
        drop(found);
        drop(statement);
        Ok(at.changes())
    }

    /// Takes the write lock. Waits for another writer without blocking the thread.
    pub(crate) async fn begin(&mut self) -> Result<()> {
        let until = Instant::now() + BUSY;
        let mut pause = Duration::from_millis(1);
        loop {
            self.at().busy_timeout(Duration::ZERO)?;
            let begun = self.run("begin immediate", &[]);
            self.at().busy_timeout(BUSY)?;
            match begun {
                Err(Error::Busy(_)) if Instant::now() < until => {
                    tokio::time::sleep(pause).await;
                    pause = PAUSE.min(pause * 2);
                }
                begun => return begun.map(drop),
            }
        }
    }

    /// Prepares a statement. Ignores an error: it occurs again when the statement is used.
    pub(crate) fn plan(&mut self, sql: &str) {
        drop(self.at().prepare_cached(sql));
    }

    pub(crate) fn stays_open(&mut self) {
        let _else_more_often = self
            .at()
            .pragma_update(None, "wal_autocheckpoint", LONG_LOG_PAGES);
    }

    /// Writes the log back, except for the part that readers still use. Ignores an error: the next
    /// call has more to write.
    pub(crate) fn write_back(&mut self) {
        let done = "pragma wal_checkpoint(passive)";
        let _busy = self.at().query_row(done, [], |_| Ok(()));
    }

    /// Closes the connection. The last one writes the log back completely.
    pub(crate) fn close(self) {
        let at = self.at.into_inner().unwrap_or_else(PoisonError::into_inner);
        let _told_when_opened = at.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
        drop(at.close());
    }
}

impl LocalRow {
    fn value(&self, column: &str) -> Result<&Value> {
        let place = self.names.iter().position(|name| name == column);
        let value = place.and_then(|place| self.values.get(place));
        value.ok_or_else(|| Error::Foreign(format!("there is no column {column}")))
    }

    pub(crate) fn int(&self, column: &str) -> Result<Option<i64>> {
        match self.value(column)? {
            Value::Null => Ok(None),
            Value::Integer(number) => Ok(Some(*number)),
            Value::Real(_) | Value::Text(_) | Value::Blob(_) => Err(other(column, "number")),
        }
    }

    pub(crate) fn text(&self, column: &str) -> Result<Option<String>> {
        match self.value(column)? {
            Value::Null => Ok(None),
            Value::Text(text) => Ok(Some(text.clone())),
            Value::Integer(_) | Value::Real(_) | Value::Blob(_) => Err(other(column, "text")),
        }
    }

    pub(crate) fn bytes(&self, column: &str) -> Result<Option<Vec<u8>>> {
        match self.value(column)? {
            Value::Null => Ok(None),
            Value::Blob(bytes) => Ok(Some(bytes.clone())),
            Value::Text(text) => Ok(Some(text.clone().into_bytes())),
            Value::Integer(_) | Value::Real(_) => Err(other(column, "row of bytes")),
        }
    }
}

fn other(column: &str, kind: &str) -> Error {
    Error::Foreign(format!("{column} is no {kind}"))
}

/// Returns a URI with which the engine reads a file on a read-only file system, without the log and
/// index files that it would create beside it. `None` if the file can be written, or has a log,
/// which must be read too.
fn unchanging(path: &Path) -> Option<String> {
    // Checked without opening the file: closing it would release the locks of every other
    // connection.
    let fixed = access(path, AccessFlags::W_OK) == Err(Errno::EROFS);
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    if !fixed || fs_err::metadata(log).is_ok_and(|log| log.len() > 0) {
        return None;
    }
    let name = path.to_str()?.replace('%', "%25");
    let name = name.replace('?', "%3f").replace('#', "%23");
    Some(format!("file:{name}?immutable=1"))
}

/// Binds values by number. To the engine `$1` is a name, which gets its index at the first
/// occurrence.
fn bind(statement: &mut Statement<'_>, values: &[SqlValue]) -> Result<()> {
    for place in 1..=statement.parameter_count() {
        let name = statement.parameter_name(place).unwrap_or_default();
        let number = name.trim_start_matches('$').parse::<usize>();
        let value = number.ok().and_then(|n| values.get(n.checked_sub(1)?));
        match value {
            Some(SqlValue::Int(v)) => statement.raw_bind_parameter(place, v)?,
            Some(SqlValue::Text(v)) => statement.raw_bind_parameter(place, v)?,
            Some(SqlValue::Bytes(v)) => statement.raw_bind_parameter(place, v)?,
            Some(SqlValue::Id(v)) => {
                statement.raw_bind_parameter(place, v.as_ref().map(|id| &id.as_bytes()[..]))?;
            }
            None => return Err(Error::Foreign(format!("a value for {name} is missing"))),
        }
    }
    Ok(())
}

fn owned(value: ValueRef<'_>) -> Result<Value> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(error) => return Err(Error::Foreign(error.to_string())),
        },
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::db::vals;

    fn local() -> (tempfile::TempDir, Local) {
        let dir = tempfile::tempdir().unwrap();
        let mut local = Local::open(&dir.path().join("s.db")).unwrap();
        local
            .at()
            .execute_batch("pragma journal_mode = wal; create table t (a integer, b text, c blob)")
            .unwrap();
        (dir, local)
    }

    /// A value is bound by its number, in any order and any number of times.
    #[test]
    fn values_by_their_numbers() {
        let (_dir, mut local) = local();
        let insert = "insert into t (b, a, c) values ($2, $1, $3), ($2, $1 + 1, null)";
        let values = vals![7, "a\0b", vec![0_u8, 255]];
        assert_eq!(local.run(insert, &values).unwrap(), 2);
        let rows = local.all("select c, a, b from t order by a", &[]).unwrap();
        assert_eq!(rows[0].int("a").unwrap(), Some(7));
        assert_eq!(rows[0].text("b").unwrap().unwrap(), "a\0b");
        assert_eq!(rows[0].bytes("c").unwrap().unwrap(), [0, 255]);
        assert_eq!(rows[1].bytes("c").unwrap(), None);
        for wrong in [rows[0].int("b").is_err(), rows[0].text("a").is_err()] {
            assert!(wrong, "a value was taken for another kind");
        }
        assert!(rows[0].int("nothing").is_err());
        let few = local
            .run(insert, &[SqlValue::from(1), "x".into()])
            .unwrap_err();
        assert_eq!(
            few.to_string(),
            "the store holds something this rejoin cannot read: a value for $3 is missing"
        );
    }

    /// While another process writes, the thread does other work.
    #[tokio::test]
    async fn another_writer_is_waited_for_without_a_thread() {
        let (dir, mut local) = local();
        let mut other = Local::open(&dir.path().join("s.db")).unwrap();
        other.begin().await.unwrap();
        other.run("insert into t (a) values (1)", &[]).unwrap();
        let others = AtomicU32::new(0);
        let elsewhere = async {
            while others.fetch_add(1, Ordering::Relaxed) < 20 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            other.run("commit", &[]).unwrap();
        };
        let begun = async {
            local.begin().await.unwrap();
            assert!(others.load(Ordering::Relaxed) >= 20, "it did not wait");
        };
        tokio::join!(begun, elsewhere);
        assert_eq!(local.all("select a from t", &[]).unwrap().len(), 1);
        local.run("rollback", &[]).unwrap();
    }

    /// A command leaves its log to the next one. Closing the store does not.
    #[test]
    fn only_closing_writes_back() {
        let (dir, mut local) = local();
        let log = dir.path().join("s.db-wal");
        local.run("insert into t (a) values (1)", &[]).unwrap();
        drop(local);
        assert!(fs_err::metadata(&log).unwrap().len() > 0);
        let mut again = Local::another(&dir.path().join("s.db")).unwrap();
        assert_eq!(again.all("select a from t", &[]).unwrap().len(), 1);
        again.close();
        assert!(!log.exists());
    }

    /// Data that was written back is not read again.
    #[test]
    fn a_log_that_was_written_back_begins_anew() {
        let (dir, mut local) = local();
        let log = dir.path().join("s.db-wal");
        local.run("insert into t (a) values (1)", &[]).unwrap();
        let length = || fs_err::metadata(&log).unwrap().len();
        let before = length();
        for n in 2..20 {
            local.write_back();
            local
                .run("insert into t (a) values ($1)", &[SqlValue::from(n)])
                .unwrap();
        }
        assert_eq!(length(), before, "it grew");
        assert_eq!(local.all("select a from t", &[]).unwrap().len(), 19);
    }
}
