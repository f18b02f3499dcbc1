//! Reads a whole session of the user's: what was said in it, and whether its CLI could go on with it.

use std::io;
use std::path::Path;

use rejoin_agents::{Adapter, Kept, OwnSessions, Reading, Said, SessionAt};
use rejoin_core::{FileMark, Role, SessionId};

use super::find::{Found, lines};
use crate::marks;
use crate::session::Sessions;
use crate::session::database::{self, Taking};

/// Forks of forks; more than anybody makes, and an end to those that go in circles.
const GENERATIONS: usize = 32;

/// A session as it was read.
pub(super) struct Whole {
    pub(super) reading: Reading,
    pub(super) said: Vec<Said>,
    /// Of a session that is a file.
    pub(super) mark: Option<FileMark>,
    /// Why it cannot be gone on with, in a few words.
    pub(super) trouble: Option<String>,
}

impl Whole {
    fn new(reading: Reading, mark: Option<FileMark>, lost: bool, session: &SessionId) -> Self {
        let said = reading.said();
        let named = reading.session.as_deref();
        let trouble = if lost {
            Some("the session it was forked from is not here".to_owned())
        } else if named.is_some_and(|named| named != session.as_str()) {
            Some("its file is that of another session".into())
        } else {
            trouble(&reading, &said)
        };
        Self {
            reading,
            said,
            mark,
            trouble,
        }
    }
}

fn trouble(reading: &Reading, said: &[Said]) -> Option<String> {
    let many = |n: u64, one: &str, more: &str| match n {
        1 => format!("1 {one}"),
        n => format!("{n} {more}"),
    };
    if reading.damaged_lines > 0 {
        let lines = many(reading.damaged_lines, "line", "lines");
        return Some(format!("{lines} of it cannot be read"));
    }
    if reading.orphaned_calls > 0 {
        let calls = many(reading.orphaned_calls, "tool call has", "tool calls have");
        return Some(format!("{calls} no result"));
    }
    if !reading.connected {
        return Some("it is not whole".into());
    }
    let unanswered = said.last().is_some_and(|last| last.role == Role::User);
    unanswered.then(|| "its last message has no answer".into())
}

/// The user's own, which stays as it is.
pub(super) async fn whole(
    adapter: &'static dyn Adapter,
    own: &OwnSessions,
    found: &Found,
) -> io::Result<Whole> {
    let session = &found.head.session;
    let file = found.home.join(&found.path);
    match &own.kept {
        Kept::Files { .. } if own.copied => {
            let mut reader = adapter.reader(None);
            let bytes = lines(adapter, &file)?;
            bytes
                .split(|b| *b == b'\n')
                .for_each(|line| reader.line(line));
            Ok(Whole::new(reader.finish(), None, false, session))
        }
        Kept::Files { .. } => in_place(adapter, found),
        Kept::Rows { copy, whole, .. } => {
            let temp = tempfile::tempdir()?;
            let taking = Taking {
                statements: copy,
                whole,
            };
            let to = temp.path().join("session.db");
            database::take_out(&file, &to, &taking, session.as_str()).await?;
            at_home(adapter, temp.path(), "session.db", session).await
        }
    }
}

/// One that lies where our own do.
pub(super) async fn at_home(
    adapter: &'static dyn Adapter,
    home: &Path,
    path: &str,
    session: &SessionId,
) -> io::Result<Whole> {
    let sessions = Sessions { adapter, home };
    let (mark, reading) = sessions.read_on(path, None, None).await?;
    Ok(Whole::new(reading, Some(mark), false, session))
}

/// With what came before it, where that is in another file.
fn in_place(adapter: &'static dyn Adapter, found: &Found) -> io::Result<Whole> {
    let session = &found.head.session;
    let mut reader = adapter.reader(None);
    let first = first_line(&found.home.join(&found.path))?;
    let before = adapter.ancestor(&first).map(|ancestor| {
        let mut before = vec![];
        let there = lineage(
            adapter,
            &found.home,
            &ancestor.session,
            ancestor.lines,
            0,
            &mut before,
        );
        (there, before)
    });
    let lost = before.as_ref().is_some_and(|(there, _)| !there);
    for line in before.into_iter().flat_map(|(_, lines)| lines) {
        reader.line(&line);
    }
    let mark = marks::read_on(&found.home, &found.path, None, |line| reader.line(line))?;
    Ok(Whole::new(reader.finish(), Some(mark), lost, session))
}

/// So many lines of a session, with those of its ancestors before it. False: some are not here.
fn lineage(
    adapter: &'static dyn Adapter,
    home: &Path,
    session: &SessionId,
    most: u64,
    generation: usize,
    into: &mut Vec<Vec<u8>>,
) -> bool {
    let at = SessionAt {
        folder: "",
        session,
        pin: "",
    };
    let path = Sessions { adapter, home }.locate(&at);
    let Some(file) = path
        .filter(|_| generation < GENERATIONS)
        .map(|p| home.join(p))
    else {
        return false;
    };
    let Ok(bytes) = fs_err::read(&file) else {
        return false;
    };
    let mut lines = bytes
        .split(|b| *b == b'\n')
        .filter(|line| !line.is_empty())
        .peekable();
    let ancestor = lines.peek().and_then(|first| adapter.ancestor(first));
    let there =
        ancestor.is_none_or(|a| lineage(adapter, home, &a.session, a.lines, generation + 1, into));
    into.extend(lines.map(<[u8]>::to_vec));
    let enough = into.len() as u64 >= most;
    into.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    there && enough
}

fn first_line(file: &Path) -> io::Result<Vec<u8>> {
    use io::BufRead as _;
    let mut line = vec![];
    io::BufReader::new(fs_err::File::open(file)?).read_until(b'\n', &mut line)?;
    Ok(line.strip_suffix(b"\n").map(<[u8]>::to_vec).unwrap_or(line))
}
