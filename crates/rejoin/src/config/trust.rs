//! Which repository files the user trusts: the place and the hash of what was read.
//!
//! The place is the real path of the folder the file lies in, whatever the file itself may link to:
//! the same words can mean another program in another folder.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rejoin_hub::{Clock, rfc3339};
use serde::{Deserialize, Serialize};

use super::file::ConfigFile;
use crate::failure::{Failure, Result};

/// What is stored in `$REJOIN_HOME/trust.json`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct TrustList {
    pub(crate) files: Vec<TrustedFile>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TrustedFile {
    pub(crate) path: PathBuf,
    pub(crate) hash: String,
    /// What it was trusted with, to be shown.
    pub(crate) keys: Vec<String>,
    pub(crate) at: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustState {
    /// Nothing in the file needs it.
    NotNeeded,
    Trusted,
    Untrusted,
    /// Trusted once, and changed since.
    Changed,
}

impl TrustState {
    pub(crate) fn counts(self) -> bool {
        matches!(self, Self::NotNeeded | Self::Trusted)
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::NotNeeded => "not_needed",
            Self::Trusted => "trusted",
            Self::Untrusted => "untrusted",
            Self::Changed => "changed",
        }
    }
}

impl TrustList {
    /// A list that cannot be read trusts nothing.
    pub(crate) fn load(home: &Path) -> Self {
        Self::read(home).unwrap_or_default()
    }

    fn read(home: &Path) -> Result<Self> {
        let path = place(home);
        match fs_err::read(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(e) => Err(Failure::unavailable(e.to_string())),
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|e| {
                let path = path.display();
                Failure::unavailable(format!("{path} is damaged: {e}"))
                    .try_this(format!("rm {path}, and trust anew what you trust"))
            }),
        }
    }

    pub(crate) fn state(&self, file: &ConfigFile) -> TrustState {
        match real_place(&file.path).and_then(|p| self.files.iter().find(|f| f.path == p)) {
            Some(known) if known.hash == file.hash => TrustState::Trusted,
            Some(_) => TrustState::Changed,
            None => TrustState::Untrusted,
        }
    }

    /// Trusts these very bytes at this place.
    pub(crate) fn add(home: &Path, file: &ConfigFile, keys: Vec<String>) -> Result<()> {
        let path = real_place(&file.path).ok_or_else(|| {
            Failure::unavailable(format!("the folder of {} is gone", file.path.display()))
        })?;
        let entry = TrustedFile {
            path,
            hash: file.hash.clone(),
            keys,
            at: rfc3339(Clock.now()),
        };
        change(home, |list| {
            list.files.retain(|f| f.path != entry.path);
            list.files.push(entry);
            list.files.sort_by(|a, b| a.path.cmp(&b.path));
        })
    }

    /// True if it was trusted.
    pub(crate) fn remove(home: &Path, path: &Path) -> Result<bool> {
        let mut found = false;
        change(home, |list| {
            let before = list.files.len();
            list.files.retain(|f| f.path != path);
            found = list.files.len() < before;
        })?;
        Ok(found)
    }
}

/// The file in its folder's real path. A link in the place of the file is not followed.
pub(crate) fn real_place(file: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(file).ok()?;
    let folder = fs_err::canonicalize(absolute.parent()?).ok()?;
    Some(folder.join(absolute.file_name()?))
}

fn place(home: &Path) -> PathBuf {
    home.join("trust.json")
}

/// Read, changed and written under a lock, and put in place whole.
fn change(home: &Path, edit: impl FnOnce(&mut TrustList)) -> Result<()> {
    let failed = |e: std::io::Error| {
        Failure::unavailable(format!("the list of trusted files cannot be written: {e}"))
            .try_this("check REJOIN_HOME, or set it to a folder you can write")
    };
    crate::app::make_home(home)?;
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
