//! Determines the paths of a restored session, and the treatment of files that exist there.

use std::io::{self, Read as _};
use std::path::Path;

use rejoin_agents::{Adapter, Moving, Records, SessionAt, SessionPath};
use rejoin_core::FileMark;

use crate::foreign_file;
use crate::marks;
use crate::session::Sessions;
use crate::session::database::beside_it;

/// Returns the path for the session: where the CLI will look for it in this folder, with its
/// recorded name if the CLI would give that name.
pub(super) fn place(
    adapter: &dyn Adapter,
    at: &SessionAt<'_>,
    recorded: &str,
    read: &dyn Fn(&str) -> Option<Vec<u8>>,
) -> Option<String> {
    let (folders, begins, ends, copy) = match adapter.place(at) {
        SessionPath::At(path) => return Some(path),
        SessionPath::Find {
            folders,
            begins,
            ends,
            copy,
        } => (folders, begins, ends, copy),
    };
    let plain = Some(recorded).filter(|path| is_plain(path));
    let named = plain.and_then(|path| path.rsplit_once('/'));
    let named = named.filter(|(_, name)| {
        let long = name.len() >= begins.len() + ends.len();
        long && name.starts_with(&begins) && name.ends_with(&ends)
    });
    match (adapter.moving(at, read), named) {
        (Moving::Into(folder), Some((_, name))) => Some(format!("{folder}/{name}")),
        (Moving::Into(folder), None) => Some(format!("{folder}/{begins}restored{ends}")),
        (Moving::To(path), _) => Some(path),
        (Moving::Stays | Moving::Rewrite(_), Some((folder, _)))
            if folders.iter().any(|pattern| fits(folder, pattern)) =>
        {
            Some(recorded.to_owned())
        }
        (Moving::Stays | Moving::Rewrite(_), _) => copy,
    }
}

/// Returns true if the folder matches the pattern, in which `*` stands for one name.
fn fits(folder: &str, pattern: &str) -> bool {
    let (mut parts, mut meant) = (folder.split('/'), pattern.split('/'));
    loop {
        match (parts.next(), meant.next()) {
            (None, None) => return true,
            (Some(_), Some("*")) => {}
            (Some(part), Some(name)) if part == name => {}
            (Some(_) | None, Some(_) | None) => return false,
        }
    }
}

/// Returns true if the path is relative and cannot lead out of its folder.
pub(super) fn is_plain(path: &str) -> bool {
    let name = |name: &str| !matches!(name, "" | "." | "..") && name.len() < 256;
    path.len() < 4096 && !path.contains('\0') && path.split('/').all(name)
}

pub(super) fn hash_of(path: &Path) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    let mut file = foreign_file::open(path).ok()?;
    io::copy(&mut file, &mut hasher).ok()?;
    Some(hasher.finalize().to_hex().to_string())
}

/// Returns true if the content of the existing file is also in the file that replaces it, or in
/// another snapshot of the session.
pub(super) fn held_elsewhere(
    sessions: &Sessions<'_>,
    mark: &FileMark,
    staged: &Path,
    known: &[(u64, String)],
) -> bool {
    let target = sessions.home.join(&mark.path);
    let begins = || -> io::Result<bool> {
        let mut here = foreign_file::open(&target)?;
        let mut there = fs_err::File::open(staged)?.take(here.metadata()?.len());
        let (mut one, mut other) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
        loop {
            let got = here.read(&mut one)?;
            if got == 0 {
                return Ok(true);
            }
            if there.read_exact(&mut other[..got]).is_err() || one[..got] != other[..got] {
                return Ok(false);
            }
        }
    };
    let lines = matches!(sessions.adapter.profile().records, Records::Lines);
    if lines && begins().unwrap_or(false) {
        return true;
    }
    let logged = logged(&target);
    let here = marks::read_on(sessions.home, &mark.path, None, |_| {});
    !logged && here.is_ok_and(|here| known.contains(&(here.length, here.hash)))
}

/// Returns true if the database has a log that is not yet written into it.
pub(super) fn logged(file: &Path) -> bool {
    fs_err::metadata(beside_it(file, "-wal")).is_ok_and(|log| log.len() > 0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_paths_stay_where_they_are_put() {
        for good in ["a", "a/b.jsonl", "subagents/agent-1.meta.json", "..a/b.."] {
            assert!(is_plain(good), "{good}");
        }
        let long = "x".repeat(256);
        for bad in ["", "/a", "a/", "a//b", "..", "a/../b", "./a", "a\0b", &long] {
            assert!(!is_plain(bad), "{bad:?}");
        }
    }

    #[test]
    fn patterns_mean_whole_names() {
        assert!(fits("sessions/2026/11/15", "sessions/*/*/*"));
        assert!(!fits("sessions/2026/11", "sessions/*/*/*"));
        assert!(!fits("sessions/2026/11/15/x", "sessions/*/*/*"));
        assert!(!fits("other/2026/11/15", "sessions/*/*/*"));
    }
}
