//! Session that is an SQLite file of its own. Its bytes are the main file alone, with the log
//! written into it: only then can they be hashed, copied and restored as one.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rejoin_agents::Emptied;
use rejoin_core::{FileMark, SessionFact};
use rusqlite::{Connection, OpenFlags, Params, Statement, TransactionBehavior, params_from_iter};

use crate::foreign_file;
use crate::marks;

/// Time to wait for a lock. The process that wrote the session is gone or idle; everything else
/// waits meanwhile.
const BUSY: Duration = Duration::from_secs(1);

pub(super) fn compare(home: &Path, mark: &FileMark) -> SessionFact {
    match fs_err::metadata(log_of(&home.join(&mark.path))) {
        Ok(log) if log.len() > 0 => return SessionFact::Changed,
        Ok(_) | Err(_) => {}
    }
    let fact = marks::compare(home, mark);
    // SQLite writes pages anywhere in the file, so a larger file may be a valid continuation.
    let path = home.join(&mark.path);
    let grown = fs_err::metadata(&path).is_ok_and(|now| now.len() > mark.length);
    if fact == SessionFact::Damaged && grown && is_database(&path) {
        return SessionFact::Changed;
    }
    fact
}

/// Passes the text of each row to `row`, one after the other: together they may be larger than
/// memory.
pub(super) fn rows(
    path: &Path,
    query: &'static str,
    cursor: Option<&str>,
    mut row: impl FnMut(&[u8]),
) -> io::Result<()> {
    let at = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let read = each(&at, query, cursor.unwrap_or_default(), &mut row).map_err(io::Error::other);
    close(at)?;
    read
}

fn each(
    at: &Connection,
    query: &str,
    parameter: &str,
    row: &mut impl FnMut(&[u8]),
) -> rusqlite::Result<()> {
    let mut statement = at.prepare(query)?;
    let values = wherever(parameter, &statement);
    let mut found = statement.query(values)?;
    while let Some(next) = found.next()? {
        row(next.get_ref(0)?.as_str()?.as_bytes());
    }
    Ok(())
}

/// Returns one text per row of a database that is not ours, without changing it or its log.
pub(crate) fn rows_of_others(path: &Path, query: &'static str) -> io::Result<Vec<String>> {
    let at = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    texts(&at, query, "").map_err(io::Error::other)
}

fn texts(at: &Connection, query: &str, parameter: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = at.prepare(query)?;
    let values = wherever(parameter, &statement);
    let found = statement.query_map(values, |row| row.get(0))?;
    found.collect()
}

/// Repeats the parameter for every placeholder of the statement.
fn wherever<'a>(parameter: &'a str, statement: &Statement<'_>) -> impl Params + use<'a> {
    params_from_iter(std::iter::repeat_n(parameter, statement.parameter_count()))
}

/// Part of a foreign database to copy.
pub(crate) struct Taking {
    pub(crate) statements: &'static [&'static str],
    /// Text in the names of tables that are copied completely.
    pub(crate) whole: &'static str,
}

/// Creates a new database from a part of another, which is only read. `parameter` is passed to the
/// statements.
pub(crate) fn take_out(from: &Path, to: &Path, taking: &Taking, parameter: &str) -> io::Result<()> {
    // Without this check, SQLite would create an empty file.
    fs_err::metadata(from)?;
    let make = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let mut at = open(to, make | OpenFlags::SQLITE_OPEN_URI)?;
    take(&mut at, from, taking, parameter).map_err(io::Error::other)
}

fn take(
    at: &mut Connection,
    from: &Path,
    taking: &Taking,
    parameter: &str,
) -> rusqlite::Result<()> {
    at.pragma_update(None, "foreign_keys", false)?;
    let escaped = from.to_string_lossy().replace('%', "%25");
    let escaped = escaped.replace('?', "%3f").replace('#', "%23");
    let from = format!("file:{escaped}?mode=ro");
    at.execute("attach database $1 as own", [from])?;
    let tx = at.transaction()?;
    let made = "select name, sql from own.sqlite_master
        where sql is not null and name not like 'sqlite_%' and type in ('table', 'index')
        order by type desc";
    let made: Vec<(String, String)> = tx
        .prepare(made)?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (name, sql) in made {
        tx.execute_batch(&sql)?;
        if name.contains(taking.whole) && !name.contains('"') {
            let all = format!("insert or ignore into main.\"{name}\" select * from own.\"{name}\"");
            // An index has no rows.
            let _copied = tx.execute(&all, []);
        }
    }
    change(&tx, taking.statements, parameter)?;
    tx.commit()?;
    at.execute_batch("detach database own")
}

/// Empties these parts and runs the statements, in one transaction. Returns the number of rows that
/// were changed. Fails if the database would change them back.
pub(super) fn rewrite(
    path: &Path,
    foreign: &[Emptied],
    statements: &[&'static str],
    parameter: &str,
) -> io::Result<u64> {
    let mut at = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    if acts(&at).map_err(io::Error::other)? {
        let text = "it has triggers, views or rules for conflicts, which no session has";
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let changed = rewritten(&mut at, foreign, statements, parameter).map_err(io::Error::other)?;
    close(at)?;
    Ok(changed)
}

/// Returns true if the database does more than it is told: a trigger or a rule for conflicts could
/// undo a change, and a view could stand in the place of a table.
fn acts(at: &Connection) -> rusqlite::Result<bool> {
    let sql = "select exists (select 1 from sqlite_master
        where type not in ('table', 'index') or sql like '%conflict%')";
    at.query_row(sql, [], |row| row.get(0))
}

fn rewritten(
    at: &mut Connection,
    foreign: &[Emptied],
    statements: &[&str],
    parameter: &str,
) -> rusqlite::Result<u64> {
    let tx = at.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut changed = 0;
    for part in foreign {
        changed += empty(&tx, *part)?;
    }
    changed += change(&tx, statements, parameter)?;
    tx.commit()?;
    Ok(changed)
}

/// Empties a part of the database. Another version of the CLI may not have it.
fn empty(at: &Connection, part: Emptied) -> rusqlite::Result<u64> {
    let (table, column, sql) = match part {
        Emptied::Table(table) => (table, "%", format!("delete from \"{table}\"")),
        Emptied::Column(table, column) => (
            table,
            column,
            format!("update \"{table}\" set \"{column}\" = null where \"{column}\" is not null"),
        ),
    };
    // Generated columns too: they cannot be changed, which fails.
    let known = "select exists (select 1 from pragma_table_xinfo($1) where name like $2)";
    if !at.query_row(known, [table, column], |row| row.get::<_, bool>(0))? {
        return Ok(0);
    }
    Ok(at.execute(&sql, [])? as u64)
}

fn change(at: &Connection, statements: &[&str], parameter: &str) -> rusqlite::Result<u64> {
    let mut changed = 0;
    for statement in statements {
        let mut statement = at.prepare(statement)?;
        let values = wherever(parameter, &statement);
        changed += statement.execute(values)? as u64;
    }
    Ok(changed)
}

/// Marks the file. Must be called when the whole log is written into it.
pub(super) fn mark(home: &Path, path: &str) -> io::Result<FileMark> {
    marks::read_on(home, path, None, |_| {})
}

/// Copies the file. Fails if the copy does not match the mark.
pub(super) fn save(home: &Path, mark: &FileMark, to: &Path) -> io::Result<()> {
    foreign_file::copy(&home.join(&mark.path), to)?;
    same(to, mark)
}

pub(super) fn put_back(home: &Path, mark: &FileMark, saved: &Path) -> io::Result<FileMark> {
    let target = foreign_file::beneath(home, &mark.path)?;
    if marks::compare(home, mark) == SessionFact::Untouched && !log_of(&target).exists() {
        return Ok(mark.clone());
    }
    same(saved, mark)?;
    let temp = target.with_extension("db.rejoin-tmp");
    foreign_file::copy(saved, &temp)?;
    fs_err::File::open(&temp)?.sync_all()?;
    // A log that outlived its file would be applied to the restored one.
    for beside in ["-wal", "-shm"] {
        match fs_err::remove_file(beside_it(&target, beside)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    fs_err::rename(&temp, &target)?;
    self::mark(home, &mark.path)
}

fn same(copy: &Path, mark: &FileMark) -> io::Result<()> {
    let (folder, name) = (copy.parent(), copy.file_name().and_then(|n| n.to_str()));
    let found = match (folder, name) {
        (Some(folder), Some(name)) => marks::read_on(folder, name, None, |_| {})?,
        _ => return Err(io::Error::other("it has no name")),
    };
    if (found.length, &found.hash) == (mark.length, &mark.hash) {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidData,
        "its saved copy is not what was confirmed",
    ))
}

#[expect(clippy::disallowed_methods, reason = "this is the place for sessions")]
fn open(path: &Path, flags: OpenFlags) -> io::Result<Connection> {
    // A new database has no file yet.
    if fs_err::metadata(path).is_ok() {
        foreign_file::open(path)?;
    }
    let at = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(io::Error::other)?;
    at.busy_timeout(BUSY).map_err(io::Error::other)?;
    Ok(at)
}

/// Writes the log into the file and closes the connection; SQLite removes the log with the last
/// connection.
fn close(at: Connection) -> io::Result<()> {
    let busy: i64 = at
        .query_row("pragma wal_checkpoint(truncate)", [], |row| row.get(0))
        .map_err(io::Error::other)?;
    at.close().map_err(|(_, error)| io::Error::other(error))?;
    if busy == 0 {
        return Ok(());
    }
    let text = "it is still being written";
    Err(io::Error::new(io::ErrorKind::ResourceBusy, text))
}

fn is_database(path: &Path) -> bool {
    let mut head = [0; 16];
    let file = foreign_file::open(path);
    file.and_then(|mut file| file.read_exact(&mut head)).is_ok() && &head == b"SQLite format 3\0"
}

fn log_of(path: &Path) -> PathBuf {
    beside_it(path, "-wal")
}

pub(crate) fn beside_it(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
