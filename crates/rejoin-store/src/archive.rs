//! A conversation as one file: a line that says what it is, then frames, at the end a hash over
//! everything before. Written and read in one pass each, never more than a frame in memory.
//!
//! Nothing in it is believed: every length, count, name and path is checked before it is used, and
//! nothing of it is in the store before all of it was read once.

mod check;
mod frames;
mod put;
mod rows;
mod take;

pub use check::{Contents, check, header_of};
pub use frames::end_of;
pub use put::{Arrival, Here, Imported, Renaming};
pub use rows::{Generation, Header, Totals};
pub use take::{Exported, Which};

use crate::error::Error as StoreError;

/// An archive that is not taken.
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

/// What can be wrong while an archive is read into the store or written from it.
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
    /// Where it is written to.
    #[error("it cannot be written: {0}")]
    Write(std::io::Error),
}

pub(crate) fn damaged(why: impl Into<String>) -> BadArchive {
    BadArchive::Damaged(why.into())
}
