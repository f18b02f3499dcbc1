//! Finds the sessions that users made with the CLIs, by the beginnings of their files.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rejoin_agents::{Adapter, SessionHeader, SessionStorage, UserSessions};

use crate::config::RunnerConfig;
use crate::foreign_file;
use crate::inspect::environment;
use crate::session::{database, folders, named};

/// Number of bytes in which a session must describe itself.
pub(super) const BEGINNING: u64 = 4 * 1024 * 1024;
/// Largest size of a session that must be read as a whole; larger ones are skipped.
const WHOLE: u64 = 32 * 1024 * 1024;
/// File extension of a session that must be read as a whole.
const DOCUMENT: &str = ".json";

/// Session that was found.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) head: SessionHeader,
    /// The user's own folder of the CLI, and the path of the file below it.
    pub(super) home: PathBuf,
    pub(super) path: String,
    /// Stamp that changes when the session is written.
    pub(super) stamp: String,
    length: u64,
}

/// Returns where the sessions of an agent's user are, given the environment that its CLI gets from
/// us.
pub(super) fn own(
    config: &RunnerConfig,
    adapter: &dyn Adapter,
    folder: Option<&str>,
) -> Option<UserSessions> {
    let env = environment(config, adapter);
    let var = |name: &str| env.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
    adapter.capabilities().adopt?.own_sessions(&var, folder)
}

/// Returns the sessions of a folder (a real path), or all, newest first. Files that cannot be read
/// are skipped.
pub(super) fn sessions(
    adapter: &'static dyn Adapter,
    own: &UserSessions,
    folder: Option<&str>,
) -> Vec<Found> {
    let all = match &own.kept {
        SessionStorage::Files {
            folders: patterns,
            begins,
            ends,
        } => {
            let patterns = patterns.iter();
            let folders = patterns.flat_map(|pattern| folders(&own.home, pattern));
            let paths = folders.flat_map(|place| {
                let names = ends
                    .iter()
                    .flat_map(|end| named(&own.home.join(&place), begins, end));
                let paths = names.map(|name| format!("{place}/{name}"));
                paths.collect::<Vec<_>>()
            });
            let found = paths.filter_map(|path| file(adapter, &own.home, &path, folder));
            found.collect::<Vec<_>>()
        }
        SessionStorage::Rows {
            begins,
            ends,
            heads,
            ..
        } => {
            let mut all = vec![];
            for name in named(&own.home, begins, ends) {
                all.extend(rows(adapter, &own.home, &name, heads));
            }
            all
        }
    };
    let wanted = all
        .into_iter()
        .filter(|found| match (folder, &found.head.folder) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(wanted), Some(its)) => wanted == its || is_same(wanted, its),
        });
    let mut each: BTreeMap<String, Found> = BTreeMap::new();
    for found in wanted {
        let id = found.head.session.to_string();
        // A CLI may leave a shorter file under the name of a session, or one in an older format.
        let rank = |f: &Found| (!f.path.ends_with(DOCUMENT), f.length);
        if each.get(&id).is_none_or(|known| rank(known) < rank(&found)) {
            each.insert(id, found);
        }
    }
    let mut each: Vec<Found> = each.into_values().collect();
    each.sort_by_key(|found| std::cmp::Reverse(found.head.used));
    each
}

/// Finds one session again, first at its earlier path.
pub(super) fn again(
    adapter: &'static dyn Adapter,
    own: &UserSessions,
    path: &str,
    session: &str,
) -> Option<Found> {
    let is_it = |found: &Found| found.head.session.as_str() == session;
    let there = match &own.kept {
        SessionStorage::Files { .. } => file(adapter, &own.home, path, None),
        SessionStorage::Rows { .. } => None,
    };
    if there.as_ref().is_some_and(is_it) && !path.ends_with(DOCUMENT) {
        return there;
    }
    let all = sessions(adapter, own, None);
    all.into_iter().find(is_it)
}

fn is_same(wanted: &str, its: &str) -> bool {
    fs_err::canonicalize(its).is_ok_and(|real| real == Path::new(wanted))
}

fn file(
    adapter: &'static dyn Adapter,
    home: &Path,
    path: &str,
    folder: Option<&str>,
) -> Option<Found> {
    let at = home.join(path);
    let meta = fs_err::metadata(&at)
        .ok()
        .filter(std::fs::Metadata::is_file)?;
    let read = |file: &str| foreign_file::read_setting(home.join(file));
    let adopt = adapter.capabilities().adopt?;
    let mut reader = adopt.header(path, folder, &read);
    if path.ends_with(DOCUMENT) {
        let bytes = foreign_file::read_regular(&at, WHOLE).ok()?;
        let lines = adopt.as_lines(&bytes)?;
        lines.split(|b| *b == b'\n').any(|line| reader.line(line));
    } else {
        let mut lines = BufReader::new(foreign_file::open(&at).ok()?.take(BEGINNING));
        let mut line = vec![];
        while lines.read_until(b'\n', &mut line).ok()? > 0 {
            if reader.line(line.strip_suffix(b"\n").unwrap_or(&line)) {
                break;
            }
            line.clear();
        }
    }
    let mut head = reader.finish()?;
    let written = meta.mtime().saturating_mul(1_000_000) + meta.mtime_nsec() / 1000;
    head.used = head.used.or(Some(written));
    Some(Found {
        head,
        home: home.to_owned(),
        path: path.to_owned(),
        stamp: format!("{} {} {}", meta.len(), meta.mtime(), meta.mtime_nsec()),
        length: meta.len(),
    })
}

fn rows(adapter: &'static dyn Adapter, home: &Path, name: &str, heads: &'static str) -> Vec<Found> {
    let Some(adopt) = adapter.capabilities().adopt else {
        return vec![];
    };
    let rows = database::rows_of_others(&home.join(name), heads);
    let rows = rows.unwrap_or_default().into_iter();
    let found = rows.filter_map(|row| {
        let mut reader = adopt.header(name, None, &|_| None);
        reader.line(row.as_bytes());
        let head = reader.finish()?;
        let used = head.used.unwrap_or_default();
        Some(Found {
            stamp: used.to_string(),
            head,
            home: home.to_owned(),
            path: name.to_owned(),
            length: used.unsigned_abs(),
        })
    });
    found.collect()
}

/// Returns the lines of a whole session; a document is converted to lines.
pub(super) fn lines(adapter: &dyn Adapter, file: &Path) -> io::Result<Vec<u8>> {
    let bytes = foreign_file::read_regular(file, foreign_file::SESSION)?;
    if file.to_string_lossy().ends_with(DOCUMENT) {
        let adopt = adapter.capabilities().adopt;
        let lines = adopt.and_then(|adopt| adopt.as_lines(&bytes));
        return lines.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not readable"));
    }
    Ok(bytes)
}
