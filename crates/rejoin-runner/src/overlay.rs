//! Makes the home a CLI gets in place of the user's own, from what that holds today.

use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::Path;

use rejoin_agents::Overlay;

/// Brings it up to date. Runs at the same time, for other conversations, may do so too.
pub(crate) fn lay(overlay: &Overlay) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(&overlay.to)?;
    for (name, rewrite) in overlay.rewritten {
        let own = match fs_err::read(overlay.from.join(name)) {
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
    let entries = fs_err::read_dir(&overlay.from).into_iter().flatten();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let ours = |known: &str| name.to_str() == Some(known);
        let rewritten = overlay.rewritten.iter().any(|(file, _)| ours(file));
        if !rewritten && !overlay.apart.iter().any(|apart| ours(apart)) {
            link(&entry.path(), &overlay.to.join(&name))?;
        }
    }
    for (at, target) in &overlay.links {
        if target.exists() {
            link(target, at)?;
        }
    }
    forget_broken(&overlay.to);
    Ok(())
}

/// Whole or not at all, and only if it differs: somebody may be reading it.
fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs_err::read(path).is_ok_and(|there| there == bytes) {
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
        // There already, or something the CLI has put there itself.
        Ok(()) | Err(_) => Ok(()),
    }
}

/// What the user has removed is not there any more.
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
        for name in ["memory", "tmp"] {
            fs_err::create_dir_all(from.join(name)).unwrap();
        }
        fs_err::write(from.join("settings"), "a").unwrap();
        let overlay = Overlay {
            from: from.clone(),
            to: to.clone(),
            apart: &["tmp", "rejoin"],
            rewritten: &[("settings", |own| {
                Ok([own.unwrap_or_default(), b"+ours"].concat())
            })],
            links: vec![],
        };
        lay(&overlay).unwrap();
        assert_eq!(fs_err::read(to.join("settings")).unwrap(), b"a+ours");
        assert!(to.join("memory").is_symlink());
        assert!(!to.join("tmp").exists() && !to.join("rejoin").exists());
        fs_err::write(from.join("settings"), "b").unwrap();
        fs_err::remove_dir(from.join("memory")).unwrap();
        lay(&overlay).unwrap();
        assert_eq!(fs_err::read(to.join("settings")).unwrap(), b"b+ours");
        assert!(!to.join("memory").is_symlink());
        assert_eq!(fs_err::read(from.join("settings")).unwrap(), b"b");
    }
}
