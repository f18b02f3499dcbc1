//! Reads the CLI's session: messages and their parts, in a database that contains only this
//! session.

use rejoin_core::{Micros, ToolNote, strip};
use serde::Deserialize;
use serde_json::Value;

use super::tool::ToolPart;
use crate::session::{Emptied, ReadEntry, Reading, SessionReader, text_mark};

/// Query for one line per message, in the order in which the CLI replays them: by time, then by id.
/// Sub-agents have sessions of their own, with a parent. The cursor is the last confirmed message.
/// It is returned again, as the first line, which shows that no message was inserted before it. Its
/// session is the one to read: at a terminal, others can be begun beside it (`/new`). If it is gone
/// (`/undo`), messages with a greater id follow it, because ids begin with the time.
pub(super) const LINES: &str = "
    select json_object(
        'id', m.id,
        'session', m.session_id,
        'taken_back', s.revert is not null,
        'message', json(m.data),
        'parts', json((
            select json_group_array(json(p.data))
            from (select data from part where message_id = m.id order by id) p)))
    from message m join session s on s.id = m.session_id
    where s.parent_id is null
        and m.session_id = coalesce((select session_id from message where id = $1), m.session_id)
        and case when exists (select 1 from message where id = $1)
            then m.rowid >= (select rowid from message where id = $1)
            else m.id > $1 end
    order by m.time_created, m.id";

pub(super) const MOVE: &[&str] = &["update session set directory = $1 where directory <> $1"];

/// Statements that delete the origin of a fork, which is part of the copied database.
pub(super) const ALONE: &[&str] = &[
    "delete from part where session_id in (select id from session where parent_id is null and id <> $1)",
    "delete from message where session_id in (select id from session where parent_id is null and id <> $1)",
    "delete from session where parent_id is null and id <> $1",
];

/// Statements that prepare a session for a resume.
///
/// The CLI sorts messages by time and takes a message dated in the future for its newest: it then
/// ignores the prompt, or answers the old one forever. So all messages are moved back by the time
/// that the newest is ahead of this machine's clock, if it is.
///
/// Rules of a session follow those of the turn, so that they could permit what the turn does not:
/// only denials stay, written anew (of a key that appears twice, the CLI takes the last). `run`
/// permanently denies questions in the sessions it begins; the turn decides whether the model may
/// ask, so that denial is removed too.
///
/// The CLI starts a sub-agent that a message asks for and that has not run, with rules of its own.
/// Such a part becomes the text that the model would be told about it.
pub(super) const READY: &[&str] = &[
    "
    update message set
        time_created = time_created - ahead.by,
        data = json_set(data, '$.time.created', json_extract(data, '$.time.created') - ahead.by)
    from (select max(time_created) - cast($1 as integer) + 1 as by from message) as ahead
    where ahead.by > 0",
    "
    update session set permission = narrowed.rules
    from (
        select s.id as id, (
            select json_group_array(json_object(
                'permission', json_extract(rule.value, '$.permission'),
                'pattern', json_extract(rule.value, '$.pattern'),
                'action', 'deny'))
            from json_each(case when json_valid(s.permission)
                and json_type(s.permission) = 'array' then s.permission else '[]' end) as rule
            where rule.type = 'object'
                and json_extract(rule.value, '$.action') is 'deny'
                and json_extract(rule.value, '$.permission') is not 'question'
                and json_type(rule.value, '$.permission') is 'text'
                and json_type(rule.value, '$.pattern') is 'text') as rules
        from session s) as narrowed
    where session.id = narrowed.id and session.permission is not null
        and session.permission is not narrowed.rules",
    r"
    update part set data = json_object('type', 'text', 'synthetic', json('true'),
        'text', 'The following tool was executed by the user')
    where (data like '%subtask%' or data like '%\u%') and exists (
        select 1 from json_each(part.data) where value = 'subtask' and key <> 'text')",
];

/// Parts that are no conversation: accounts, whose server sends a configuration with plugins;
/// permissions given for good; links, to which every later message would be uploaded; workspaces,
/// which may lie on another machine; prompts that wait; commands that start a project.
pub(super) const FOREIGN: &[Emptied] = &[
    Emptied::Table("account_state"),
    Emptied::Table("account"),
    Emptied::Table("control_account"),
    Emptied::Table("credential"),
    Emptied::Table("permission"),
    Emptied::Table("project_directory"),
    Emptied::Table("session_input"),
    Emptied::Table("session_share"),
    Emptied::Table("workspace"),
    Emptied::Column("session", "share_url"),
    Emptied::Column("session", "workspace_id"),
    Emptied::Column("project", "commands"),
];

pub(super) struct Reader {
    cursor: Option<String>,
    /// True if the next line is the first, which must be the cursor's.
    first: bool,
    session: Option<String>,
    reading: Reading,
}

impl Reader {
    pub(super) fn new(cursor: Option<&str>) -> Self {
        Self {
            cursor: cursor.map(str::to_owned),
            first: true,
            session: None,
            reading: Reading {
                connected: true,
                only_added: cursor.is_some(),
                ..Reading::default()
            },
        }
    }
}

#[derive(Deserialize)]
struct Row {
    id: String,
    session: String,
    /// `/undo`: the CLI removes some messages of the session before it sends them to a model again.
    #[serde(default)]
    taken_back: u8,
    message: Message,
    #[serde(default)]
    parts: Vec<Value>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    #[serde(default)]
    summary: Value,
    mode: Option<String>,
    finish: Option<String>,
    error: Option<Value>,
    #[serde(rename = "providerID")]
    provider: Option<String>,
    #[serde(rename = "modelID")]
    model: Option<String>,
    cost: Option<f64>,
    #[serde(default)]
    time: Value,
}

impl Message {
    fn at(&self) -> Option<i64> {
        self.time["created"].as_i64()?.checked_mul(1000)
    }
}

impl SessionReader for Reader {
    fn line(&mut self, line: &[u8]) {
        let Ok(row) = serde_json::from_slice::<Row>(line) else {
            self.reading.damaged_lines += 1;
            return;
        };
        let known = self.session.get_or_insert_with(|| row.session.clone());
        self.reading.connected &= *known == row.session && row.taken_back == 0;
        let before = self.cursor.as_deref().filter(|_| self.first);
        self.first = false;
        if let Some(cursor) = before {
            self.reading.connected &= cursor == row.id;
            if cursor == row.id {
                self.reading.cursor = Some(row.id);
                return;
            }
        }
        let later = |cursor: &String| row.id > *cursor;
        self.reading.only_added &= self.cursor.as_ref().is_some_and(later);
        self.reading.cursor = Some(row.id.clone());
        if let Some(cost) = row.message.cost.and_then(Micros::from_dollars) {
            let so_far = self.reading.spent.map_or(0, |spent| spent.0);
            self.reading.spent = Some(Micros(so_far.saturating_add(cost.0)));
        }
        match row.message.role.as_str() {
            "user" => self.user(row.message.at(), &row.parts),
            "assistant" => self.assistant(row.message, row.parts),
            _ => self.reading.entries.push(ReadEntry::Synthetic),
        }
    }

    fn finish(mut self: Box<Self>) -> Reading {
        // The confirmed end no longer exists.
        self.reading.connected &= self.cursor.is_none() || !self.first;
        if self.reading.cursor.is_none() {
            self.reading.cursor = self.cursor;
        }
        self.reading
    }
}

impl Reader {
    fn user(&mut self, at: Option<i64>, parts: &[Value]) {
        if parts.iter().any(|part| part["type"] == "compaction") {
            self.reading.compacted = true;
            self.reading.summed_up = self.reading.entries.len();
        }
        let mut texts = parts.iter().filter(|part| is_said(part)).peekable();
        if texts.peek().is_none() {
            self.reading.entries.push(ReadEntry::Synthetic);
            return;
        }
        let text = texts.filter_map(|part| part["text"].as_str());
        let text = text.collect::<Vec<_>>().join("\n");
        let id = text_mark(&text);
        self.reading.prompts.push(id.clone());
        let text = strip(&text);
        self.reading
            .entries
            .push(ReadEntry::Prompt { id, text, at });
    }

    fn assistant(&mut self, message: Message, parts: Vec<Value>) {
        let at = message.at();
        let summary = message.summary == true || message.mode.as_deref() == Some("compaction");
        if summary {
            self.reading.compacted = true;
            self.reading.summed_up = self.reading.entries.len();
        }
        // The message is incomplete, so it is unknown how the CLI would replay it.
        self.reading.unfinished |= message.finish.is_none() && message.error.is_none();
        if let Some(provider) = message.provider {
            let model = message.model.map(|model| format!("{provider}/{model}"));
            self.reading.model = model.or(self.reading.model.take());
            self.reading.provider = Some(provider);
        }
        for part in parts {
            if part["type"] == "tool" {
                self.tool(part);
            } else if is_said(&part) && !summary && message.error.is_none() {
                let text = part["text"].as_str().unwrap_or_default().to_owned();
                self.reading.entries.push(ReadEntry::Answer { text, at });
            }
        }
        if summary || message.error.is_some() {
            self.reading.entries.push(ReadEntry::Synthetic);
        }
    }

    fn tool(&mut self, part: Value) {
        let Ok(part) = ToolPart::deserialize(part) else {
            self.reading.damaged_lines += 1;
            return;
        };
        self.reading.orphaned_calls += u64::from(!part.ended());
        let note: Option<ToolNote> = part.note();
        self.reading
            .entries
            .extend(note.clone().map(ReadEntry::Did));
        self.reading.begun.extend(note);
    }
}

/// True for text of a person or the model, false for the CLI's own.
fn is_said(part: &Value) -> bool {
    part["type"] == "text" && part["synthetic"] != true && part["ignored"] != true
}
