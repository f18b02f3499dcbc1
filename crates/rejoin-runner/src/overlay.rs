//! Builds the home that a CLI gets in place of the user's own, from the present content of that
//! home.

use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::Path;

use crate::foreign_file;
use rejoin_agents::Overlay;

/// Brings the overlay up to date. Other runs, for other conversations, may do so at the same time.
pub(crate) fn lay(overlay: &Overlay) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(&overlay.to)?;
    for (name, rewrite) in overlay.rewritten {
        let own = match foreign_file::read_regular(overlay.from.join(name), foreign_file::SETTINGS)
        {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let made = rewrite(own.as_deref()).map_err(|why| {
            let path = overlay.from.join(name);
            io::Error::other(format!("{}: {why}", path.display()))
        })?;
        put(&overlay.to.join(name), &made)?;
    }
    link_entries(&overlay.from, &overlay.to, |name| {
        let rewritten = overlay.rewritten.iter().any(|(file, _)| *file == name);
        !rewritten && !overlay.apart.contains(&name) && !overlay.mixed.contains(&name)
    })?;
    for (at, target) in &overlay.links {
        if target.exists() {
            link(target, at)?;
        }
    }
    forget_broken(&overlay.to);
    for folder in overlay.mixed {
        let to = overlay.to.join(folder);
        builder.create(&to)?;
        link_entries(&overlay.from.join(folder), &to, |_| true)?;
        forget_broken(&to);
    }
    Ok(())
}

/// Writes the files of one command into the home of its CLI.
pub(crate) fn put_files(home: &Path, files: &[(String, String)]) -> io::Result<()> {
    for (place, text) in files {
        let path = foreign_file::beneath(home, place)?;
        if let Some(parent) = path.parent() {
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true).mode(0o700).create(parent)?;
        }
        put(&path, text.as_bytes())?;
    }
    Ok(())
}

fn link_entries(from: &Path, to: &Path, which: impl Fn(&str) -> bool) -> io::Result<()> {
    let entries = fs_err::read_dir(from).into_iter().flatten();
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name.to_str().is_none_or(&which) {
            link(&entry.path(), &to.join(&name))?;
        }
    }
    Ok(())
}

/// Writes the file atomically, and only if it differs: another process may be reading it.
fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if foreign_file::read_setting(path).is_some_and(|there| there == bytes) {
        return Ok(());
    }
    let mut temp = tempfile::Builder::new()
        .prefix(".rejoin-")
        .tempfile_in(path.parent().unwrap_or(Path::new("/")))?;
    io::Write::write_all(&mut temp, bytes)?;
    temp.persist(path)?;
    Ok(())
}

fn link(target: &Path, at: &Path) -> io::Result<()> {
    match symlink(target, at) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        // The link exists, or the CLI has put a file of its own there.
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Removes links to files that the user has removed.
fn forget_broken(folder: &Path) {
    let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let path = entry.path();
        if path.is_symlink() && !path.exists() {
            drop(fs_err::remove_file(path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_the_users_own() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("own"), dir.path().join("own/rejoin"));
        for name in ["memory", "tmp", "commands/of"] {
            fs_err::create_dir_all(from.join(name)).unwrap();
        }
        fs_err::write(from.join("settings"), "a").unwrap();
        let overlay = Overlay {
            from: from.clone(),
            to: to.clone(),
            apart: &["tmp", "rejoin"],
            mixed: &["commands"],
            rewritten: &[("settings", |own| {
                Ok([own.unwrap_or_default(), b"+ours"].concat())
            })],
            links: vec![],
        };
        lay(&overlay).unwrap();
        assert_eq!(fs_err::read(to.join("settings")).unwrap(), b"a+ours");
        assert!(to.join("memory").is_symlink());
        assert!(!to.join("tmp").exists() && !to.join("rejoin").exists());
        put_files(&to, &[("commands/ours".into(), "x".into())]).unwrap();
        assert!(to.join("commands/of").is_symlink());
        fs_err::write(from.join("settings"), "b").unwrap();
        fs_err::remove_dir(from.join("memory")).unwrap();
        fs_err::remove_dir(from.join("commands/of")).unwrap();
        lay(&overlay).unwrap();
        assert_eq!(fs_err::read(to.join("settings")).unwrap(), b"b+ours");
        assert!(!to.join("memory").is_symlink());
        assert!(!to.join("commands/of").is_symlink());
        assert_eq!(fs_err::read(to.join("commands/ours")).unwrap(), b"x");
        assert!(!from.join("commands/ours").exists());
        assert_eq!(fs_err::read(from.join("settings")).unwrap(), b"b");
    }
}
