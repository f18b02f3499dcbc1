//! A conversation as one file: a line with the format, frames, and a hash over everything before
//! it. Written and read in one pass each, with at most one frame in memory.
//!
//! An archive is not trusted: every length, count, name and path is checked before use, and no row
//! of it enters the store before the whole archive was read once.

mod check;
mod export;
mod frames;
mod import;
mod rows;

pub use check::{Contents, check, header_of};
pub use export::{Exported, SnapshotSelection};
pub use frames::end_of;
pub use import::{HistoryEnd, IdMapping, ImportParams, Imported};
pub use rows::{Generation, Header, Totals};

use crate::error::Error as StoreError;

/// Reason for rejecting an archive.
#[derive(Debug, thiserror::Error)]
pub enum BadArchive {
    #[error("it is not an archive of rejoin")]
    NotOne,
    #[error("it was written by a newer rejoin (form {found}, this one knows {known})")]
    Newer { found: u32, known: u32 },
    #[error("it ends too early: a part of it is missing")]
    Truncated,
    #[error("it is damaged: {0}")]
    Damaged(String),
    #[error("it cannot be read: {0}")]
    Io(#[from] std::io::Error),
}

/// Errors of reading an archive into the store or writing one from it.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error(transparent)]
    Bad(#[from] BadArchive),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("another conversation here has the key `{0}`")]
    KeyTaken(String),
    #[error("{0} belongs to another conversation here")]
    Elsewhere(&'static str),
    /// Error of the target.
    #[error("it cannot be written: {0}")]
    Write(std::io::Error),
}

pub(crate) fn damaged(why: impl Into<String>) -> BadArchive {
    BadArchive::Damaged(why.into())
}
