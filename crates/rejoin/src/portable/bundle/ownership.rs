//! Records of the folders that the user's own rejoin made beside bundles.
//!
//! A folder beside a bundle may come from somebody else: from a repository, an archive, a copy. Its
//! database says which turns run next and what they may do. The folder counts only if the data folder has
//! a record with its random id, its inode and its time of birth. Neither git nor a copy brings these along.

use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use fs_err::os::unix::fs::OpenOptionsExt as _;
use rejoin_core::hex;
use rejoin_hub::Clock;

use super::place::LOCK;
use crate::app::{data_home, make_home};
use crate::portable::atomic_file::AtomicFile;
use rejoin_errors::{CommandError, Result};

/// File in the folder with its id.
pub(super) const ID: &str = "bundle-id";
/// Folder of the records, in the data folder.
const RECORDS: &str = "bundles";
/// Length of an id: 32 random bytes as hexadecimal digits.
const DIGITS: usize = 64;

/// Origin of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Made by the user's own rejoin.
    Own,
    /// Holds nothing.
    Empty,
    Foreign,
}

pub(super) fn origin(folder: &Path) -> Origin {
    if is_empty(folder) {
        return Origin::Empty;
    }
    let recorded = id(folder).and_then(|id| fs_err::read_to_string(record(&id)?).ok());
    let mark = mark(folder).ok();
    match recorded {
        Some(recorded) if Some(recorded.as_str()) == mark.as_deref() => Origin::Own,
        Some(_) | None => Origin::Foreign,
    }
}

/// Returns true if the folder has nothing but an empty lock.
fn is_empty(folder: &Path) -> bool {
    let Ok(mut entries) = fs_err::read_dir(folder) else {
        return false;
    };
    let is_lock = |entry: fs_err::DirEntry| {
        let empty = |meta: std::fs::Metadata| meta.is_file() && meta.len() == 0;
        entry.file_name() == LOCK && entry.metadata().is_ok_and(empty)
    };
    entries.all(|entry| entry.is_ok_and(is_lock))
}

/// Records an empty folder as the user's own.
pub(super) fn claim(folder: &Path) -> Result<()> {
    let failed = |e: std::io::Error| CommandError::unavailable(e.to_string());
    let private = std::fs::Permissions::from_mode(0o700);
    fs_err::set_permissions(folder, private).map_err(failed)?;
    let id = hex(&Clock.secret()?);
    let home = data_home()?;
    make_home(&home.join(RECORDS))?;
    // The record first: an id without a record is foreign.
    let mut whole = AtomicFile::begin(&home.join(RECORDS).join(&id)).map_err(failed)?;
    let mark = mark(folder).map_err(failed)?;
    whole.write_all(mark.as_bytes()).map_err(failed)?;
    whole.keep().map_err(failed)?;
    let mut options = fs_err::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(folder.join(ID)).map_err(failed)?;
    file.write_all(id.as_bytes()).map_err(failed)
}

/// Returns the record of a folder.
pub(super) fn record_of(folder: &Path) -> Option<PathBuf> {
    record(&id(folder)?)
}

fn record(id: &str) -> Option<PathBuf> {
    Some(data_home().ok()?.join(RECORDS).join(id))
}

/// Reads the id of a folder. Returns none for a text that is none, so that it never leads elsewhere.
fn id(folder: &Path) -> Option<String> {
    let bytes = rejoin_runner::foreign_file::read_regular(folder.join(ID), DIGITS as u64).ok()?;
    let id = String::from_utf8(bytes).ok()?;
    let fits = id.len() == DIGITS && id.bytes().all(|digit| digit.is_ascii_hexdigit());
    fits.then_some(id)
}

/// Describes the folder itself. A copy has another inode, and another time of birth.
fn mark(folder: &Path) -> std::io::Result<String> {
    let meta = fs_err::symlink_metadata(folder)?;
    let born = meta.created().ok();
    let born = born.and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    Ok(match born {
        // The number of a device can change when the machine starts anew.
        Some(born) => format!("inode {} born {}", meta.ino(), born.as_nanos()),
        None => format!("inode {} device {}", meta.ino(), meta.dev()),
    })
}
