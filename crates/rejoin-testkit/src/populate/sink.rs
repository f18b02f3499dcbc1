//! Targets for rows: a file, or a server by `copy`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};
use uuid::Uuid;

/// Tables: their columns in the order of the generated rows, then columns and values that are the
/// same in every row.
const TABLES: [(&str, &str, &str, &str); 7] = [
    (
        "conversations",
        "id, handle, key, title, agent, workdir, permission, scope, settings, created_at, updated_at, namespace, cost",
        "",
        "",
    ),
    (
        "messages",
        "id, conversation_id, turn_id, seq, role, agent, text, value_full, digest, created_at, n",
        "attachments, state, origin, edited, trail, value_run",
        "'[]', 'ok', 'rejoin', 0, '[]', value_full",
    ),
    (
        "turns",
        "id, conversation_id, message_id, reply_id, agent, request, record, usage, cost, summary, created_at, started_at, ended_at, namespace",
        "status, fence, cancel, verdict, denied, saved, machine",
        "'succeeded', 1, 0, 'resumed', '[]', 'saved', 'made'",
    ),
    (
        "attempts",
        "turn_id, session_id, pin_id, prompt_id",
        "n, verdict, status, plan, spool",
        "1, 'resumed', 'succeeded', '{}', 0",
    ),
    ("events", "conversation_id, turn_id, at, type, body", "", ""),
    (
        "pins",
        "id, conversation_id, agent, session_id, state, retired_why, failures, created_at, updated_at",
        "",
        "",
    ),
    (
        "snapshots",
        "id, conversation_id, pin_id, agent, session_id, value, digest, taken_at",
        "state, messages, last_seq, length, added, machine, kept",
        "'confirmed', 0, 0, 0, 0, 'made', 0",
    ),
];

/// A value of a row.
#[derive(Debug, Clone)]
pub enum Cell {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
    Id(Uuid),
}

macro_rules! cell_from {
    ($($from:ty => |$v:ident| $make:expr;)+) => {
        $(impl From<$from> for Cell {
            fn from($v: $from) -> Self { $make }
        })+
    };
}

cell_from! {
    i64 => |v| Cell::Int(v);
    &str => |v| Cell::Text(v.to_owned());
    String => |v| Cell::Text(v);
    Option<String> => |v| v.map_or(Cell::Null, Cell::Text);
    Vec<u8> => |v| Cell::Bytes(v);
    Uuid => |v| Cell::Id(v);
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(v) => ValueRef::Integer(*v),
            Self::Text(v) => ValueRef::Text(v.as_bytes()),
            Self::Bytes(v) => ValueRef::Blob(v),
            Self::Id(v) => ValueRef::Blob(v.as_bytes()),
        }))
    }
}

/// A database file. Its triggers are removed while it is filled.
pub(super) struct File {
    at: Connection,
    triggers: Vec<String>,
}

impl File {
    pub(super) fn open(file: &Path) -> rusqlite::Result<Self> {
        let at = Connection::open(file)?;
        at.execute_batch("pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -200000; begin")?;
        let mut found = at.prepare("select name, sql from sqlite_master where type = 'trigger'")?;
        let rows = found.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let rows: Vec<(String, String)> = rows.collect::<rusqlite::Result<_>>()?;
        drop(found);
        for (name, _) in &rows {
            at.execute_batch(&format!("drop trigger {name}"))?;
        }
        at.set_prepared_statement_cache_capacity(TABLES.len());
        let triggers = rows.into_iter().map(|(_, sql)| sql).collect();
        Ok(Self { at, triggers })
    }

    pub(super) fn put(&mut self, table: &'static str, row: &[Cell]) -> rusqlite::Result<()> {
        let (_, columns, more, same) = TABLES.iter().find(|it| it.0 == table).unwrap();
        let same = same.replace("value_full", &format!("?{}", value_full(columns)));
        let marks: Vec<String> = (1..=row.len()).map(|n| format!("?{n}")).collect();
        let comma = if more.is_empty() { "" } else { ", " };
        let sql = format!(
            "insert into {table} ({columns}{comma}{more}) values ({}{comma}{same})",
            marks.join(", ")
        );
        let mut insert = self.at.prepare_cached(&sql)?;
        insert.execute(params_from_iter(row)).map(drop)
    }

    pub(super) fn finish(self) -> rusqlite::Result<()> {
        self.at.execute_batch(
            "insert into spaces (name, base) select namespace, (row_number() over (order by namespace) - 1) * 1099511627776
                from conversations group by namespace;
            update messages set space = coalesce('by' || hex(agent), ''), n = n + (select s.base
                from conversations c join spaces s on s.name = c.namespace where c.id = messages.conversation_id);
            insert into messages_text (messages_text) values ('rebuild');
            update counts set value = (select count(*) from conversations) where name = 'conversations';
            update counts set value = (select count(*) from snapshots) where name = 'snapshots';",
        )?;
        for sql in &self.triggers {
            self.at.execute_batch(sql)?;
        }
        self.at.execute_batch("commit; pragma journal_mode = wal")
    }
}

/// Returns the number of this column.
fn value_full(columns: &str) -> usize {
    let place = columns.split(", ").position(|it| it == "value_full");
    place.map_or(0, |place| place + 1)
}

/// A server, and a schema on it. The user in `url` must be allowed to switch triggers off.
#[derive(Debug, Clone)]
pub struct Server {
    pub url: String,
    /// Schema of the store.
    pub schema: String,
}

/// Rows to be sent to a server, in a file per table.
pub(super) struct Copy<'a> {
    server: &'a Server,
    folder: tempfile::TempDir,
    files: BTreeMap<&'static str, BufWriter<fs_err::File>>,
    rows: usize,
}

/// Number of rows per transfer.
const AT_ONCE: usize = 400_000;

impl<'a> Copy<'a> {
    pub(super) fn new(server: &'a Server) -> io::Result<Self> {
        let copy = Self {
            server,
            folder: tempfile::tempdir()?,
            files: BTreeMap::new(),
            rows: 0,
        };
        for (table, _, more, same) in TABLES {
            let defaults = more.split(", ").zip(same.split(", "));
            let mut sql = String::new();
            for (column, value) in
                defaults.filter(|(column, _)| !column.is_empty() && *column != "value_run")
            {
                let _infallible = write!(
                    sql,
                    "alter table {table} alter {column} set default {value};"
                );
            }
            copy.psql(&sql)?;
        }
        Ok(copy)
    }

    pub(super) fn put(&mut self, table: &'static str, row: &[Cell]) -> io::Result<()> {
        if !self.files.contains_key(table) {
            let file = fs_err::File::create(self.path(table))?;
            self.files.insert(table, BufWriter::new(file));
        }
        let mut line = String::new();
        // A server numbers messages by itself.
        let row = if table == "messages" {
            &row[..row.len() - 1]
        } else {
            row
        };
        for (n, cell) in row.iter().enumerate() {
            line.push_str(if n > 0 { "\t" } else { "" });
            match cell {
                Cell::Null => line.push_str("\\N"),
                Cell::Int(v) => line.push_str(&v.to_string()),
                Cell::Text(v) => line.push_str(
                    &v.replace('\\', "\\\\")
                        .replace('\n', "\\n")
                        .replace('\t', "\\t"),
                ),
                Cell::Bytes(v) => {
                    line.push_str("\\\\x");
                    for byte in v {
                        let _infallible = write!(line, "{byte:02x}");
                    }
                }
                Cell::Id(v) => line.push_str(&v.to_string()),
            }
        }
        line.push('\n');
        self.files
            .get_mut(table)
            .unwrap()
            .write_all(line.as_bytes())?;
        self.rows += 1;
        if self.rows >= AT_ONCE {
            self.send()?;
        }
        Ok(())
    }

    fn send(&mut self) -> io::Result<()> {
        for (table, columns, _, _) in TABLES {
            let Some(mut file) = self.files.remove(table) else {
                continue;
            };
            file.flush()?;
            let columns = columns.trim_end_matches(", n");
            let path = self.path(table);
            let path = path.display();
            self.psql(&format!(
                "set session_replication_role = replica;\n\\copy {table} ({columns}) from '{path}'"
            ))?;
        }
        self.rows = 0;
        Ok(())
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.send()?;
        let mut sql =
            String::from("update messages set value_run = value_full where value_run is null;");
        for (table, _, more, _) in TABLES {
            for column in more
                .split(", ")
                .filter(|it| !it.is_empty() && *it != "value_run")
            {
                let _infallible = write!(sql, "alter table {table} alter {column} drop default;");
            }
        }
        self.psql(&sql)?;
        self.psql("select rejoin_index_words(); vacuum analyze")
    }

    fn path(&self, table: &str) -> PathBuf {
        self.folder.path().join(table)
    }

    fn psql(&self, sql: &str) -> io::Result<()> {
        let sql = format!("set search_path = {};\n{sql}\n", self.server.schema);
        let script = self.folder.path().join("script");
        fs_err::write(&script, sql)?;
        let done = Command::new("psql")
            .args([
                "-q",
                "-X",
                "-v",
                "ON_ERROR_STOP=1",
                "-d",
                &self.server.url,
                "-f",
            ])
            .arg(&script)
            .output()?;
        if done.status.success() {
            return Ok(());
        }
        Err(io::Error::other(
            String::from_utf8_lossy(&done.stderr).into_owned(),
        ))
    }
}
