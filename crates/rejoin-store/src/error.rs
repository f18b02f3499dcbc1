//! Errors of the store, grouped by the action that a caller can take.

use rusqlite::ffi;

use crate::engine::is_lost;

/// Error of the engine.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process changed the row first, or the row exists already.
    #[error("{0}")]
    Conflict(&'static str),
    #[error("the store could not be opened at {path}")]
    Open {
        path: String,
        #[source]
        source: Cause,
    },
    #[error("the store was written by a newer rejoin (schema {found}, this one knows {known})")]
    Newer { found: i64, known: i64 },
    #[error("the disk is full")]
    DiskFull(#[source] Cause),
    #[error("the store cannot be written")]
    ReadOnly(#[source] Cause),
    #[error("another process is writing to the store")]
    Busy(#[source] Cause),
    #[error("the store does not answer")]
    Unavailable(#[source] Cause),
    /// The server does not answer, or answers with an error.
    #[error("the store at {place} cannot be used")]
    Away {
        place: String,
        #[source]
        source: sqlx::Error,
    },
    /// PgBouncer in transaction mode, or a similar pooler.
    #[error(
        "the store at {place} is behind a pooler that shares its sessions; rejoin needs one of its own"
    )]
    Pooled { place: String },
    #[error("this is no address of a PostgreSQL server: postgres://USER@HOST/DATABASE")]
    Address,
    /// A commit after a failed statement. The engine has rolled back the whole transaction.
    #[error("a transaction that had failed was to be kept")]
    Failed,
    #[error("a file cannot be read: {0}")]
    Read(#[source] std::io::Error),
    #[error("the store holds something this rejoin cannot read: {0}")]
    Foreign(String),
    /// The section `[blobs]` is not valid.
    #[error("{0}")]
    BlobsConfig(String),
    /// The chunk storage outside the database failed after all tries.
    #[error("chunks could not be {what} in {place}: {why}")]
    Blobs {
        place: String,
        what: &'static str,
        why: String,
    },
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Converts an error of a server.
    pub(crate) fn of_server(error: sqlx::Error, place: &str) -> Self {
        let code = error
            .as_database_error()
            .and_then(|e| e.code().map(std::borrow::Cow::into_owned));
        match code.as_deref() {
            Some("53100") => Self::DiskFull(error.into()),
            Some("23505") => Self::Conflict(EXISTS),
            Some(_) | None => Self::Away {
                place: place.to_owned(),
                source: error,
            },
        }
    }

    /// Returns true if the connection is gone. The query may be repeated on another one.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self, Self::Away { source, .. } if is_lost(source))
    }
}

const EXISTS: &str = "it exists already";

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        let code = error.sqlite_error().map_or(0, |it| it.extended_code);
        // The complete text. The error's own source would repeat it.
        let error = error.to_string();
        match code {
            // Some file systems give one of the others instead of the first, also for the index
            // beside the log.
            ffi::SQLITE_FULL | ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_SHMSIZE => {
                Self::DiskFull(error.into())
            }
            ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY => {
                Self::Conflict(EXISTS)
            }
            // The upper bits contain the cause.
            code if code & 0xff == ffi::SQLITE_READONLY => Self::ReadOnly(error.into()),
            code if code & 0xff == ffi::SQLITE_BUSY => Self::Busy(error.into()),
            _ => Self::Unavailable(error.into()),
        }
    }
}

/// Error of reading a column from a server's row.
impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self::Unavailable(error.into())
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Foreign(error.to_string())
    }
}
