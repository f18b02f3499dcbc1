//! The only place that opens a database: pragmas, migrations, one writer and a few readers.

pub(crate) mod postgres;

use std::path::Path;
use std::time::Duration;

use fs_err::os::unix::fs::OpenOptionsExt;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _};

use crate::connections::{Origin, Store};
use crate::engine::Connection;
use crate::error::{Error, Result};

/// Append-only; the same numbers stand in `migrations/postgres`.
const MIGRATIONS: &[(i64, &str)] = &[
    (
        1,
        include_str!("../../../migrations/sqlite/0001_conversations.sql"),
    ),
    (
        2,
        include_str!("../../../migrations/sqlite/0002_history.sql"),
    ),
    (
        3,
        include_str!("../../../migrations/sqlite/0003_snapshots.sql"),
    ),
    (
        4,
        include_str!("../../../migrations/sqlite/0004_leases.sql"),
    ),
    (
        5,
        include_str!("../../../migrations/sqlite/0005_questions.sql"),
    ),
    (
        6,
        include_str!("../../../migrations/sqlite/0006_namespaces.sql"),
    ),
    (
        7,
        include_str!("../../../migrations/sqlite/0007_deliveries.sql"),
    ),
];

/// How long a writer waits for another process's transaction.
const BUSY: Duration = Duration::from_secs(20);

impl Store {
    /// Opens, and where needed makes or updates, the database file.
    pub async fn open_sqlite(path: &Path) -> Result<Self> {
        let opened = Self::try_open(path).await;
        opened.map_err(|error| {
            if matches!(error, Error::Newer { .. } | Error::DiskFull(_)) {
                return error;
            }
            let path = path.display().to_string();
            Error::Open {
                path,
                source: Box::new(error),
            }
        })
    }

    async fn try_open(path: &Path) -> Result<Self> {
        make_private(path);
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            // Every commit outlives every process. A power cut may take back the newest of them, in
            // order: those since the log was last written back, or the system last wrote by itself.
            .synchronous(SqliteSynchronous::Normal)
            .foreign_keys(true)
            .busy_timeout(BUSY);
        let mut writer = options.connect().await?;
        migrate(&mut writer).await?;
        let readers = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(false)
            .busy_timeout(BUSY);
        Ok(Self::new(
            Connection::Sqlite(writer),
            Origin::Sqlite(readers),
        ))
    }
}

/// Conversations are nobody else's business. What goes wrong here goes wrong again when opening.
fn make_private(path: &Path) {
    let mut options = fs_err::OpenOptions::new();
    drop(options.write(true).create_new(true).mode(0o600).open(path));
}

pub(crate) fn newest_schema() -> i64 {
    MIGRATIONS.last().map_or(0, |(number, _)| *number)
}

/// The number of the newest migration stands in `user_version`: a start with nothing to do costs
/// one pragma.
async fn migrate(at: &mut SqliteConnection) -> Result<()> {
    let known = newest_schema();
    let version = || sqlx::query_scalar::<_, i64>("pragma user_version");
    match version().fetch_one(&mut *at).await? {
        found if found == known => return Ok(()),
        found if found > known => return Err(Error::Newer { found, known }),
        _ => {}
    }
    // Kept in the file, and not to be changed in a transaction.
    sqlx::raw_sql("pragma journal_mode = wal")
        .execute(&mut *at)
        .await?;
    let mut tx = at.begin_with("begin immediate").await?;
    // Another process may have been faster.
    let found = version().fetch_one(&mut *tx).await?;
    for (number, sql) in MIGRATIONS.iter().filter(|(number, _)| *number > found) {
        sqlx::raw_sql(*sql).execute(&mut *tx).await?;
        let stamp = sqlx::AssertSqlSafe(format!("pragma user_version = {number}"));
        sqlx::raw_sql(stamp).execute(&mut *tx).await?;
    }
    tx.commit().await?;
    Ok(())
}
