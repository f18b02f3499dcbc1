//! Opens a store and migrates it. Connections are made in `engine/sqlite.rs` and
//! `open/postgres.rs`.

pub(crate) mod postgres;

use std::path::Path;

use fs_err::os::unix::fs::OpenOptionsExt;
use rusqlite::TransactionBehavior;

use crate::connections::{Origin, Store};
use crate::engine::Connection;
use crate::engine::sqlite::Local;
use crate::error::{Error, Result};

/// Append-only. `migrations/postgres` has the same numbers.
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
    (
        8,
        include_str!("../../../migrations/sqlite/0008_ceilings.sql"),
    ),
    (
        9,
        include_str!("../../../migrations/sqlite/0009_answers.sql"),
    ),
    (
        10,
        include_str!("../../../migrations/sqlite/0010_indexes.sql"),
    ),
    (
        11,
        include_str!("../../../migrations/sqlite/0011_search.sql"),
    ),
    (
        12,
        include_str!("../../../migrations/sqlite/0012_search_ranges.sql"),
    ),
    (
        13,
        include_str!("../../../migrations/sqlite/0013_browser_sessions.sql"),
    ),
    (
        14,
        include_str!("../../../migrations/sqlite/0014_chains.sql"),
    ),
    (
        15,
        include_str!("../../../migrations/sqlite/0015_views.sql"),
    ),
    (
        16,
        include_str!("../../../migrations/sqlite/0016_limits.sql"),
    ),
    (
        17,
        include_str!("../../../migrations/sqlite/0017_schedules.sql"),
    ),
    (
        18,
        include_str!("../../../migrations/sqlite/0018_prompts.sql"),
    ),
    (
        19,
        include_str!("../../../migrations/sqlite/0019_workflows.sql"),
    ),
];

impl Store {
    /// Opens the database file, and creates or migrates it if needed.
    #[expect(clippy::unused_async, reason = "as with a server")]
    pub async fn open_sqlite(path: &Path) -> Result<Self> {
        let opened = Self::try_open(path);
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

    fn try_open(path: &Path) -> Result<Self> {
        make_private(path);
        let mut writer = Local::open(path)?;
        migrate(writer.at())?;
        let writer = Connection::Sqlite(Box::new(writer));
        Ok(Self::new(writer, Origin::Sqlite(path.to_owned())))
    }
}

/// Creates the file readable by its owner only. Ignores an error: it occurs again on opening.
fn make_private(path: &Path) {
    let mut options = fs_err::OpenOptions::new();
    drop(options.write(true).create_new(true).mode(0o600).open(path));
}

pub(crate) fn newest_schema() -> i64 {
    MIGRATIONS.last().map_or(0, |(number, _)| *number)
}

/// Migrates the file. `user_version` holds the number of the newest migration, so a start without
/// migrations costs one pragma.
fn migrate(at: &mut rusqlite::Connection) -> Result<()> {
    let known = newest_schema();
    match version(at)? {
        found if found == known => return Ok(()),
        found if found > known => return Err(Error::Newer { found, known }),
        _ => {}
    }
    // Stored in the file, and cannot be changed in a transaction.
    at.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    let tx = at.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    let found = version(&tx)?;
    for (number, sql) in MIGRATIONS.iter().filter(|(number, _)| *number > found) {
        tx.execute_batch(sql)?;
        tx.pragma_update(None, "user_version", number)?;
    }
    Ok(tx.commit()?)
}

fn version(at: &rusqlite::Connection) -> rusqlite::Result<i64> {
    at.pragma_query_value(None, "user_version", |row| row.get(0))
}
