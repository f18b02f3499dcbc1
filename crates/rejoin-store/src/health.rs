//! Inspects a store that may be broken. Creates, migrates and changes nothing.

mod postgres;

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::connections::Store;
use crate::error::Result;

/// Timeout: longer than a writer takes, short enough to wait for.
const BUSY: Duration = Duration::from_secs(5);

/// Findings of an inspection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Health {
    /// Size including the log.
    pub bytes: u64,
    pub schema: i64,
    /// Newest schema that this rejoin knows.
    pub known_schema: i64,
    /// Messages of the engine about damage. Empty: none.
    pub damage: Vec<String>,
    pub running: i64,
    pub queued: i64,
    pub conversations: i64,
    /// Version of the server, if there is one.
    pub server: Option<String>,
}

impl Store {
    /// Inspects a file. `None` if it does not exist. A file that is not a database counts as
    /// damage, not as an error.
    #[expect(clippy::unused_async, reason = "as with a server")]
    pub async fn health(path: &Path) -> Result<Option<Health>> {
        let Ok(meta) = fs_err::metadata(path) else {
            return Ok(None);
        };
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        let mut health = Health {
            bytes: meta.len() + fs_err::metadata(log).map_or(0, |m| m.len()),
            known_schema: crate::open::newest_schema(),
            ..Health::default()
        };
        if let Err(error) = look(path, &mut health) {
            health.damage.push(error.to_string());
        }
        Ok(Some(health))
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a store that may be broken must not be opened as a whole one"
)]
fn look(path: &Path, health: &mut Health) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let at = Connection::open_with_flags(path, flags)?;
    at.busy_timeout(BUSY)?;
    health.schema = at.pragma_query_value(None, "user_version", |row| row.get(0))?;
    at.pragma(None, "quick_check", 5, |row| {
        let said: String = row.get(0)?;
        health.damage.extend((said != "ok").then_some(said));
        Ok(())
    })?;
    if health.schema == 0 || !health.damage.is_empty() {
        return Ok(());
    }
    for (sql, count) in counts(health) {
        *count = at.query_row(sql, [], |row| row.get(0))?;
    }
    Ok(())
}

/// Queries that both engines share.
fn counts(health: &mut Health) -> [(&'static str, &mut i64); 3] {
    [
        (
            "select count(*) from turns where status in ('running', 'waiting')",
            &mut health.running,
        ),
        (
            "select count(*) from turns where status = 'queued'",
            &mut health.queued,
        ),
        (
            "select count(*) from conversations /* scan: the check before it read every page */",
            &mut health.conversations,
        ),
    ]
}
