//! Finds folders with a given name below a working folder.

use std::path::{Path, PathBuf};

/// Limit for the number of folders to visit. A large checkout with its dependencies has some ten
/// thousand.
pub(super) const MOST: usize = 100_000;

/// Returns the folders below `root`, itself excluded, that hold an entry `name`, and false if there
/// were more than `most` folders to visit. Does not follow links.
pub(super) fn holders(root: &Path, name: &str, most: usize) -> (Vec<PathBuf>, bool) {
    let mut holders = vec![];
    let mut waiting = vec![root.to_path_buf()];
    let mut seen = 0;
    while let Some(folder) = waiting.pop() {
        seen += 1;
        if seen > most {
            return (holders, false);
        }
        for entry in fs_err::read_dir(&folder).into_iter().flatten().flatten() {
            let of_git = entry.file_name() == ".git";
            if entry.file_name() == name {
                holders.extend((folder != root).then(|| folder.clone()));
            } else if !of_git && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(entry.path());
            }
        }
    }
    holders.sort();
    (holders, true)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_folder_beneath_is_looked_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for folder in [".claude", "a/b/.claude", "c/.claude", ".git/x/.claude", "d"] {
            fs_err::create_dir_all(root.join(folder)).unwrap();
        }
        fs_err::os::unix::fs::symlink(root, root.join("d/loop")).unwrap();
        let (found, whole) = holders(root, ".claude", 100);
        assert_eq!(found, [root.join("a/b"), root.join("c")]);
        assert!(whole);
        assert!(!holders(root, ".claude", 2).1);
    }
}
