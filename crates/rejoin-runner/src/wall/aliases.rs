//! Other paths at which the same folder can be reached: a filesystem, or a part of it, may be
//! mounted more than once.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Line of `/proc/self/mountinfo`.
struct Mount {
    device: String,
    /// Part of the filesystem that is mounted.
    root: PathBuf,
    at: PathBuf,
    /// Type of the filesystem.
    kind: String,
}

/// Filesystems whose files are settings of the kernel and of its processes.
const OF_THE_KERNEL: &[&str] = &[
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "efivarfs",
    "proc",
    "pstore",
    "securityfs",
    "sysfs",
    "tracefs",
];

/// Returns the places at which the kernel's own filesystems are mounted.
pub(super) fn kernel_mounts() -> Vec<PathBuf> {
    let table = fs_err::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mounts = table.lines().filter_map(Mount::read);
    let mounts = mounts.filter(|mount| OF_THE_KERNEL.contains(&mount.kind.as_str()));
    let mut places: Vec<PathBuf> = mounts.map(|mount| mount.at).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// Returns the other paths of a folder, or of folders in it.
pub(super) fn aliases(folder: &Path) -> Vec<PathBuf> {
    let table = fs_err::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut found = other_paths(folder, &table);
    found.retain(|path| is_within(path, folder));
    found
}

/// Returns true if the path leads to the same filesystem. A mount may be hidden by another one, and
/// then its path leads elsewhere.
fn is_within(path: &Path, folder: &Path) -> bool {
    let (Ok(there), Ok(here)) = (
        fs_err::symlink_metadata(path),
        fs_err::symlink_metadata(folder),
    ) else {
        return false;
    };
    there.dev() == here.dev() && there.is_dir()
}

fn other_paths(folder: &Path, table: &str) -> Vec<PathBuf> {
    let mounts: Vec<Mount> = table.lines().filter_map(Mount::read).collect();
    let holds = |mount: &&Mount| folder.starts_with(&mount.at);
    // If two are mounted at the same place, the later one hides the other.
    let Some(own) = mounts
        .iter()
        .filter(holds)
        .max_by_key(|m| m.at.components().count())
    else {
        return vec![];
    };
    let Ok(below) = folder.strip_prefix(&own.at) else {
        return vec![];
    };
    let inside = own.root.join(below);
    let others = mounts.iter().filter(|mount| mount.device == own.device);
    let path = |mount: &Mount| match inside.strip_prefix(&mount.root) {
        Ok(below) => Some(mount.at.join(below)),
        Err(_) => mount.root.starts_with(&inside).then(|| mount.at.clone()),
    };
    let mut found: Vec<PathBuf> = others.filter_map(path).collect();
    found.retain(|path| !path.starts_with(folder));
    found.sort_unstable();
    found.dedup();
    found
}

impl Mount {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split(' ').skip(2);
        Some(Self {
            device: words.next()?.to_owned(),
            root: unescaped(words.next()?),
            at: unescaped(words.next()?),
            // Optional fields end with a dash.
            kind: words.skip_while(|word| *word != "-").nth(1)?.to_owned(),
        })
    }
}

/// Decodes blanks and similar characters, which appear as three octal digits.
fn unescaped(word: &str) -> PathBuf {
    let mut bytes = vec![];
    let mut rest = word.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after.get(..3).filter(|_| *first == b'\\');
        let code = code.and_then(|code| u8::from_str_radix(str::from_utf8(code).ok()?, 8).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_filesystem_elsewhere() {
        let table = "\
21 1 254:0 / / rw - ext4 /dev/vda rw
22 21 254:0 /home /mnt/all\\040homes rw - ext4 /dev/vda rw
23 21 254:0 /home/a/data/objects /srv/objects rw - ext4 /dev/vda rw
24 21 254:0 /var /var rw - ext4 /dev/vda rw
25 21 0:5 / /proc rw - proc proc rw
nonsense";
        let found = other_paths(Path::new("/home/a/data"), table);
        let expected = ["/mnt/all homes/a/data", "/srv/objects"].map(PathBuf::from);
        assert_eq!(found, expected);
        assert_eq!(other_paths(Path::new("/usr/b"), table), [] as [PathBuf; 0]);
    }
}
