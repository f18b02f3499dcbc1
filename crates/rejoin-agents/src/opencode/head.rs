//! Sessions in the database that all of the user's share.

use rejoin_core::{SessionId, strip};
use serde::Deserialize;

use super::OpenCode;
use crate::adapter::Adapter;
use crate::outside::{HeadReader, SessionHead, first_words};

/// Sub-agents have sessions of their own, with a parent. The first message is a person's; only
/// indexes are walked (1.18.33).
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

/// What a resume needs. What the user took back, and what only then would be removed, is left out;
/// a copy is not shared with anybody.
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
pub(super) struct Head {
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

impl HeadReader for Head {
    fn line(&mut self, line: &[u8]) -> bool {
        self.row = serde_json::from_slice(line).ok();
        true
    }

    fn finish(self: Box<Self>) -> Option<SessionHead> {
        let row = self.row?;
        let micros = |at: Option<i64>| at?.checked_mul(1000);
        let session = SessionId::new(row.id).ok()?;
        OpenCode.is_session_id(&session).then_some(SessionHead {
            session,
            folder: row.directory,
            words: first_words(&strip(&row.words?)),
            began: micros(row.created),
            used: micros(row.updated),
        })
    }
}
