//! What can go wrong, by what the caller can do about it.

use crate::engine::is_lost;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Somebody else changed it first, or it exists already.
    #[error("{0}")]
    Conflict(&'static str),
    #[error("the store could not be opened at {path}")]
    Open {
        path: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("the store was written by a newer rejoin (schema {found}, this one knows {known})")]
    Newer { found: i64, known: i64 },
    #[error("the disk is full")]
    DiskFull(#[source] sqlx::Error),
    #[error("the store cannot be written")]
    ReadOnly(#[source] sqlx::Error),
    #[error("the store does not answer")]
    Unavailable(#[source] sqlx::Error),
    /// A server that does not answer, or not with what was asked.
    #[error("the store at {place} cannot be used")]
    Away {
        place: String,
        #[source]
        source: sqlx::Error,
    },
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
            Some("53100") => Self::DiskFull(error),
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

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        let code = error
            .as_database_error()
            .and_then(|e| e.code().map(std::borrow::Cow::into_owned));
        match code.as_deref() {
            // SQLITE_FULL, and what some file systems give instead: SQLITE_IOERR_WRITE, and
            // SQLITE_IOERR_SHMSIZE for the index beside the log.
            Some("13" | "778" | "4874") => Self::DiskFull(error),
            // SQLITE_READONLY, with its causes in the upper bits.
            Some(code) if code.parse::<u32>().is_ok_and(|code| code & 0xff == 8) => {
                Self::ReadOnly(error)
            }
            _ if error
                .as_database_error()
                .is_some_and(sqlx::error::DatabaseError::is_unique_violation) =>
            {
                Self::Conflict(EXISTS)
            }
            _ => Self::Unavailable(error),
        }
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Foreign(error.to_string())
    }
}
