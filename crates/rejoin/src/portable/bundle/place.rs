//! The path of a bundle, and the folder beside it that holds its store while a turn runs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use rejoin_core::hex;
use rejoin_hub::{Error as HubError, IfBusy};
use rejoin_store::end_of;

use super::ownership::{self, ID, Origin};
use crate::app::make_home;
use crate::cli::refused_import;
use crate::portable::atomic_file::{AtomicFile, sync_folder};
use rejoin_errors::{CommandError, Result, codes};

/// How often a lock is tried that somebody else has.
const AGAIN: Duration = Duration::from_millis(50);

pub(super) const LOCK: &str = "lock";
/// Digest of the file at the time its store was made.
pub(super) const BASE: &str = "base";
/// Digest of the file that is about to be written.
pub(super) const WRITTEN: &str = "written";
pub(super) const NEXT: &str = "next";

/// The locked path of a bundle.
pub(super) struct Place {
    pub(super) file: PathBuf,
    pub(super) folder: PathBuf,
    /// Reason why the folder could not be recorded as the user's own.
    pub(super) unrecorded: Option<String>,
    _lock: Flock<std::fs::File>,
}

/// The end of an archive stands for all of it; none: there is no file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Base(pub(super) Option<String>);

impl Place {
    pub(super) async fn take(file: &Path, if_busy: IfBusy) -> Result<Self> {
        let file = std::path::absolute(file).map_err(|e| CommandError::usage(e.to_string()))?;
        let Some(name) = file.file_name().map(std::ffi::OsStr::to_owned) else {
            return Err(CommandError::usage(format!(
                "{} is not a file",
                file.display()
            )));
        };
        if file.is_dir() {
            return Err(CommandError::usage(format!(
                "{} is a folder",
                file.display()
            )));
        }
        let above = file.parent().unwrap_or(Path::new("/"));
        if !above.is_dir() {
            let text = format!("the folder {} does not exist", above.display());
            return Err(CommandError::usage(text).try_this(format!("mkdir -p {}", above.display())));
        }
        // Behind a link lies the file that is meant.
        let file = fs_err::canonicalize(&file).unwrap_or(file);
        let mut beside = file.file_name().unwrap_or(&name).to_owned();
        beside.push(".rejoin");
        let folder = file.with_file_name(beside);
        let failed = |e: &dyn std::fmt::Display| {
            CommandError::unavailable(format!("{} cannot be used: {e}", folder.display()))
                .try_this("a bundle in a folder that can be written")
        };
        loop {
            make_home(&folder).map_err(|e| failed(&e.message))?;
            if !is_ours(&folder) {
                return Err(failed(&"it is not a folder of yours"));
            }
            let path = folder.join(LOCK);
            let lock = match open_lock(&path, false) {
                Ok(lock) => lock,
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                    match ownership::origin(&folder) {
                        // Nothing is written into a folder of somebody else.
                        Origin::Foreign if folder.exists() && !path.exists() => {
                            return Err(foreign(&folder));
                        }
                        // Made or removed just now by whoever has it.
                        Origin::Foreign => {}
                        Origin::Empty | Origin::Own => {
                            let made = open_lock(&path, true);
                            if made.is_err() && folder.exists() {
                                return Err(failed(&"it cannot be written"));
                            }
                        }
                    }
                    continue;
                }
                Err(_) if folder.exists() => return Err(failed(&"it cannot be written")),
                Err(_) => continue,
            };
            match Flock::lock(lock, FlockArg::LockExclusiveNonblock) {
                Ok(lock) if is_at(&lock, &path) => {
                    let unrecorded = match ownership::origin(&folder) {
                        Origin::Own => None,
                        Origin::Empty => ownership::claim(&folder).err().map(|e| e.message),
                        Origin::Foreign => return Err(foreign(&folder)),
                    };
                    return Ok(Self {
                        file,
                        folder,
                        unrecorded,
                        _lock: lock,
                    });
                }
                Ok(_) => {}
                Err((_, nix::errno::Errno::EWOULDBLOCK)) if if_busy == IfBusy::Wait => {
                    tokio::time::sleep(AGAIN).await;
                }
                Err((_, nix::errno::Errno::EWOULDBLOCK)) => {
                    let text = format!("another turn of {} runs", file.display());
                    return Err(CommandError::new(
                        codes::BUSY,
                        text + "; this message was not kept",
                    )
                    .try_this("rejoin send --if-busy wait …"));
                }
                Err((_, errno)) => return Err(failed(&errno)),
            }
        }
    }

    /// Reads the digest at the end of the file.
    pub(super) fn now(&self) -> Result<Base> {
        match fs_err::File::open(&self.file) {
            Ok(mut file) => {
                let end = end_of(&mut file).map_err(HubError::from);
                let end = end.map_err(|error| {
                    if self.known().is_none() {
                        self.remove();
                    }
                    bad(error, &self.file)
                })?;
                Ok(Base(Some(hex(&end))))
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Base(None)),
            Err(e) => Err(unreadable(&e)),
        }
    }

    pub(super) fn known(&self) -> Option<Base> {
        let said = self.said(BASE)?;
        Some(Base(Some(said).filter(|said| !said.is_empty())))
    }

    pub(super) fn said(&self, name: &str) -> Option<String> {
        fs_err::read_to_string(self.folder.join(name)).ok()
    }

    pub(super) fn say(&self, name: &str, text: &str) -> Result<()> {
        let said = self.note(name, text);
        said.map_err(|e| CommandError::unavailable(format!("the bundle cannot be used: {e}")))
    }

    pub(super) fn note(&self, name: &str, text: &str) -> std::io::Result<()> {
        let mut whole = AtomicFile::begin(&self.folder.join(name))?;
        std::io::Write::write_all(&mut whole, text.as_bytes())?;
        whole.keep()
    }

    /// Everything but the lock and the id: the store first, what says that it counts last.
    pub(super) fn clear(&self) {
        let entries = fs_err::read_dir(&self.folder)
            .into_iter()
            .flatten()
            .flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        let last = |name: &std::ffi::OsString| [BASE, WRITTEN].iter().any(|last| name == last);
        names.sort_by_key(last);
        for name in names.iter().filter(|name| *name != LOCK && *name != ID) {
            let path = self.folder.join(name);
            let _gone = match fs_err::symlink_metadata(&path) {
                Ok(meta) if meta.is_dir() => fs_err::remove_dir_all(&path),
                Ok(_) | Err(_) => fs_err::remove_file(&path),
            };
        }
    }

    /// The store does not count any more, even if it cannot be removed.
    pub(super) fn forget(&self) -> Result<()> {
        let failed = |e: std::io::Error| CommandError::unavailable(e.to_string());
        fs_err::remove_file(self.folder.join(BASE)).map_err(failed)
    }

    pub(super) fn remove(&self) {
        self.clear();
        let kept = |name: &std::ffi::OsStr| name == LOCK || name == ID;
        let mut left = fs_err::read_dir(&self.folder).into_iter().flatten();
        if left.any(|entry| !entry.is_ok_and(|entry| kept(&entry.file_name()))) {
            // What is left is still the user's own.
            return;
        }
        let record = ownership::record_of(&self.folder);
        let _gone = fs_err::remove_file(self.folder.join(ID));
        let _gone = fs_err::remove_file(self.folder.join(LOCK));
        let _gone = fs_err::remove_dir(&self.folder);
        if let Some(record) = record {
            let _gone = fs_err::remove_file(record);
        }
        let _synced = sync_folder(&self.folder);
    }

    /// Beside the file, where nothing is.
    pub(super) fn free_name(&self) -> PathBuf {
        let mut n = 1;
        loop {
            let mut name = self.file.file_name().unwrap_or_default().to_owned();
            name.push(format!(".ours-{n}"));
            let free = self.file.with_file_name(name);
            if fs_err::symlink_metadata(&free).is_err() {
                return free;
            }
            n += 1;
        }
    }
}

/// Returns true if the folder belongs to our user: no other user can have prepared it.
fn is_ours(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let us = nix::unistd::geteuid().as_raw();
    let meta = fs_err::symlink_metadata(folder);
    // Gone just now: whoever had it has removed it, and it is made again.
    meta.map_or(true, |meta| meta.is_dir() && meta.uid() == us)
}

/// Opens the lock. Neither follows a link nor waits for the other end of a pipe.
fn open_lock(path: &Path, create: bool) -> std::io::Result<std::fs::File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    std::fs::OpenOptions::new()
        .write(true)
        .create(create)
        .truncate(false)
        .custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK)
        .open(path)
}

/// Refuses a folder that may hold turns of somebody else.
fn foreign(folder: &Path) -> CommandError {
    let folder = folder.display();
    let text = format!(
        "{folder} is not known as a folder that your own rejoin made; nothing of it was run or changed, and nothing was sent"
    );
    CommandError::conflict(text).try_this(format!("mv {folder} {folder}.aside"))
}

/// Returns true if the lock that we hold is on the file at this path.
fn is_at(lock: &Flock<std::fs::File>, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let (ours, there) = (lock.metadata(), fs_err::metadata(path));
    ours.is_ok_and(|ours| there.is_ok_and(|there| ours.ino() == there.ino()))
}

pub(super) fn bad(error: HubError, file: &Path) -> CommandError {
    refused_import(error, &file.display().to_string())
}

pub(super) fn unreadable(error: &std::io::Error) -> CommandError {
    CommandError::unavailable(format!("the bundle cannot be read: {error}"))
}
