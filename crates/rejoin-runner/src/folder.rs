//! The working folder as evidence: is it the one the session belongs to?

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rejoin_core::{Folder, FolderFact};

use crate::process::capture;

const GIT_MAY_TAKE: Duration = Duration::from_secs(5);

/// Looks at a folder, without asking git.
pub fn look(path: &Path) -> io::Result<Folder> {
    let real = fs_err::canonicalize(path)?;
    let meta = fs_err::metadata(&real)?;
    if !meta.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::NotADirectory,
            format!("{} is not a folder", real.display()),
        ));
    }
    let text = real.to_str().ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("the name of {} is not UTF-8", real.display()),
        )
    })?;
    Ok(Folder {
        path: text.to_owned(),
        device: meta.dev(),
        inode: meta.ino(),
        checkout: None,
    })
}

/// Makes a folder that only its owner may look into.
pub(crate) fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(folder);
    made.map_err(|e| io::Error::new(e.kind(), format!("making {}: {e}", folder.display())))
}

/// Compares today's folder with the one a session belongs to. Asks git only if nothing else helps.
pub fn compare(pinned: &Folder, today: &Folder) -> FolderFact {
    if pinned.path == today.path {
        return FolderFact::Same;
    }
    if (pinned.device, pinned.inode) == (today.device, today.inode) {
        return FolderFact::SameInode;
    }
    if pinned.checkout.is_some() && pinned.checkout == checkout_of(Path::new(&today.path)) {
        return FolderFact::SameCheckout;
    }
    FolderFact::Other
}

/// First commit of the checkout a folder lies in, and where in it.
pub fn checkout_of(folder: &Path) -> Option<(String, String)> {
    let root = git_root(folder)?;
    let env = std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "HOME");
    let args = ["rev-list", "--max-parents=0", "HEAD"];
    let said = capture(OsStr::new("git"), args, env, folder, b"", GIT_MAY_TAKE).ok()?;
    let first = String::from_utf8_lossy(&said.stdout)
        .split_whitespace()
        .last()?
        .to_owned();
    let place = folder.strip_prefix(&root).ok()?.to_str()?.to_owned();
    said.status.success().then_some((first, place))
}

/// Returns the root of the checkout a folder lies in.
///
/// An empty folder `.git` makes no checkout, as for git itself: a sandbox that was killed may have left one.
pub fn git_root(folder: &Path) -> Option<PathBuf> {
    let is_root = |place: &&Path| {
        let git = place.join(".git");
        git.is_file() || git.join("HEAD").symlink_metadata().is_ok()
    };
    folder.ancestors().find(is_root).map(Path::to_path_buf)
}
