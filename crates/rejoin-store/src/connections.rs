//! One writer, and readers when somebody else is using it.
//!
//! A command is one thing after the other: it makes do with a single connection, which saves it a
//! thread and half of the opening. Only if the writer is taken does a reader get its own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, SqlSafeStr as _};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use crate::db::{Ask, Val, bind};
use crate::error::{Error, Result};
use crate::{conversations, messages, pins, turns};

/// How long a transaction waits for another one of this process.
const WRITER_MAY_TAKE: Duration = Duration::from_secs(30);
/// Idle readers kept open.
const KEPT: usize = 4;

/// A store that is open. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    /// None once it is closed.
    writer: Arc<AsyncMutex<Option<SqliteConnection>>>,
    readers: Arc<Readers>,
}

#[derive(Debug)]
struct Readers {
    options: SqliteConnectOptions,
    idle: Mutex<Vec<SqliteConnection>>,
}

impl Store {
    pub(crate) fn new(writer: SqliteConnection, readers: SqliteConnectOptions) -> Self {
        let readers = Readers {
            options: readers,
            idle: Mutex::default(),
        };
        Self {
            writer: Arc::new(AsyncMutex::new(Some(writer))),
            readers: Arc::new(readers),
        }
    }

    /// A write transaction. It takes the engine's write lock at once, so what it reads stays true.
    pub async fn begin(&self) -> Result<Tx> {
        let lock = Arc::clone(&self.writer).lock_owned();
        let writer = tokio::time::timeout(WRITER_MAY_TAKE, lock)
            .await
            .map_err(|_| Error::Unavailable(sqlx::Error::PoolTimedOut))?;
        // Open from here on: who drops this while it begins must take it back as well.
        let mut tx = Tx {
            writer: Some(writer),
            open: true,
        };
        tx.run("begin immediate", vec![]).await?;
        Ok(tx)
    }

    /// A connection for looking only. Not to be held while beginning a transaction.
    pub async fn read(&self) -> Result<Read> {
        if let Ok(writer) = Arc::clone(&self.writer).try_lock_owned() {
            return Ok(Read(Lent::Writer(writer)));
        }
        let idle = self.readers.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.readers.options.connect().await?,
        };
        let home = Arc::clone(&self.readers);
        Ok(Read(Lent::Reader(Some(connection), home)))
    }

    /// Gets ready for the end of a turn while it runs: to plan a statement takes longer than to run
    /// it, and then nobody waits for it. What goes wrong goes wrong again when it is used.
    pub async fn expect_end(&self) {
        let end = [
            turns::ADVANCE_SPOOL,
            conversations::NEIGHBOURS,
            pins::CONFIRM,
            turns::END_ATTEMPT,
            turns::END_TURN,
            conversations::STAMP,
            messages::BY_ID,
        ];
        if let Some(writer) = self.writer.lock().await.as_mut() {
            for sql in end {
                drop(writer.prepare(sql.into_sql_str()).await);
            }
        }
    }

    /// Waits until everything is closed. A command need not: what is committed is kept.
    pub async fn close(&self) {
        self.readers.idle().clear();
        if let Some(writer) = self.writer.lock().await.take() {
            drop(writer.close().await);
        }
    }
}

impl Readers {
    fn idle(&self) -> MutexGuard<'_, Vec<SqliteConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A write transaction; dropped without commit, it never was.
#[derive(Debug)]
pub struct Tx {
    writer: Option<OwnedMutexGuard<Option<SqliteConnection>>>,
    open: bool,
}

impl Tx {
    pub async fn commit(mut self) -> Result<()> {
        self.run("commit", vec![]).await?;
        self.open = false;
        Ok(())
    }

    /// Runs a change, says how many rows it met.
    pub(crate) async fn run(&mut self, sql: &'static str, values: Vec<Val>) -> Result<u64> {
        let done = bind(sql, values).execute(self.connection()?).await?;
        Ok(done.rows_affected())
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
        let Some(mut writer) = self.writer.take().filter(|_| self.open) else {
            return;
        };
        // Without a runtime the process is about to end, and the engine takes it back itself.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Some(connection) = writer.as_mut() {
                    drop(bind("rollback", vec![]).execute(connection).await);
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
    Writer(OwnedMutexGuard<Option<SqliteConnection>>),
    Reader(Option<SqliteConnection>, Arc<Readers>),
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
    fn connection(&mut self) -> Result<&mut SqliteConnection> {
        let writer = self.writer.as_mut().and_then(|guard| guard.as_mut());
        writer.ok_or_else(closed)
    }
}

impl Ask for Read {
    fn connection(&mut self) -> Result<&mut SqliteConnection> {
        match &mut self.0 {
            Lent::Writer(guard) => guard.as_mut(),
            Lent::Reader(connection, _) => connection.as_mut(),
        }
        .ok_or_else(closed)
    }
}

fn closed() -> Error {
    Error::Unavailable(sqlx::Error::PoolClosed)
}
