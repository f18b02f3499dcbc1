//! Reads the user's sessions from the database that they share.

use rejoin_core::{SessionId, strip};
use serde::Deserialize;

use super::IDS;
use crate::external::{HeaderReader, SessionHeader, first_words};

/// Query for the beginnings of sessions. Sub-agents have sessions of their own, with a parent. The
/// first message is a person's. The query uses only indexes (1.18.33).
pub(super) const HEADS: &str = "
    select json_object(
        'id', s.id,
        'directory', s.directory,
        'created', s.time_created,
        'updated', s.time_updated,
        'words', (
            select json_extract(p.data, '$.text')
            from part p
            where p.message_id = (
                    select m.id from message m where m.session_id = s.id
                    order by m.time_created, m.id limit 1)
                and json_extract(p.data, '$.type') = 'text'
                and coalesce(json_extract(p.data, '$.synthetic'), 0) = 0
            order by p.id limit 1))
    from session s
    where s.parent_id is null";

/// Statements that copy the data that a resume needs. Messages that the user took back, which the
/// CLI would remove only on a resume, are left out. A copy is not shared with other users.
pub(super) const COPY: &[&str] = &[
    "insert into main.project select * from own.project
        where id = (select project_id from own.session where id = $1)",
    "insert into main.session select * from own.session where id = $1",
    "insert into main.message select * from own.message where session_id = $1 order by rowid",
    "insert into main.part select * from own.part where session_id = $1 order by rowid",
    "insert into main.todo select * from own.todo where session_id = $1",
    "delete from main.part where json_extract(
            (select revert from main.session where id = $1), '$.partID') <= id",
    "delete from main.part where message_id in (select m.id from main.message m
        join main.session s on s.id = $1
        where m.id > json_extract(s.revert, '$.messageID')
            or (m.id = json_extract(s.revert, '$.messageID')
                and json_extract(s.revert, '$.partID') is null))",
    "delete from main.message where id in (select m.id from main.message m
        join main.session s on s.id = $1
        where m.id > json_extract(s.revert, '$.messageID')
            or (m.id = json_extract(s.revert, '$.messageID')
                and json_extract(s.revert, '$.partID') is null))",
    "update main.session set revert = null, share_url = null, workspace_id = null where id = $1",
];

#[derive(Default)]
pub(super) struct Header {
    row: Option<Row>,
}

#[derive(Deserialize)]
struct Row {
    id: String,
    directory: Option<String>,
    created: Option<i64>,
    updated: Option<i64>,
    words: Option<String>,
}

impl HeaderReader for Header {
    fn line(&mut self, line: &[u8]) -> bool {
        self.row = serde_json::from_slice(line).ok();
        true
    }

    fn finish(self: Box<Self>) -> Option<SessionHeader> {
        let row = self.row?;
        let micros = |at: Option<i64>| at?.checked_mul(1000);
        let session = SessionId::new(row.id).ok()?;
        IDS.accept(&session).then_some(SessionHeader {
            session,
            folder: row.directory,
            words: first_words(&strip(&row.words?)),
            began: micros(row.created),
            used: micros(row.updated),
        })
    }
}
