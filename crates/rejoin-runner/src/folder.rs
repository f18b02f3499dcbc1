//! Identity of the working folder: tells if it is the one that a session belongs to.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rejoin_core::{Folder, FolderFact};

use crate::process::capture;

const GIT_MAY_TAKE: Duration = Duration::from_secs(5);

/// Reads the identity of a folder, without asking git.
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

/// Creates a folder that only its owner may read.
pub(crate) fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(folder);
    made.map_err(|e| io::Error::new(e.kind(), format!("making {}: {e}", folder.display())))
}

/// Compares the present folder with the one that a session belongs to. Asks git only if path and
/// inode differ.
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

/// Returns the first commit of the checkout that contains a folder, and the folder's path in it.
pub fn checkout_of(folder: &Path) -> Option<(String, String)> {
    let root = git_root(folder)?;
    let kept = |name: &OsStr| name == "PATH" || name == "HOME";
    let env = std::env::vars_os().filter(|(name, _)| kept(name));
    // The repository may name a program that fetches missing objects.
    let local = [("GIT_ALLOW_PROTOCOL", "none"), ("GIT_NO_LAZY_FETCH", "1")];
    let env = env.chain(local.map(|(name, value)| (name.into(), value.into())));
    let args = ["rev-list", "--max-parents=0", "HEAD"];
    let said = capture(
        OsStr::new("git"),
        args,
        env,
        folder,
        b"",
        GIT_MAY_TAKE,
        None,
    )
    .ok()?;
    let first = String::from_utf8_lossy(&said.stdout)
        .split_whitespace()
        .last()?
        .to_owned();
    let place = folder.strip_prefix(&root).ok()?.to_str()?.to_owned();
    said.status.success().then_some((first, place))
}

/// Returns the root of the checkout that contains a folder.
///
/// An empty folder `.git` makes no checkout, as for git itself: a sandbox that was killed may have
/// left one.
pub fn git_root(folder: &Path) -> Option<PathBuf> {
    let is_root = |place: &&Path| {
        let git = place.join(".git");
        git.is_file() || git.join("HEAD").symlink_metadata().is_ok()
    };
    folder.ancestors().find(is_root).map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs git as a user would.
    fn git(folder: &Path, args: &[&str]) -> String {
        let env = std::env::vars_os().filter(|(name, _)| name == "PATH");
        let limit = Duration::from_secs(20);
        let said = capture(OsStr::new("git"), args, env, folder, b"", limit, None).unwrap();
        assert!(said.status.success(), "{args:?}: {said:?}");
        String::from_utf8_lossy(&said.stdout).trim().to_owned()
    }

    /// A checkout whose first commit is missing names a program that would fetch it.
    #[test]
    fn a_checkout_cannot_run_a_program() {
        let dir = tempfile::tempdir().unwrap();
        let (full, hostile) = (dir.path().join("full"), dir.path().join("hostile"));
        for folder in [&full, &hostile] {
            fs_err::create_dir(folder).unwrap();
            git(folder, &["init", "-q", "-b", "main"]);
        }
        let (name, mail) = ("user.name=a", "user.email=a@b");
        let commit = [
            "-c",
            name,
            "-c",
            mail,
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "x",
        ];
        git(&full, &commit);
        let first = git(&full, &["rev-parse", "HEAD"]);
        let ran = dir.path().join("ran");
        let program = format!("touch {}; git-upload-pack", ran.display());
        let url = format!("file://{}", full.display());
        for (key, value) in [
            ("core.repositoryFormatVersion", "1"),
            ("extensions.partialClone", "far"),
            ("remote.far.promisor", "true"),
            ("remote.far.url", &url),
            ("remote.far.uploadpack", &program),
            ("protocol.file.allow", "always"),
        ] {
            git(&hostile, &["config", key, value]);
        }
        fs_err::write(hostile.join(".git/refs/heads/main"), format!("{first}\n")).unwrap();
        assert_eq!(checkout_of(&hostile), None);
        assert!(!ran.exists(), "a program of the checkout ran");
        let known = checkout_of(&full).unwrap();
        assert_eq!(known, (first, String::new()));
        // With git's own rules it runs.
        git(&hostile, &["rev-list", "--max-parents=0", "HEAD"]);
        assert!(ran.exists());
    }
}
