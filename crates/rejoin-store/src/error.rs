//! What can go wrong, by what the caller can do about it.

use rusqlite::ffi;

use crate::engine::is_lost;

/// What the engine itself says.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Somebody else changed it first, or it exists already.
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
    /// A server that does not answer, or not with what was asked.
    #[error("the store at {place} cannot be used")]
    Away {
        place: String,
        #[source]
        source: sqlx::Error,
    },
    /// PgBouncer in transaction mode, or another pooler of that kind.
    #[error(
        "the store at {place} is behind a pooler that shares its sessions; rejoin needs one of its own"
    )]
    Pooled { place: String },
    #[error("this is no address of a PostgreSQL server: postgres://USER@HOST/DATABASE")]
    Address,
    /// A statement failed, and was to be forgotten: the engine has forgotten all of it.
    #[error("a transaction that had failed was to be kept")]
    Failed,
    #[error("a file cannot be read: {0}")]
    Read(#[source] std::io::Error),
    #[error("the store holds something this rejoin cannot read: {0}")]
    Foreign(String),
    /// `[blobs]` says something that cannot be.
    #[error("{0}")]
    BlobsConfig(String),
    /// The place outside the database, after all tries.
    #[error("chunks could not be {what} in {place}: {why}")]
    Blobs {
        place: String,
        what: &'static str,
        why: String,
    },
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// What a server answered.
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

    /// The connection is gone; what was asked may be asked over another one.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self, Self::Away { source, .. } if is_lost(source))
    }
}

const EXISTS: &str = "it exists already";

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        let code = error.sqlite_error().map_or(0, |it| it.extended_code);
        // All it says; what it names as its source says that again.
        let error = error.to_string();
        match code {
            // What some file systems give instead of the first, also for the index beside the log.
            ffi::SQLITE_FULL | ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_SHMSIZE => {
                Self::DiskFull(error.into())
            }
            ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY => {
                Self::Conflict(EXISTS)
            }
            // Their causes stand in the upper bits.
            code if code & 0xff == ffi::SQLITE_READONLY => Self::ReadOnly(error.into()),
            code if code & 0xff == ffi::SQLITE_BUSY => Self::Busy(error.into()),
            _ => Self::Unavailable(error.into()),
        }
    }
}

/// What a row of a server is not.
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
