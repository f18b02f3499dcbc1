//! A session that is an SQLite file of its own. Its bytes are the main file alone, with the log
//! written into it: only then can they be hashed, copied and put back as one.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rejoin_core::{FileMark, SessionFact};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _};

use crate::marks;

pub(super) fn compare(home: &Path, mark: &FileMark) -> SessionFact {
    match fs_err::metadata(log_of(&home.join(&mark.path))) {
        Ok(log) if log.len() > 0 => return SessionFact::Changed,
        Ok(_) | Err(_) => {}
    }
    let fact = marks::compare(home, mark);
    // Pages are written anywhere: what has grown may still be what its CLI made of it.
    let path = home.join(&mark.path);
    let grown = fs_err::metadata(&path).is_ok_and(|now| now.len() > mark.length);
    if fact == SessionFact::Damaged && grown && is_database(&path) {
        return SessionFact::Changed;
    }
    fact
}

/// One text per row.
pub(super) async fn rows(
    path: &Path,
    query: &'static str,
    cursor: Option<&str>,
) -> io::Result<Vec<String>> {
    let mut at = open(path).await?;
    let found = sqlx::query(query)
        .bind(cursor.unwrap_or_default().to_owned())
        .fetch_all(&mut at)
        .await
        .map_err(io::Error::other)?;
    let rows = found
        .iter()
        .map(|row| row.try_get::<String, _>(0).map_err(io::Error::other))
        .collect();
    close(at).await?;
    rows
}

/// One text per row of a database that is not ours: nothing in it is changed, its log included.
pub(crate) async fn rows_of_others(path: &Path, query: &'static str) -> io::Result<Vec<String>> {
    let options = SqliteConnectOptions::new().filename(path).read_only(true);
    let mut at = options.connect().await.map_err(io::Error::other)?;
    let found = sqlx::query(query).fetch_all(&mut at).await;
    at.close().await.map_err(io::Error::other)?;
    let text = |row: &sqlx::sqlite::SqliteRow| row.try_get::<String, _>(0);
    let texts = found.map_err(io::Error::other)?;
    let texts = texts.iter().map(text).collect::<Result<_, _>>();
    texts.map_err(io::Error::other)
}

/// What is taken of a database that is not ours.
pub(crate) struct Taking {
    pub(crate) statements: &'static [&'static str],
    /// In the names of tables that are taken whole.
    pub(crate) whole: &'static str,
}

/// Makes a new database of a part of another, which is only read. `parameter`: of the statements.
pub(crate) async fn take_out(
    from: &Path,
    to: &Path,
    taking: &Taking,
    parameter: &str,
) -> io::Result<()> {
    // Else it would be made, empty.
    fs_err::metadata(from)?;
    let options = SqliteConnectOptions::new()
        .filename(to)
        .create_if_missing(true)
        .foreign_keys(false);
    let mut at = options.connect().await.map_err(io::Error::other)?;
    let done = take(&mut at, from, taking, parameter).await;
    at.close().await.map_err(io::Error::other)?;
    done.map_err(io::Error::other)
}

async fn take(
    at: &mut SqliteConnection,
    from: &Path,
    taking: &Taking,
    parameter: &str,
) -> sqlx::Result<()> {
    let escaped = from.to_string_lossy().replace('%', "%25");
    let escaped = escaped.replace('?', "%3f").replace('#', "%23");
    sqlx::query("attach database $1 as own")
        .bind(format!("file:{escaped}?mode=ro"))
        .execute(&mut *at)
        .await?;
    let mut tx = at.begin().await?;
    let made = "select name, sql from own.sqlite_master
        where sql is not null and name not like 'sqlite_%' and type in ('table', 'index')
        order by type desc";
    for row in sqlx::query(made).fetch_all(&mut *tx).await? {
        let (name, sql): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        sqlx::query(AssertSqlSafe(sql)).execute(&mut *tx).await?;
        if name.contains(taking.whole) && !name.contains('"') {
            let all = format!("insert or ignore into main.\"{name}\" select * from own.\"{name}\"");
            // An index has no rows.
            let _copied = sqlx::query(AssertSqlSafe(all)).execute(&mut *tx).await;
        }
    }
    for statement in taking.statements {
        let query = sqlx::query(AssertSqlSafe(*statement)).bind(parameter.to_owned());
        query.execute(&mut *tx).await?;
    }
    tx.commit().await?;
    sqlx::query("detach database own").execute(&mut *at).await?;
    Ok(())
}

/// Gives the number of rows that were changed.
pub(super) async fn rewrite(
    path: &Path,
    statements: &[&'static str],
    parameter: &str,
) -> io::Result<u64> {
    let mut at = open(path).await?;
    let mut tx = at.begin().await.map_err(io::Error::other)?;
    let mut changed = 0;
    for statement in statements {
        let query = sqlx::query(AssertSqlSafe(*statement)).bind(parameter.to_owned());
        let done = query.execute(&mut *tx).await.map_err(io::Error::other)?;
        changed += done.rows_affected();
    }
    tx.commit().await.map_err(io::Error::other)?;
    close(at).await?;
    Ok(changed)
}

/// Call when everything of the log is in the file.
pub(super) fn mark(home: &Path, path: &str) -> io::Result<FileMark> {
    marks::read_on(home, path, None, |_| {})
}

/// A copy, as confirmed or not at all.
pub(super) fn save(home: &Path, mark: &FileMark, to: &Path) -> io::Result<()> {
    fs_err::copy(home.join(&mark.path), to)?;
    same(to, mark)
}

pub(super) fn put_back(home: &Path, mark: &FileMark, saved: &Path) -> io::Result<FileMark> {
    let target = home.join(&mark.path);
    if marks::compare(home, mark) == SessionFact::Untouched && !log_of(&target).exists() {
        return Ok(mark.clone());
    }
    same(saved, mark)?;
    let temp = target.with_extension("db.rejoin-tmp");
    fs_err::copy(saved, &temp)?;
    fs_err::File::open(&temp)?.sync_all()?;
    // A log that outlived its file would be written into the one put back.
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

async fn open(path: &Path) -> io::Result<SqliteConnection> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false);
    options.connect().await.map_err(io::Error::other)
}

/// The log goes into the file, and is gone when the last connection closes.
async fn close(mut at: SqliteConnection) -> io::Result<()> {
    let done = sqlx::query("pragma wal_checkpoint(truncate)")
        .fetch_one(&mut at)
        .await
        .map_err(io::Error::other)?;
    let busy: i64 = done.try_get(0).map_err(io::Error::other)?;
    at.close().await.map_err(io::Error::other)?;
    if busy == 0 {
        return Ok(());
    }
    let text = "it is still being written";
    Err(io::Error::new(io::ErrorKind::ResourceBusy, text))
}

fn is_database(path: &Path) -> bool {
    let mut head = [0; 16];
    let file = fs_err::File::open(path);
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
