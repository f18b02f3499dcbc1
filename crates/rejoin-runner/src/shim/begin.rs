//! The file `begin`: whoever creates it decides whether the run in a folder ever starts.
//!
//! The shim creates it before it starts anything. A runner that cleans up after a crash and wants
//! to be sure that a run never starts creates it itself. That it must be new makes exactly one of them win,
//! so a turn is never run twice.

use std::io::{self, Write};
use std::path::Path;

use fs_err::os::unix::fs::OpenOptionsExt;

use crate::holder::Holder;

const VOID: &[u8] = b"void\n";

/// What `begin` says about a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// Not begun: a shim may still do it.
    No,
    /// It will never start.
    Void,
    /// This shim has begun it.
    By(Holder),
    /// Somebody has begun it and died while saying who.
    Unclear,
}

/// Makes sure that the run in `folder` never starts; false if it has begun already.
pub fn void(folder: &Path) -> io::Result<bool> {
    Ok(create(folder, VOID)? || begun(folder)? == Begun::Void)
}

/// Reads who has begun the run in `folder`.
pub fn begun(folder: &Path) -> io::Result<Begun> {
    match fs_err::read(folder.join("begin")) {
        Ok(text) if text == VOID => Ok(Begun::Void),
        Ok(text) => Ok(serde_json::from_slice(&text).map_or(Begun::Unclear, Begun::By)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Begun::No),
        Err(error) => Err(error),
    }
}

/// Claims the run in `folder` for the calling shim; false if somebody was there before.
pub(super) fn begin(folder: &Path) -> io::Result<bool> {
    create(folder, &serde_json::to_vec(&Holder::me()?)?)
}

/// Seen whole or not at all, so that nobody finds a claim without a name who looks in the very moment.
fn create(folder: &Path, text: &[u8]) -> io::Result<bool> {
    let temp = folder.join(format!("begin.{}", std::process::id()));
    let place = folder.join("begin");
    let linked = write_new(&temp, text).and_then(|()| fs_err::hard_link(&temp, &place));
    fs_err::remove_file(&temp).ok();
    match linked {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(error),
        // No links here, or no room: once it exists the claim stands, even if it does not say whose it is.
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
