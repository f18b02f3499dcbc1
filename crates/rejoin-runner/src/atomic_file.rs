//! Puts files in place atomically, and moves existing files aside.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rejoin_agents::Records;

use crate::folder::make_private;
use crate::foreign_file;
use crate::session::database::beside_it;

/// Makes room for a file. With `keep`, moves an existing file aside, with its log, and returns the
/// new name. Otherwise removes only the log of a database and leaves the file to be replaced.
pub(crate) fn keep_aside(
    target: &Path,
    records: Records,
    keep: bool,
) -> io::Result<Option<String>> {
    if fs_err::symlink_metadata(target).is_err() {
        return Ok(None);
    }
    let mut n = 0;
    let free = loop {
        let mut name = target.as_os_str().to_owned();
        name.push(format!(".aside-{n}"));
        let free = PathBuf::from(name);
        if fs_err::symlink_metadata(&free).is_err() {
            break free;
        }
        n += 1;
    };
    if let Records::Database { .. } = records {
        for ending in ["-wal", "-shm"] {
            let log = beside_it(target, ending);
            let moved = if keep && ending == "-wal" {
                fs_err::rename(log, beside_it(&free, ending))
            } else {
                fs_err::remove_file(log)
            };
            match moved {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
    }
    if !keep {
        return Ok(None);
    }
    fs_err::rename(target, &free)?;
    Ok(Some(free.display().to_string()))
}

/// Moves a file to its place.
pub(crate) fn put(from: &Path, target: &Path, mode: u32, others_read: bool) -> io::Result<()> {
    let temp = temp(target)?;
    // A file cannot be moved from another disk, only copied.
    if fs_err::rename(from, &temp).is_err() {
        copied_to(from, &temp)?;
    }
    // Not accessible beyond the recorded mode, and always readable and writable by its owner.
    let mode = 0o600 | (mode & if others_read { 0o755 } else { 0o700 });
    fs_err::set_permissions(&temp, std::fs::Permissions::from_mode(mode))?;
    settle(&temp, target)
}

/// Puts a copy of a file in its place, with the same permissions.
pub(crate) fn put_copy(from: &Path, target: &Path) -> io::Result<()> {
    let temp = temp(target)?;
    copied_to(from, &temp)?;
    settle(&temp, target)
}

/// Returns the path of a temporary file beside the target, and creates the folder if it is missing.
fn temp(target: &Path) -> io::Result<PathBuf> {
    if let Some(folder) = target.parent() {
        make_private(folder)?;
    }
    let mut temp = target.as_os_str().to_owned();
    temp.push(".rejoin-tmp");
    Ok(temp.into())
}

/// Copies a file. Leaves nothing behind if that fails.
fn copied_to(from: &Path, temp: &Path) -> io::Result<()> {
    let copied = foreign_file::copy(from, temp);
    if copied.is_err() {
        let _gone = fs_err::remove_file(temp);
    }
    copied.map(drop)
}

fn settle(temp: &Path, target: &Path) -> io::Result<()> {
    fs_err::File::open(temp)?.sync_all()?;
    fs_err::rename(temp, target)?;
    match target.parent() {
        Some(folder) => fs_err::File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_whole_and_its_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("x/y/to"));
        fs_err::write(&from, "bytes").unwrap();
        put(&from, &to, 0o777, false).unwrap();
        assert_eq!(fs_err::read(&to).unwrap(), b"bytes");
        let mode = fs_err::metadata(&to).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let copy = dir.path().join("z/copy");
        put_copy(&to, &copy).unwrap();
        assert_eq!(fs_err::read(&copy).unwrap(), b"bytes");
        assert_eq!(fs_err::read_dir(dir.path().join("z")).unwrap().count(), 1);
        let kept = keep_aside(&to, Records::Lines, true).unwrap().unwrap();
        assert_eq!(fs_err::read(kept).unwrap(), b"bytes");
        assert!(!to.exists());
    }
}
