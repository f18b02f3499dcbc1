//! A mount namespace in which protected folders are empty.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt;
use nix::fcntl::OFlag;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use rustix::thread::{
    CapabilitySet as Capability, capabilities, remove_capability_from_bounding_set,
    set_capabilities,
};

use super::aliases::kernel_mounts;
use super::{Gap, rules};
use crate::folder::make_private;

const NOTHING: Option<&str> = None;

/// Returns the flags of everything that is mounted here.
fn plain() -> MsFlags {
    MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC
}

/// Mounts an empty folder over each of these, visible only to the calling thread. The folders above
/// them become mount points as well, which no process can rename or remove: otherwise a run could
/// move the folder above a protected one aside, and make its own at that path.
pub(super) fn cover(closed: &[PathBuf], gaps: &[Gap]) -> io::Result<()> {
    let closed = existing(closed)?;
    unshare(CloneFlags::CLONE_NEWNS)?;
    // Mounts that are made outside still appear here; none of ours appears outside.
    let received = MsFlags::MS_REC | MsFlags::MS_SLAVE;
    mount(NOTHING, "/", NOTHING, received, NOTHING)?;
    for &folder in &closed {
        let inside = |gap: &&Gap| gap.path.starts_with(folder);
        // Opened before they are covered.
        let held: Vec<(&Gap, File)> = gaps
            .iter()
            .filter(inside)
            .map(|gap| Ok((gap, hold(&gap.path)?)))
            .collect::<io::Result<_>>()?;
        let named = |error| named(folder, error);
        mount(
            Some("tmpfs"),
            folder,
            Some("tmpfs"),
            plain(),
            Some("mode=0700"),
        )
        .map_err(named)?;
        for (gap, file) in held {
            uncover(gap, &file).map_err(|error| named_io(&gap.path, &error))?;
        }
        read_only(folder).map_err(named)?;
    }
    for folder in above(&closed) {
        let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
        mount(Some(folder), folder, NOTHING, flags, NOTHING)
            .map_err(|error| named(folder, error))?;
    }
    Ok(())
}

/// Returns the folders above these, but for the root, the deepest first: what is mounted in a folder
/// is taken along, so that no path that was opened before leads around it.
fn above<'a>(closed: &[&'a PathBuf]) -> Vec<&'a Path> {
    let parents = |folder: &&'a PathBuf| folder.ancestors().skip(1).collect::<Vec<_>>();
    let mut found: Vec<&Path> = closed.iter().flat_map(parents).collect();
    found.retain(|folder| folder.parent().is_some());
    found.sort_unstable_by(|one, other| other.cmp(one));
    found.dedup();
    found
}

/// Prevents the calling thread from undoing that, and from inspecting processes outside, or changing
/// them and the machine through files of the kernel.
pub(super) fn lock() -> io::Result<()> {
    for place in kernel_mounts() {
        match read_only(&place) {
            // Another mount hides it.
            Ok(()) | Err(nix::Error::ENOENT | nix::Error::EINVAL) => {}
            Err(error) => return Err(named(&place, error)),
        }
    }
    rules::forbid_mounts()?;
    // CAP_SYS_ADMIN and CAP_PERFMON allow reading the environment of any process (Linux 6.18),
    // regardless of Landlock; CAP_DAC_READ_SEARCH opens files by their inode.
    let lost = [
        Capability::SYS_ADMIN,
        Capability::PERFMON,
        Capability::DAC_READ_SEARCH,
    ];
    for one in lost {
        remove_capability_from_bounding_set(one)?;
    }
    let mut sets = capabilities(None)?;
    for one in lost {
        sets.effective.remove(one);
        sets.permitted.remove(one);
        sets.inheritable.remove(one);
    }
    Ok(set_capabilities(None, sets)?)
}

/// Creates missing folders, so that a process of the run cannot. A folder that cannot be created,
/// because its filesystem is read-only, cannot be created by the run either.
fn existing(closed: &[PathBuf]) -> io::Result<Vec<&PathBuf>> {
    let mut found = vec![];
    for folder in closed {
        match make_private(folder) {
            Ok(()) => found.push(folder),
            Err(error) if error.kind() == ErrorKind::ReadOnlyFilesystem => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn hold(path: &Path) -> io::Result<File> {
    let mut options = fs_err::OpenOptions::new();
    options.read(true).custom_flags(OFlag::O_PATH.bits());
    Ok(options.open(path)?.into_file())
}

/// Mounts an opened file or folder at its place again.
fn uncover(gap: &Gap, held: &File) -> io::Result<()> {
    if !gap.path.exists() {
        if held.metadata()?.is_dir() {
            make_private(&gap.path)?;
        } else {
            gap.path.parent().map_or(Ok(()), make_private)?;
            fs_err::write(&gap.path, "")?;
        }
    }
    let from = format!("/proc/self/fd/{}", held.as_raw_fd());
    mount(
        Some(from.as_str()),
        &gap.path,
        NOTHING,
        MsFlags::MS_BIND,
        NOTHING,
    )?;
    if !gap.write {
        read_only(&gap.path)?;
    }
    Ok(())
}

fn read_only(path: &Path) -> nix::Result<()> {
    let flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY | plain();
    mount(NOTHING, path, NOTHING, flags, NOTHING)
}

fn named(path: &Path, error: nix::Error) -> io::Error {
    named_io(path, &error.into())
}

fn named_io(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
