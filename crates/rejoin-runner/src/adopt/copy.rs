//! Copies a session of the user to the place of our own sessions. The original is only read.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use rejoin_agents::{Adapter, Moving, SessionAt, SessionPath, SessionStorage, UserSessions};

use super::find::{Found, lines};
use super::read::{Whole, at_home};
use crate::foreign_file;
use crate::session::Sessions;
use crate::session::database::{self, Taking};

/// Path of a copy below the home, and its content.
pub(super) struct Copied {
    pub(super) path: String,
    pub(super) whole: Whole,
}

/// Copies the session for its folder, in which our runs of the CLI will look for it.
pub(super) fn copy(
    adapter: &'static dyn Adapter,
    own: &UserSessions,
    found: &Found,
    home: &Path,
    at: &SessionAt<'_>,
) -> io::Result<Copied> {
    let read = |file: &str| foreign_file::read_setting(home.join(file));
    let from = found.home.join(&found.path);
    let moving = adapter.moving(at, &read);
    let name = found.path.rsplit('/').next().unwrap_or(&found.path);
    let path = match (&moving, adapter.place(at)) {
        // A JSON document becomes JSON lines.
        (Moving::Into(folder), _) => match name.strip_suffix(".json") {
            Some(stem) => format!("{folder}/{stem}.jsonl"),
            None => format!("{folder}/{name}"),
        },
        (Moving::To(path), _) => path.clone(),
        (Moving::Stays | Moving::Rewrite(_), SessionPath::At(path)) => path,
        (Moving::Stays | Moving::Rewrite(_), SessionPath::Find { .. }) => found.path.clone(),
    };
    let to = foreign_file::beneath(home, &path)?;
    if let Some(parent) = to.parent() {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(parent)?;
    }
    match &own.kept {
        SessionStorage::Files { .. } => put(&to, &lines(adapter, &from)?)?,
        SessionStorage::Rows { copy, whole, .. } => {
            let taking = Taking {
                statements: copy,
                whole,
            };
            let made = database::take_out(&from, &to, &taking, at.session.as_str());
            if let Err(error) = made {
                remove(home, &path);
                return Err(error);
            }
        }
    }
    let read = ready(adapter, home, &path, at, &moving);
    if read.is_err() {
        remove(home, &path);
    }
    read.map(|whole| Copied { path, whole })
}

/// Makes the copy like our own sessions: it names its folder, and its CLI replays every entry once.
fn ready(
    adapter: &'static dyn Adapter,
    home: &Path,
    path: &str,
    at: &SessionAt<'_>,
    moving: &Moving,
) -> io::Result<Whole> {
    let sessions = Sessions { adapter, home };
    let mut whole = at_home(adapter, home, path, at.session)?;
    if let (Moving::Rewrite(statements), Some(mark)) = (moving, whole.mark.clone()) {
        whole.mark = Some(sessions.rewrite(mark, statements, at.folder)?);
    }
    if whole.reading.repeats {
        sessions.repair(path)?;
        return at_home(adapter, home, path, at.session);
    }
    Ok(whole)
}

/// Writes the file. An existing file is moved aside, never overwritten. Adds a final newline,
/// because the CLI would append its next line to an incomplete one.
fn put(to: &Path, bytes: &[u8]) -> io::Result<()> {
    let temp = to.with_extension("jsonl.rejoin-tmp");
    let mut file = foreign_file::create_temporary(&temp)?;
    io::Write::write_all(&mut file, bytes)?;
    if !bytes.ends_with(b"\n") {
        io::Write::write_all(&mut file, b"\n")?;
    }
    file.sync_all()?;
    if let Ok(meta) = fs_err::metadata(to) {
        let aside = format!("jsonl.aside-{}", meta.mtime());
        fs_err::rename(to, to.with_extension(aside))?;
    }
    fs_err::rename(&temp, to)
}

/// Removes a copy that cannot be used.
pub(super) fn remove(home: &Path, path: &str) {
    for ending in ["", "-wal", "-shm"] {
        let _gone = fs_err::remove_file(home.join(format!("{path}{ending}")));
    }
}
