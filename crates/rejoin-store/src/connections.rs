//! A writer connection, and reader connections while the writer is in use.
//!
//! A command works sequentially, so one connection is enough and saves half the time of opening. A
//! reader gets its own connection only if the writer is busy.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as AsyncMutex, OnceCell, OwnedMutexGuard};
use uuid::Uuid;

use crate::db::{Ask, SqlValue, one};
use crate::engine::Connection;
use crate::engine::sqlite::Local;
use crate::error::{Error, Result};
use crate::open::postgres::Server;
use crate::{attempts, conversations, messages, pins, turns};

/// Longest time that a transaction waits for another one of this process.
const WRITER_MAY_TAKE: Duration = Duration::from_secs(30);
/// Number of idle readers kept open.
const KEPT: usize = 4;

/// An open store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    /// `None` once the store is closed, and while a lost connection has not been replaced.
    writer: Arc<AsyncMutex<Option<Connection>>>,
    home: Arc<Home>,
}

/// Origin of connections, and pool of idle ones.
#[derive(Debug)]
struct Home {
    origin: Origin,
    idle: Mutex<Vec<Connection>>,
    closed: AtomicBool,
    /// Device and inode of the opened file. `None`: a server.
    file: Option<(u64, u64)>,
    /// True if this process keeps the store open for long and writes much.
    stays: AtomicBool,
    /// Id of the store, read once.
    id: OnceCell<Uuid>,
}

/// Data to open another connection.
#[derive(Debug, Clone)]
pub(crate) enum Origin {
    /// Path of the file.
    Sqlite(PathBuf),
    Postgres(Box<Server>),
}

impl Origin {
    /// Device and inode of the file at the path now.
    fn file(&self) -> Option<(u64, u64)> {
        match self {
            Self::Sqlite(path) => {
                let meta = fs_err::metadata(path).ok()?;
                Some((meta.dev(), meta.ino()))
            }
            Self::Postgres(_) => None,
        }
    }
}

impl Store {
    pub(crate) fn new(writer: Connection, origin: Origin) -> Self {
        let home = Home {
            file: origin.file(),
            origin,
            idle: Mutex::default(),
            closed: AtomicBool::new(false),
            stays: AtomicBool::new(false),
            id: OnceCell::new(),
        };
        Self {
            writer: Arc::new(AsyncMutex::new(Some(writer))),
            home: Arc::new(home),
        }
    }

    /// Returns true if other machines may use the store too.
    pub fn is_shared(&self) -> bool {
        matches!(self.home.origin, Origin::Postgres(_))
    }

    /// Returns the unique id of the store, regardless of its chunk storage.
    pub(crate) async fn id(&self) -> Result<Uuid> {
        let ask = || async {
            let mut read = self.read().await?;
            let row = one(&mut read, "select id from stores", vec![]).await?;
            let nobody = || Error::Foreign("it does not know who it is".into());
            row.ok_or_else(nobody)?.id("id")
        };
        self.home.id.get_or_try_init(ask).await.copied()
    }

    /// Starts a write transaction. It takes the engine's write lock at once, so data it reads stays
    /// current.
    pub async fn begin(&self) -> Result<Tx> {
        self.home.must_be_there()?;
        let lock = Arc::clone(&self.writer).lock_owned();
        let mut writer = tokio::time::timeout(WRITER_MAY_TAKE, lock)
            .await
            .map_err(|_| Error::Unavailable("other work here keeps it".into()))?;
        let used = writer.is_some();
        if !used {
            *writer = Some(self.home.replace().await?);
        }
        // Open from here on: a drop while it begins must roll back as well.
        let mut tx = Tx {
            writer: Some(writer),
            state: State::Open,
        };
        match tx.connection()?.begin().await {
            // Nothing was done on this connection: a server restart meanwhile must not fail a
            // command.
            Err(error) if error.is_lost() && used => {
                tx.give_up();
                if let Some(writer) = tx.writer.as_mut() {
                    **writer = Some(self.home.replace().await?);
                }
                tx.state = State::Open;
                tx.connection()?.begin().await?;
            }
            begun => begun?,
        }
        Ok(tx)
    }

    /// Returns a read-only connection. Do not hold it while beginning a transaction.
    pub async fn read(&self) -> Result<Read> {
        self.home.must_be_there()?;
        let home = Arc::clone(&self.home);
        if let Ok(mut writer) = Arc::clone(&self.writer).try_lock_owned() {
            if writer.is_none() && self.is_shared() {
                *writer = Some(self.home.replace().await?);
            }
            return Ok(Read::new(Lent::Writer(writer, home)));
        }
        let idle = self.home.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.home.another().await?,
        };
        Ok(Read::new(Lent::Reader(Some(connection), home)))
    }

    /// Returns a read-only connection whose queries all see the store as it is at the first of them,
    /// whatever others commit meanwhile. Call [`Read::finish`] after the last query. Do not hold it
    /// while beginning a transaction.
    pub async fn read_consistent(&self) -> Result<Read> {
        let mut read = self.read().await?;
        let begun = read.connection()?.begin_reading().await;
        if let Err(error) = begun {
            read.give_up();
            if !error.is_lost() || !read.may_ask_again() {
                return Err(error);
            }
            read.renew().await?;
            read.connection()?.begin_reading().await?;
        }
        read.consistent = true;
        Ok(read)
    }

    /// Prepares the statements for the end of a turn while it runs: planning a statement takes
    /// longer than running it, and at this time nothing waits for it. Errors are ignored; they
    /// occur again when the statement is used.
    pub async fn expect_end(&self) {
        let end = [
            attempts::ADVANCE_SPOOL,
            conversations::NEIGHBOURS,
            pins::CONFIRM,
            attempts::END_ATTEMPT,
            turns::END_TURN,
            conversations::STAMP,
            messages::BY_ID,
        ];
        if let Some(writer) = self.writer.lock().await.as_mut() {
            for sql in end {
                writer.plan(sql).await;
            }
        }
    }

    /// Tunes the store for a daemon: a file's log is read once, and written back less often.
    pub async fn stays_open(&self) {
        self.home.stays.store(true, Ordering::Relaxed);
        if let Some(Connection::Sqlite(writer)) = self.writer.lock().await.as_mut() {
            writer.stays_open();
        }
    }

    /// Empties a file's log while no caller waits: every command that opens the file reads the
    /// whole log.
    pub fn write_back(&self) {
        let stays = self.home.stays.load(Ordering::Relaxed);
        if let Ok(mut writer) = self.writer.try_lock()
            && let Some(Connection::Sqlite(writer)) = writer.as_mut().filter(|_| !stays)
        {
            writer.write_back();
        }
    }

    /// Waits until all connections are closed. A command need not wait: committed data is safe.
    pub async fn close(&self) {
        self.home.closed.store(true, Ordering::Relaxed);
        self.home.idle().clear();
        if let Some(writer) = self.writer.lock().await.take() {
            writer.close().await;
        }
    }
}

impl Home {
    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails if the file was deleted or replaced. Connections to a deleted file keep working, but
    /// their writes are lost, and new connections would read another file.
    fn must_be_there(&self) -> Result<()> {
        if self.file.is_none() || self.origin.file() == self.file {
            return Ok(());
        }
        let text = "its file was deleted or replaced; put it back, or start rejoin again";
        Err(Error::Unavailable(text.into()))
    }

    /// Opens another connection for reading.
    async fn another(&self) -> Result<Connection> {
        match &self.origin {
            Origin::Sqlite(file) => Ok(Connection::Sqlite(Box::new(Local::another(file)?))),
            Origin::Postgres(server) => {
                Ok(Connection::Postgres(Box::new(server.connect(false).await?)))
            }
        }
    }

    /// Opens a connection to replace a lost one.
    async fn replace(&self) -> Result<Connection> {
        match &self.origin {
            Origin::Postgres(server) if !self.closed.load(Ordering::Relaxed) => {
                let served = server.connect(true).await?;
                Ok(Connection::Postgres(Box::new(served)))
            }
            // A file connection cannot get lost, and a closed store stays closed.
            Origin::Postgres(_) | Origin::Sqlite(_) => Err(closed()),
        }
    }
}

/// A write transaction. Dropped without a commit, it is rolled back.
#[derive(Debug)]
pub struct Tx {
    writer: Option<OwnedMutexGuard<Option<Connection>>>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The engine refused a statement; only a rollback is possible.
    Failed,
    Over,
}

impl Tx {
    pub async fn commit(mut self) -> Result<()> {
        // PostgreSQL would roll back here without an error.
        if self.state == State::Failed {
            return Err(Error::Failed);
        }
        self.run("commit", vec![]).await?;
        self.state = State::Over;
        Ok(())
    }

    /// Runs a statement and returns the number of affected rows.
    pub(crate) async fn run(&mut self, sql: &'static str, values: Vec<SqlValue>) -> Result<u64> {
        let done = self.connection()?.run(sql, values).await;
        if let Err(error) = &done {
            self.state = State::Failed;
            if error.is_lost() {
                self.give_up();
            }
        }
        done
    }

    /// Runs a compare-and-set. Zero affected rows mean that another process was faster.
    pub(crate) async fn must(
        &mut self,
        sql: &'static str,
        values: Vec<SqlValue>,
        lost: &'static str,
    ) -> Result<()> {
        match self.run(sql, values).await? {
            0 => Err(Error::Conflict(lost)),
            _ => Ok(()),
        }
    }
}

impl Drop for Tx {
    /// Rolls back before another caller gets the writer.
    fn drop(&mut self) {
        let Some(mut writer) = self.writer.take().filter(|_| self.state != State::Over) else {
            return;
        };
        if let Some(Connection::Sqlite(local)) = writer.as_mut() {
            let _taken_back = local.run("rollback", &[]);
            return;
        }
        // Without a runtime the process is about to end, and the engine rolls back itself.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Some(connection) = writer.as_mut()
                    && connection.run("rollback", vec![]).await.is_err()
                {
                    // The server rolls back when the connection is cut.
                    *writer = None;
                }
            });
        }
    }
}

/// A read-only connection. Returns to its pool when dropped.
#[derive(Debug)]
pub struct Read {
    lent: Lent,
    /// True within a transaction that all queries share.
    consistent: bool,
}

impl Read {
    fn new(lent: Lent) -> Self {
        Self {
            lent,
            consistent: false,
        }
    }

    /// Ends a consistent read. Without this call a server's connection is closed when dropped.
    pub async fn finish(mut self) {
        if self.consistent && self.connection().is_ok() {
            let ended = match self.connection() {
                Ok(connection) => connection.run("rollback", vec![]).await,
                Err(error) => Err(error),
            };
            if ended.is_err() {
                self.give_up();
            }
        }
        self.consistent = false;
    }
}

#[derive(Debug)]
enum Lent {
    Writer(OwnedMutexGuard<Option<Connection>>, Arc<Home>),
    Reader(Option<Connection>, Arc<Home>),
}

impl Lent {
    fn slot(&mut self) -> &mut Option<Connection> {
        match self {
            Self::Writer(guard, _) => guard,
            Self::Reader(connection, _) => connection,
        }
    }

    fn home(&self) -> Arc<Home> {
        match self {
            Self::Writer(_, home) | Self::Reader(_, home) => Arc::clone(home),
        }
    }
}

impl Drop for Read {
    fn drop(&mut self) {
        if self.consistent {
            match self.lent.slot().as_mut() {
                Some(Connection::Sqlite(local)) => drop(local.run("rollback", &[])),
                // The server ends the transaction with its connection.
                Some(Connection::Postgres(_)) => self.give_up(),
                None => {}
            }
        }
        if let Lent::Reader(connection, home) = &mut self.lent {
            let mut idle = home.idle();
            if idle.len() < KEPT {
                idle.extend(connection.take());
            }
        }
    }
}

impl Ask for Tx {
    fn connection(&mut self) -> Result<&mut Connection> {
        let writer = self.writer.as_mut().and_then(|guard| guard.as_mut());
        writer.ok_or_else(closed)
    }

    /// Returns false: a new connection would lose the work of the transaction.
    fn may_ask_again(&self) -> bool {
        false
    }

    async fn renew(&mut self) -> Result<()> {
        Err(closed())
    }

    fn give_up(&mut self) {
        self.state = State::Failed;
        if let Some(writer) = self.writer.as_mut() {
            **writer = None;
        }
    }
}

impl Ask for Read {
    fn connection(&mut self) -> Result<&mut Connection> {
        self.lent.slot().as_mut().ok_or_else(closed)
    }

    /// Returns true for a server, because each query is independent, unless all must see the same
    /// moment. A file connection cannot get lost.
    fn may_ask_again(&self) -> bool {
        !self.consistent && matches!(self.lent.home().origin, Origin::Postgres(_))
    }

    async fn renew(&mut self) -> Result<()> {
        let another = self.lent.home().replace().await?;
        *self.lent.slot() = Some(another);
        Ok(())
    }

    fn give_up(&mut self) {
        *self.lent.slot() = None;
    }
}

fn closed() -> Error {
    Error::Unavailable("it is closed".into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A missing file is an error at once, and works again once it is back.
    #[tokio::test]
    async fn a_deleted_or_replaced_file_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let (file, away) = (dir.path().join("s.db"), dir.path().join("away"));
        let store = Store::open_sqlite(&file).await.unwrap();
        assert!(store.begin().await.is_ok());
        fs_err::rename(&file, &away).unwrap();
        assert!(matches!(store.begin().await, Err(Error::Unavailable(_))));
        assert!(matches!(store.read().await, Err(Error::Unavailable(_))));
        fs_err::copy(&away, &file).unwrap();
        assert!(matches!(store.begin().await, Err(Error::Unavailable(_))));
        fs_err::rename(&away, &file).unwrap();
        assert!(store.begin().await.is_ok());
        assert!(store.read().await.is_ok());
    }

    /// Many queries to a file do not monopolise the thread.
    #[tokio::test]
    async fn the_threads_other_work_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_sqlite(&dir.path().join("s.db")).await.unwrap();
        let asking = tokio::spawn(async move {
            let mut read = store.read().await.unwrap();
            for _ in 0..2000 {
                one(&mut read, "select id from stores", vec![])
                    .await
                    .unwrap();
            }
        });
        let mut turns = 0;
        while !asking.is_finished() {
            tokio::task::yield_now().await;
            turns += 1;
        }
        assert!(turns > 10, "it came to its turn {turns} times");
        asking.await.unwrap();
    }
}
