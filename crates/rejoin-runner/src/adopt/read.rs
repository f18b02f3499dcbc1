//! Reads a whole session of the user: its messages, and if its CLI could resume it.

use std::io;
use std::path::Path;

use rejoin_agents::{Adapter, Reading, SessionAt, SessionMessage, SessionStorage, UserSessions};
use rejoin_core::{FileMark, Role, SessionId};

use super::find::{BEGINNING, Found, lines};
use crate::foreign_file;
use crate::marks;
use crate::session::Sessions;
use crate::session::checked::Checked;
use crate::session::database::{self, Taking};

/// Limit for forks of forks: more than users make, and an end to circular references.
const GENERATIONS: usize = 32;

/// Session after reading.
pub(super) struct Whole {
    pub(super) reading: Reading,
    pub(super) said: Vec<SessionMessage>,
    /// Mark of the session, if it is a file.
    pub(super) mark: Option<FileMark>,
    /// Reason why it cannot be resumed, in a few words.
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

fn trouble(reading: &Reading, said: &[SessionMessage]) -> Option<String> {
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
    if let Some(why) = reading.refused {
        return Some(why.into());
    }
    if !reading.connected {
        return Some("it is not whole".into());
    }
    let unanswered = said.last().is_some_and(|last| last.role == Role::User);
    unanswered.then(|| "its last message has no answer".into())
}

/// Reads a session of the user, which stays as it is.
pub(super) fn whole(
    adapter: &'static dyn Adapter,
    own: &UserSessions,
    found: &Found,
) -> io::Result<Whole> {
    let session = &found.head.session;
    let file = found.home.join(&found.path);
    match &own.kept {
        SessionStorage::Files { .. } if own.copied => {
            let mut reader = Checked::new(adapter, None);
            let bytes = lines(adapter, &file)?;
            bytes
                .split(|b| *b == b'\n')
                .for_each(|line| reader.line(line));
            Ok(Whole::new(reader.finish(), None, false, session))
        }
        SessionStorage::Files { .. } => in_place(adapter, found),
        SessionStorage::Rows { copy, whole, .. } => {
            let temp = tempfile::tempdir()?;
            let taking = Taking {
                statements: copy,
                whole,
            };
            let to = temp.path().join("session.db");
            database::take_out(&file, &to, &taking, session.as_str())?;
            at_home(adapter, temp.path(), "session.db", session)
        }
    }
}

/// Reads a session that is at the place of our own.
pub(super) fn at_home(
    adapter: &'static dyn Adapter,
    home: &Path,
    path: &str,
    session: &SessionId,
) -> io::Result<Whole> {
    let sessions = Sessions { adapter, home };
    let (mark, reading) = sessions.read_on(path, None, None)?;
    Ok(Whole::new(reading, Some(mark), false, session))
}

/// Reads a session together with the sessions that it was forked from, if those are in other files.
fn in_place(adapter: &'static dyn Adapter, found: &Found) -> io::Result<Whole> {
    let session = &found.head.session;
    let mut reader = adapter.reader(None);
    let first = first_line(&found.home.join(&found.path))?;
    let adopt = adapter.capabilities().adopt;
    let ancestor = adopt.and_then(|adopt| adopt.ancestor(&first));
    let before = ancestor.map(|ancestor| {
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

/// Collects the first `most` lines of a session, after those of its ancestors. Returns false if
/// some are missing.
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
    let Ok(bytes) = foreign_file::read_regular(&file, foreign_file::SESSION) else {
        return false;
    };
    let mut lines = bytes
        .split(|b| *b == b'\n')
        .filter(|line| !line.is_empty())
        .peekable();
    let adopt = adapter.capabilities().adopt;
    let ancestor = adopt.and_then(|adopt| adopt.ancestor(lines.peek()?));
    let there =
        ancestor.is_none_or(|a| lineage(adapter, home, &a.session, a.lines, generation + 1, into));
    into.extend(lines.map(<[u8]>::to_vec));
    let enough = into.len() as u64 >= most;
    into.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    there && enough
}

fn first_line(file: &Path) -> io::Result<Vec<u8>> {
    use io::{BufRead as _, Read as _};
    let mut line = vec![];
    let beginning = foreign_file::open(file)?.take(BEGINNING);
    io::BufReader::new(beginning).read_until(b'\n', &mut line)?;
    Ok(line.strip_suffix(b"\n").map(<[u8]>::to_vec).unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use rejoin_agents::adapter;

    use super::super::find;
    use super::*;

    const TABLES: &str = "
        pragma journal_mode = wal;
        create table project (id text primary key);
        create table session (id text primary key, project_id text not null, parent_id text,
            directory text, revert text, share_url text, workspace_id text,
            time_created integer, time_updated integer);
        create table message (id text primary key, session_id text, time_created integer, data text);
        create index message_of on message (session_id, time_created, id);
        create table part (id text primary key, message_id text, session_id text, data text);
        create table todo (session_id text, content text);
        create table migration (id text primary key);
        insert into migration values ('m-1');
        insert into project values ('p');
        insert into session values ('ses_aaaaaaaaaaaa', 'p', null, '/w', null, 'x', null, 1, 2);
        insert into session values ('ses_bbbbbbbbbbbb', 'p', null, '/w',
            '{\"messageID\":\"msg_b3\"}', null, null, 1, 3);
        insert into session values ('ses_cccccccccccc', 'p', 'ses_aaaaaaaaaaaa', '/w', null, null, null, 1, 2);";

    fn said(session: &str, id: &str, at: i64, role: &str, text: &str) -> String {
        format!(
            "insert into message values ('msg_{id}', '{session}', {at},
                '{{\"role\":\"{role}\",\"finish\":\"stop\",\"time\":{{\"created\":{at}}}}}');
            insert into part values ('prt_{id}', 'msg_{id}', '{session}',
                '{{\"type\":\"text\",\"text\":\"{text}\"}}');"
        )
    }

    /// Each session is copied out of the database that holds them all, without the messages that
    /// its user undid, and the database stays as it is.
    #[test]
    fn one_session_of_many() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("opencode.db");
        #[expect(clippy::disallowed_methods, reason = "as the CLI makes one")]
        let db = rusqlite::Connection::open(&file).unwrap();
        let (a, b, c) = ("ses_aaaaaaaaaaaa", "ses_bbbbbbbbbbbb", "ses_cccccccccccc");
        let rows = [
            said(a, "a1", 10, "user", "one"),
            said(b, "b1", 10, "user", "two"),
            said(a, "a2", 20, "assistant", "uno"),
            said(b, "b2", 20, "assistant", "due"),
            said(b, "b3", 30, "user", "taken back"),
            said(b, "b4", 40, "assistant", "gone"),
            said(c, "c1", 10, "user", "of a sub-agent"),
        ];
        let all = format!("{TABLES}{}", rows.concat());
        db.execute_batch(&all).unwrap();
        let log = home.path().join("opencode.db-wal");
        let before = (fs_err::read(&file).unwrap(), fs_err::read(&log).unwrap());

        let opencode = adapter("opencode").unwrap();
        let adopt = opencode.capabilities().adopt.unwrap();
        let mut own = adopt.own_sessions(&|_| Some("/h".into()), None).unwrap();
        own.home = home.path().to_owned();
        let found = find::sessions(opencode, &own, Some("/w"));
        let ids: Vec<&str> = found.iter().map(|f| f.head.session.as_str()).collect();
        assert_eq!(ids, [b, a]);
        let mut told = vec![];
        for found in &found {
            let whole = whole(opencode, &own, found).unwrap();
            assert_eq!(whole.trouble, None);
            told.push(
                whole
                    .said
                    .iter()
                    .map(|s| s.text.clone())
                    .collect::<Vec<_>>(),
            );
        }
        assert_eq!(told, [["two", "due"], ["one", "uno"]]);
        let after = (fs_err::read(&file).unwrap(), fs_err::read(&log).unwrap());
        assert!(before == after, "the database was written to");
        db.close().unwrap();
    }
}
