//! The file `begin`: its creator decides if the run in a folder ever starts.
//!
//! The shim creates it before it starts anything. A runner that cleans up after a crash and must
//! be sure that a run never starts creates it itself. The file must not exist before, so exactly one of
//! them wins, and a turn never runs twice.

use std::io::{self, Write};
use std::path::Path;

use fs_err::os::unix::fs::OpenOptionsExt;

use crate::holder::Holder;

const VOID: &[u8] = b"void\n";

/// State of a run according to its file `begin`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// Not begun: a shim may still begin it.
    No,
    /// Voided: it will never start.
    Void,
    /// Begun by this shim.
    By(Holder),
    /// Begun by a process that died before it wrote its identity.
    Unclear,
}

/// Makes sure that the run in `folder` never starts. Returns false if it has already begun.
pub fn void(folder: &Path) -> io::Result<bool> {
    Ok(create(folder, VOID)? || begun(folder)? == Begun::Void)
}

/// Reads the state of the run in `folder`.
pub fn begun(folder: &Path) -> io::Result<Begun> {
    match fs_err::read(folder.join("begin")) {
        Ok(text) if text == VOID => Ok(Begun::Void),
        Ok(text) => Ok(serde_json::from_slice(&text).map_or(Begun::Unclear, Begun::By)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Begun::No),
        Err(error) => Err(error),
    }
}

/// Claims the run in `folder` for the calling shim. Returns false if the run was claimed or voided
/// before.
pub(super) fn begin(folder: &Path) -> io::Result<bool> {
    create(folder, &serde_json::to_vec(&Holder::me()?)?)
}

/// Creates the file atomically, so that no reader finds a claim without an identity. Returns false
/// if it exists.
fn create(folder: &Path, text: &[u8]) -> io::Result<bool> {
    let temp = folder.join(format!("begin.{}", std::process::id()));
    let place = folder.join("begin");
    let linked = write_new(&temp, text).and_then(|()| fs_err::hard_link(&temp, &place));
    fs_err::remove_file(&temp).ok();
    match linked {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(error),
        // The file system has no links, or no room: the file claims the run once it exists, even
        // without an identity.
        Err(_) => match write_new(&place, b"") {
            Ok(()) => {
                fs_err::write(&place, text).ok();
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        },
    }
}

fn write_new(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut options = fs_err::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn one_of_them_wins() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert_eq!(begun(a.path()).unwrap(), Begun::No);
        assert!(void(a.path()).unwrap());
        assert!(void(a.path()).unwrap());
        assert!(!begin(a.path()).unwrap());
        assert_eq!(begun(a.path()).unwrap(), Begun::Void);

        assert!(begin(b.path()).unwrap());
        assert!(!void(b.path()).unwrap());
        assert_eq!(begun(b.path()).unwrap(), Begun::By(Holder::me().unwrap()));
        assert_eq!(fs_err::read_dir(b.path()).unwrap().count(), 1);
    }
}
