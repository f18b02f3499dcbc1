//! One writer, and readers when somebody else is using it.
//!
//! A command is one thing after the other: it makes do with a single connection, which saves it
//! half of the opening. Only if the writer is taken does a reader get its own.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as AsyncMutex, OnceCell, OwnedMutexGuard};
use uuid::Uuid;

use crate::db::{Ask, Val, one};
use crate::engine::Connection;
use crate::engine::sqlite::Local;
use crate::error::{Error, Result};
use crate::open::postgres::Server;
use crate::{attempts, conversations, messages, pins, turns};

/// How long a transaction waits for another one of this process.
const WRITER_MAY_TAKE: Duration = Duration::from_secs(30);
/// Idle readers kept open.
const KEPT: usize = 4;

/// A store that is open. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    /// None once it is closed, and while a lost connection has not been replaced.
    writer: Arc<AsyncMutex<Option<Connection>>>,
    home: Arc<Home>,
}

/// Where connections come from, and where those that are not needed stay.
#[derive(Debug)]
struct Home {
    origin: Origin,
    idle: Mutex<Vec<Connection>>,
    closed: AtomicBool,
    /// Device and inode of the file that was opened; none: a server.
    file: Option<(u64, u64)>,
    /// This process has it open for long, and much is written.
    stays: AtomicBool,
    /// Asked for once.
    id: OnceCell<Uuid>,
}

/// How to connect once more.
#[derive(Debug, Clone)]
pub(crate) enum Origin {
    /// The file.
    Sqlite(PathBuf),
    Postgres(Box<Server>),
}

impl Origin {
    /// Device and inode of the file there is now.
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

    /// Other machines may use it too.
    pub fn is_shared(&self) -> bool {
        matches!(self.home.origin, Origin::Postgres(_))
    }

    /// Who it is: no other store has it, wherever else it may keep its chunks too.
    pub(crate) async fn id(&self) -> Result<Uuid> {
        let ask = || async {
            let mut read = self.read().await?;
            let row = one(&mut read, "select id from stores", vec![]).await?;
            let nobody = || Error::Foreign("it does not know who it is".into());
            row.ok_or_else(nobody)?.id("id")
        };
        self.home.id.get_or_try_init(ask).await.copied()
    }

    /// A write transaction. It takes the engine's write lock at once, so what it reads stays true.
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
        // Open from here on: who drops this while it begins must take it back as well.
        let mut tx = Tx {
            writer: Some(writer),
            state: State::Open,
        };
        match tx.connection()?.begin().await {
            // Nothing was done over it: a server that was restarted meanwhile costs no command.
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

    /// A connection for looking only. Not to be held while beginning a transaction.
    pub async fn read(&self) -> Result<Read> {
        self.home.must_be_there()?;
        let home = Arc::clone(&self.home);
        if let Ok(mut writer) = Arc::clone(&self.writer).try_lock_owned() {
            if writer.is_none() && self.is_shared() {
                *writer = Some(self.home.replace().await?);
            }
            return Ok(Read(Lent::Writer(writer, home)));
        }
        let idle = self.home.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.home.another().await?,
        };
        Ok(Read(Lent::Reader(Some(connection), home)))
    }

    /// Gets ready for the end of a turn while it runs: to plan a statement takes longer than to run
    /// it, and then nobody waits for it. What goes wrong goes wrong again when it is used.
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

    /// For a daemon: a file's log is read once, and written back less often.
    pub async fn stays_open(&self) {
        self.home.stays.store(true, Ordering::Relaxed);
        if let Some(Connection::Sqlite(writer)) = self.writer.lock().await.as_mut() {
            writer.stays_open();
        }
    }

    /// Empties the log of a file while nobody waits for it: every command that opens it reads it whole.
    pub fn write_back(&self) {
        let stays = self.home.stays.load(Ordering::Relaxed);
        if let Ok(mut writer) = self.writer.try_lock()
            && let Some(Connection::Sqlite(writer)) = writer.as_mut().filter(|_| !stays)
        {
            writer.write_back();
        }
    }

    /// Waits until everything is closed. A command need not: what is committed is kept.
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

    /// Fails if the file was deleted or replaced. Connections to a deleted file go on working: what they
    /// write is lost, and new connections would read another file.
    fn must_be_there(&self) -> Result<()> {
        if self.file.is_none() || self.origin.file() == self.file {
            return Ok(());
        }
        let text = "its file was deleted or replaced; put it back, or start rejoin again";
        Err(Error::Unavailable(text.into()))
    }

    /// One more, for reading.
    async fn another(&self) -> Result<Connection> {
        match &self.origin {
            Origin::Sqlite(file) => Ok(Connection::Sqlite(Box::new(Local::another(file)?))),
            Origin::Postgres(server) => {
                Ok(Connection::Postgres(Box::new(server.connect(false).await?)))
            }
        }
    }

    /// In the place of one that was lost.
    async fn replace(&self) -> Result<Connection> {
        match &self.origin {
            Origin::Postgres(server) if !self.closed.load(Ordering::Relaxed) => {
                let served = server.connect(true).await?;
                Ok(Connection::Postgres(Box::new(served)))
            }
            // A file is not lost; what is closed stays so.
            Origin::Postgres(_) | Origin::Sqlite(_) => Err(closed()),
        }
    }
}

/// A write transaction; dropped without commit, it never was.
#[derive(Debug)]
pub struct Tx {
    writer: Option<OwnedMutexGuard<Option<Connection>>>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// A statement was refused by the engine: all that is left is to take it back.
    Failed,
    Over,
}

impl Tx {
    pub async fn commit(mut self) -> Result<()> {
        // PostgreSQL would take it back here, and say nothing.
        if self.state == State::Failed {
            return Err(Error::Failed);
        }
        self.run("commit", vec![]).await?;
        self.state = State::Over;
        Ok(())
    }

    /// Runs a change, says how many rows it met.
    pub(crate) async fn run(&mut self, sql: &'static str, values: Vec<Val>) -> Result<u64> {
        let done = self.connection()?.run(sql, values).await;
        if let Err(error) = &done {
            self.state = State::Failed;
            if error.is_lost() {
                self.give_up();
            }
        }
        done
    }

    /// A compare-and-set: meeting no row means somebody was faster.
    pub(crate) async fn must(
        &mut self,
        sql: &'static str,
        values: Vec<Val>,
        lost: &'static str,
    ) -> Result<()> {
        match self.run(sql, values).await? {
            0 => Err(Error::Conflict(lost)),
            _ => Ok(()),
        }
    }
}

impl Drop for Tx {
    /// Takes it back before anybody else gets the writer.
    fn drop(&mut self) {
        let Some(mut writer) = self.writer.take().filter(|_| self.state != State::Over) else {
            return;
        };
        if let Some(Connection::Sqlite(local)) = writer.as_mut() {
            let _taken_back = local.run("rollback", &[]);
            return;
        }
        // Without a runtime the process is about to end, and the engine takes it back itself.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Some(connection) = writer.as_mut()
                    && connection.run("rollback", vec![]).await.is_err()
                {
                    // The server takes it back when the line is cut.
                    *writer = None;
                }
            });
        }
    }
}

/// A connection for looking only; goes back to where it came from when dropped.
#[derive(Debug)]
pub struct Read(Lent);

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
        if let Lent::Reader(connection, home) = &mut self.0 {
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

    /// What it did so far would go with the connection.
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
        self.0.slot().as_mut().ok_or_else(closed)
    }

    /// Each question stands alone. A file does not get lost.
    fn may_ask_again(&self) -> bool {
        matches!(self.0.home().origin, Origin::Postgres(_))
    }

    async fn renew(&mut self) -> Result<()> {
        let another = self.0.home().replace().await?;
        *self.0.slot() = Some(another);
        Ok(())
    }

    fn give_up(&mut self) {
        *self.0.slot() = None;
    }
}

fn closed() -> Error {
    Error::Unavailable("it is closed".into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A file that is gone is an error at once, and none any more when it is back.
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

    /// Who asks a file a lot does not have the thread for itself.
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
