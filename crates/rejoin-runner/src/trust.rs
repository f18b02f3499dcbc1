//! Files of repositories that the user trusts: the path and the hash of each.
//!
//! The path consists of the resolved path of the file's folder and the file's own name: a link in
//! place of the file is not followed, and the same text can mean another program in another folder.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rejoin_hub::{Clock, rfc3339};
use serde::{Deserialize, Serialize};

use crate::folder::make_private;

#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("{0}")]
    Unreadable(std::io::Error),
    #[error("{} is damaged: {source}", path.display())]
    Damaged {
        path: PathBuf,
        source: serde_json::Error,
    },
    #[error("the folder of {} is gone", .0.display())]
    FolderGone(PathBuf),
    #[error("the list of trusted files cannot be written: {0}")]
    Unwritten(std::io::Error),
}

type Result<T, E = TrustError> = std::result::Result<T, E>;

/// Content of `$REJOIN_HOME/trust.json`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct TrustList {
    pub files: Vec<TrustedFile>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrustedFile {
    pub path: PathBuf,
    pub hash: String,
    /// Settings that the file was trusted with, for display.
    pub keys: Vec<String>,
    pub at: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustState {
    /// The file contains nothing that needs trust.
    NotNeeded,
    Trusted,
    Untrusted,
    /// Trusted once, but changed since.
    Changed,
}

impl TrustState {
    pub fn counts(self) -> bool {
        matches!(self, Self::NotNeeded | Self::Trusted)
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::NotNeeded => "not_needed",
            Self::Trusted => "trusted",
            Self::Untrusted => "untrusted",
            Self::Changed => "changed",
        }
    }
}

impl TrustList {
    /// Loads the list. A list that cannot be read trusts nothing.
    pub fn load(home: &Path) -> Self {
        Self::read(home).unwrap_or_default()
    }

    fn read(home: &Path) -> Result<Self> {
        let path = place(home);
        match fs_err::read(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(e) => Err(TrustError::Unreadable(e)),
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|source| TrustError::Damaged { path, source }),
        }
    }

    /// Returns the trust in a file with this hash.
    pub fn state(&self, path: &Path, hash: &str) -> TrustState {
        match real_place(path).and_then(|p| self.files.iter().find(|f| f.path == p)) {
            Some(known) if known.hash == hash => TrustState::Trusted,
            Some(_) => TrustState::Changed,
            None => TrustState::Untrusted,
        }
    }

    /// Trusts files with these hashes. `files` holds path, hash and settings of each.
    pub fn add(home: &Path, files: Vec<(PathBuf, String, Vec<String>)>) -> Result<()> {
        let mut entries = vec![];
        for (path, hash, keys) in files {
            let path = real_place(&path).ok_or(TrustError::FolderGone(path))?;
            entries.push(TrustedFile {
                path,
                hash,
                keys,
                at: rfc3339(Clock.now()),
            });
        }
        change(home, |list| {
            list.files
                .retain(|f| entries.iter().all(|entry| entry.path != f.path));
            list.files.extend(entries);
            list.files.sort_by(|a, b| a.path.cmp(&b.path));
        })
    }

    /// Removes files from the list. Returns those that were on it.
    pub fn remove(home: &Path, paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
        let mut found = vec![];
        change(home, |list| {
            list.files.retain(|f| {
                let named = paths.contains(&f.path);
                if named {
                    found.push(f.path.clone());
                }
                !named
            });
        })?;
        Ok(found)
    }
}

/// Returns the resolved path of the file's folder with the file's name. A link in place of the file
/// is not followed.
pub fn real_place(file: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(file).ok()?;
    let folder = fs_err::canonicalize(absolute.parent()?).ok()?;
    Some(folder.join(absolute.file_name()?))
}

fn place(home: &Path) -> PathBuf {
    home.join("trust.json")
}

/// Edits the list under a lock, and replaces the file as a whole.
fn change(home: &Path, edit: impl FnOnce(&mut TrustList)) -> Result<()> {
    let failed = TrustError::Unwritten;
    make_private(home).map_err(failed)?;
    let mut private = std::fs::OpenOptions::new();
    private.write(true).create(true).mode(0o600);
    let lock = private.open(home.join("trust.lock")).map_err(failed)?;
    lock.lock().map_err(failed)?;
    let mut list = TrustList::read(home)?;
    edit(&mut list);
    let new = home.join(format!("trust.json.{}", std::process::id()));
    let written = private
        .truncate(true)
        .open(&new)
        .and_then(|mut file| {
            file.write_all(serde_json::to_string_pretty(&list)?.as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| fs_err::rename(&new, place(home)));
    if written.is_err() {
        drop(fs_err::remove_file(&new));
    }
    written.map_err(failed)
}
