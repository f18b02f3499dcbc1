//! A file that is there whole or not at all.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt;
use nix::fcntl::{Flock, FlockArg};

/// Written beside its place, moved there when it is done.
pub(crate) struct AtomicFile {
    to: PathBuf,
    temp: PathBuf,
    file: BufWriter<std::fs::File>,
    _lock: Flock<std::fs::File>,
    kept: bool,
}

impl AtomicFile {
    pub(crate) fn begin(to: &Path) -> io::Result<Self> {
        let folder = to.parent().filter(|p| !p.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            let text = format!("the folder {} does not exist", folder.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        let name = to.file_name().unwrap_or_default();
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(".rejoin-tmp");
        Self::by_way_of(&to.with_file_name(hidden), to)
    }

    /// Writes by way of `temp`. Overwrites the leftover of an earlier process that was killed.
    pub(crate) fn by_way_of(temp: &Path, to: &Path) -> io::Result<Self> {
        let file = fs_err::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(nix::libc::O_NOFOLLOW)
            .open(temp)?;
        let (file, _) = file.into_parts();
        let busy = |_| io::Error::new(io::ErrorKind::WouldBlock, "somebody else is writing it");
        let lock = Flock::lock(file.try_clone()?, FlockArg::LockExclusiveNonblock);
        let lock = lock.map_err(|(_, e)| busy(e))?;
        file.set_len(0)?;
        Ok(Self {
            to: to.to_owned(),
            temp: temp.to_owned(),
            file: BufWriter::with_capacity(256 * 1024, file),
            _lock: lock,
            kept: false,
        })
    }

    /// On disk, though not in its place yet.
    pub(crate) fn synced(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_all()
    }

    pub(crate) fn keep(mut self) -> io::Result<()> {
        self.synced()?;
        fs_err::rename(&self.temp, &self.to)?;
        self.kept = true;
        sync_folder(&self.to)
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.kept {
            let _gone = fs_err::remove_file(&self.temp);
        }
    }
}

/// The name of a file is on disk once its folder is.
pub(crate) fn sync_folder(of: &Path) -> io::Result<()> {
    let folder = of.parent().filter(|p| !p.as_os_str().is_empty());
    fs_err::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
