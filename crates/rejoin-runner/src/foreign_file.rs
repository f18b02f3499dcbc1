//! Reads files that other programs write: session files, marks and settings of CLIs, files of a
//! repository.
//!
//! A path that another program controls can be a FIFO, a device or a folder, and can be of any size. A
//! FIFO without a writer would block the thread for ever, a device could never end. Each function here
//! opens without waiting, accepts regular files only, and reads a bounded number of bytes.

use std::fs::Permissions;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt;
use fs_err::{File, OpenOptions};
use nix::fcntl::OFlag;

/// Size from which a file is not read on a thread that has other work.
pub(crate) const LARGE: u64 = 1 << 20;

/// Limit for settings, marks and other small files.
pub const SETTINGS: u64 = 32 << 20;

/// Limit for a session that has to be in memory as a whole.
pub const SESSION: u64 = 1 << 30;

/// Opens a regular file for reading. Follows links.
pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
    open_with(path.as_ref(), OpenOptions::new().read(true), OFlag::empty())
}

/// Opens a regular file with these options, and not through a link: for a file that is changed in
/// place.
pub fn open_to_change(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    open_with(path, options, OFlag::O_NOFOLLOW)
}

fn open_with(path: &Path, options: &mut OpenOptions, more: OFlag) -> io::Result<File> {
    // Checked before opening: opening a device, or a FIFO that has a writer, has effects.
    let meta = fs_err::metadata(path)?;
    regular(path, meta.is_file())?;
    if meta.len() >= LARGE {
        rejoin_hub::fault::hold();
    }
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY | more;
    let file = options.custom_flags(flags.bits()).open(path)?;
    regular(path, file.metadata()?.is_file())?;
    Ok(file)
}

/// Reads a regular file. Fails with `FileTooLarge` if it holds more than `max` bytes.
pub fn read_regular(path: impl AsRef<Path>, max: u64) -> io::Result<Vec<u8>> {
    let path = path.as_ref();
    let file = open(path)?;
    let too_large = || {
        let text = format!("{} is larger than {max} bytes", path.display());
        io::Error::new(io::ErrorKind::FileTooLarge, text)
    };
    let length = file.metadata()?.len();
    if length > max {
        return Err(too_large());
    }
    // Another program chose the size: if there is no memory for it, return an error instead of
    // aborting.
    let mut bytes = vec![];
    bytes.try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX))?;
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(too_large());
    }
    Ok(bytes)
}

/// Reads a small regular file. Returns None if it cannot be read.
pub fn read_setting(path: impl AsRef<Path>) -> Option<Vec<u8>> {
    read_regular(path, SETTINGS).ok()
}

/// Copies a regular file with its permissions. Returns the number of bytes.
pub fn copy(from: &Path, to: &Path) -> io::Result<u64> {
    let from = open(from)?;
    let permissions: Permissions = from.metadata()?.permissions();
    let mut from = from.into_file();
    let mut to = create_temporary(to)?.into_file();
    let count = io::copy(&mut from, &mut to)?;
    to.set_permissions(permissions)?;
    Ok(count)
}

/// Returns the path of a file below a home, for writing. Fails if a folder on the way, below the
/// home, is a link: another program may have planted it. The home itself may be reached by links.
pub fn beneath(home: &Path, path: &str) -> io::Result<PathBuf> {
    let mut at = home.to_path_buf();
    let mut names = path.split('/').peekable();
    while let Some(name) = names.next() {
        if matches!(name, "" | "." | "..") {
            let text = format!("{path} does not lie beneath {}", home.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        at.push(name);
        let is_link = || fs_err::symlink_metadata(&at).is_ok_and(|meta| meta.is_symlink());
        if names.peek().is_some() && is_link() {
            let text = format!(
                "{} is a link; sessions are not written through it",
                at.display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
    }
    Ok(at)
}

/// Creates a file that only its owner may read, for bytes that are moved to their place afterwards.
/// An existing file is removed, never written through.
pub fn create_temporary(path: &Path) -> io::Result<File> {
    match fs_err::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}

fn regular(path: &Path, is_file: bool) -> io::Result<()> {
    if is_file {
        return Ok(());
    }
    let text = format!("{} is not a regular file", path.display());
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use nix::sys::stat::Mode;

    use super::*;

    #[test]
    fn only_regular_files_are_read_and_nothing_blocks() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        nix::unistd::mkfifo(&at("fifo"), Mode::S_IRWXU).unwrap();
        fs_err::os::unix::fs::symlink(at("fifo"), at("link to fifo")).unwrap();
        fs_err::os::unix::fs::symlink("/dev/zero", at("link to device")).unwrap();
        fs_err::create_dir(at("folder")).unwrap();
        for name in ["fifo", "link to fifo", "link to device", "folder"] {
            let error = read_regular(at(name), SETTINGS).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}");
            assert!(copy(&at(name), &at("copy")).is_err(), "{name}");
            assert!(!at("copy").exists());
        }
        let gone = read_regular(at("gone"), SETTINGS).unwrap_err();
        assert_eq!(gone.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn nothing_is_put_through_a_link_below_the_home() {
        let dir = tempfile::tempdir().unwrap();
        let (real, home) = (dir.path().join("real"), dir.path().join("home"));
        fs_err::create_dir_all(real.join("sessions")).unwrap();
        fs_err::os::unix::fs::symlink(&real, &home).unwrap();
        let planted = home.join("planted");
        fs_err::os::unix::fs::symlink(dir.path(), &planted).unwrap();
        let place = beneath(&home, "sessions/new/s.jsonl").unwrap();
        assert_eq!(place, home.join("sessions/new/s.jsonl"));
        let error = beneath(&home, "planted/s.jsonl").unwrap_err().to_string();
        assert!(error.contains("planted is a link"), "{error}");
        for path in ["../s", "/s", "a//s", ""] {
            assert!(beneath(&home, path).is_err(), "{path}");
        }
        // A link in the place of a temporary file is replaced.
        let (victim, temp) = (dir.path().join("victim"), dir.path().join("temp"));
        fs_err::write(&victim, "mine").unwrap();
        fs_err::os::unix::fs::symlink(&victim, &temp).unwrap();
        assert_eq!(copy(&victim, &temp).unwrap_or(0), 4);
        create_temporary(&temp).unwrap();
        assert_eq!(fs_err::read(&victim).unwrap(), b"mine");
    }

    #[test]
    fn a_file_larger_than_the_limit_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs_err::write(&file, "12345").unwrap();
        assert_eq!(read_regular(&file, 5).unwrap(), b"12345");
        let error = read_regular(&file, 4).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        // The file system reports no size for this file.
        assert!(read_regular("/proc/self/status", 4).is_err());
        assert!(
            !read_regular("/proc/self/status", SETTINGS)
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn a_file_for_which_there_is_no_memory_is_an_error() {
        let all = fs_err::read_to_string("/proc/sys/vm/overcommit_memory").unwrap();
        if all.trim() == "1" {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        File::create(&file).unwrap().set_len(1 << 42).unwrap();
        let error = read_regular(&file, u64::MAX).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
    }

    #[test]
    fn a_link_is_followed_for_reading_only() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs_err::write(&file, "text").unwrap();
        fs_err::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(read_setting(&link).unwrap(), b"text");
        assert!(open_to_change(&link, OpenOptions::new().append(true)).is_err());
        assert!(open_to_change(&file, OpenOptions::new().append(true)).is_ok());
        assert_eq!(copy(&link, &dir.path().join("copy")).unwrap(), 4);
    }
}
