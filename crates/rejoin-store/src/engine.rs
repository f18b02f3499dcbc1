//! One connection, of either engine: statements with values in, rows out.

pub(crate) mod sqlite;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sqlx::error::DatabaseError;
use sqlx::postgres::{PgArguments, PgConnection};
use sqlx::{Connection as _, Executor as _, Postgres, SqlSafeStr as _};

use crate::db::{Row, Val};
use crate::error::{Error, Result};
use sqlite::Local;

/// Longer than the server lets any statement run: only a server that went without a word is silent
/// for so long.
const ANSWERS_WITHIN: Duration = Duration::from_secs(40);

/// In one packet. The code relies on it that what a transaction reads stays true: there is one
/// writer at a time per store, and so events become visible in the order of their numbers. A dead
/// client's lock goes with its connection. The lock is named after a table, however it was reached.
const BEGIN_POSTGRES: &str = "begin; select pg_advisory_xact_lock(hashtextextended('rejoin', 'rejoin_schema'::regclass::oid::bigint))";

#[derive(Debug)]
pub(crate) enum Connection {
    Sqlite(Box<Local>),
    Postgres(Box<Served>),
}

/// A connection to a server.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) line: PgConnection,
    /// Which server and database, for people.
    pub(crate) place: Arc<str>,
}

impl Connection {
    pub(crate) async fn all(&mut self, sql: &'static str, values: Vec<Val>) -> Result<Vec<Row>> {
        match self {
            Self::Sqlite(at) => {
                let found = at.all(sql, &values)?;
                others_too().await;
                Ok(found.into_iter().map(Row::Sqlite).collect())
            }
            Self::Postgres(at) => {
                let found = for_postgres(sql, values).fetch_all(&mut at.line);
                let found = answered(&at.place, found).await?;
                Ok(found.into_iter().map(Row::Postgres).collect())
            }
        }
    }

    /// Runs a change, says how many rows it met.
    pub(crate) async fn run(&mut self, sql: &'static str, values: Vec<Val>) -> Result<u64> {
        match self {
            Self::Sqlite(at) => {
                let done = at.run(sql, &values);
                others_too().await;
                done
            }
            Self::Postgres(at) => {
                let done = for_postgres(sql, values).execute(&mut at.line);
                Ok(answered(&at.place, done).await?.rows_affected())
            }
        }
    }

    /// Takes the engine's write lock at once.
    pub(crate) async fn begin(&mut self) -> Result<()> {
        match self {
            Self::Sqlite(at) => at.begin().await,
            Self::Postgres(at) => {
                let begun = sqlx::raw_sql(BEGIN_POSTGRES).execute(&mut at.line);
                answered(&at.place, begun).await.map(drop)
            }
        }
    }

    /// Gets a statement ready. What goes wrong goes wrong again when it is used.
    pub(crate) async fn plan(&mut self, sql: &'static str) {
        match self {
            Self::Sqlite(at) => at.plan(sql),
            Self::Postgres(at) => {
                let planned = at.line.prepare(sql.into_sql_str());
                drop(answered(&at.place, planned).await);
            }
        }
    }

    pub(crate) async fn close(self) {
        match self {
            Self::Sqlite(at) => at.close(),
            Self::Postgres(at) => drop(answered(&at.place, at.line.close()).await),
        }
    }
}

/// Nobody waits for a file: now and then the thread's other work has its turn.
async fn others_too() {
    tokio::task::coop::consume_budget().await;
}

/// What a server says, if it says something at all.
pub(crate) async fn answered<T>(
    place: &Arc<str>,
    asked: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T> {
    let answer = match tokio::time::timeout(ANSWERS_WITHIN, asked).await {
        Ok(answer) => answer,
        Err(_) => Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())),
    };
    answer.map_err(|error| Error::of_server(error, place))
}

fn for_postgres(
    sql: &'static str,
    values: Vec<Val>,
) -> sqlx::query::Query<'static, Postgres, PgArguments> {
    values
        .into_iter()
        .fold(sqlx::query(sql), |query, value| match value {
            Val::Int(v) => query.bind(v),
            Val::Text(v) => query.bind(v.map(escaped)),
            Val::Bytes(v) => query.bind(v),
            Val::Id(v) => query.bind(v),
        })
}

/// PostgreSQL's text holds every character but NUL. That one is written as two others, the first of
/// which, of no meaning anywhere, is written as two itself.
const ESCAPE: char = '\u{10fffd}';

fn escaped(text: String) -> String {
    if !text.contains(['\0', ESCAPE]) {
        return text;
    }
    let mut kept = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        match letter {
            '\0' => kept.extend([ESCAPE, '0']),
            ESCAPE => kept.extend([ESCAPE, '1']),
            _ => kept.push(letter),
        }
    }
    kept
}

pub(crate) fn unescaped(text: String) -> String {
    if !text.contains(ESCAPE) {
        return text;
    }
    let mut said = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let meant = match (letter, letters.peek()) {
            (ESCAPE, Some('0')) => Some('\0'),
            (ESCAPE, Some('1')) => Some(ESCAPE),
            _ => None,
        };
        if meant.is_some() {
            letters.next();
        }
        said.push(meant.unwrap_or(letter));
    }
    said
}

/// Nobody knows any more what goes on at its other end.
pub(crate) fn is_lost(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    match code {
        // Told to go, or no longer known: administrator, crash, start, and time limits of a session.
        Some(code) => {
            let ended = ["57P01", "57P02", "57P03", "57P05", "25P03", "25P04"];
            code.starts_with("08") || ended.contains(&code.as_ref())
        }
        None => matches!(
            error,
            sqlx::Error::Io(_)
                | sqlx::Error::Tls(_)
                | sqlx::Error::Protocol(_)
                | sqlx::Error::WorkerCrashed
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{ESCAPE, escaped, unescaped};

    #[test]
    fn every_text_comes_back() {
        let all = ["", "\0", "a\0b", "0", "1"].map(str::to_owned);
        let odd = [format!("{ESCAPE}"), format!("{ESCAPE}0\0{ESCAPE}{ESCAPE}1")];
        for text in all.into_iter().chain(odd) {
            let kept = escaped(text.clone());
            assert!(!kept.contains('\0'));
            assert_eq!(unescaped(kept), text);
        }
        // What was cut in the middle is shown as it is.
        assert_eq!(unescaped(format!("a{ESCAPE}")), format!("a{ESCAPE}"));
    }
}
