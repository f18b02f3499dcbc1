//! A connection to either engine: statements with values in, rows out.

pub(crate) mod sqlite;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sqlx::error::DatabaseError;
use sqlx::postgres::{PgArguments, PgConnection};
use sqlx::{Connection as _, Executor as _, Postgres, SqlSafeStr as _};

use crate::db::{Row, SqlValue};
use crate::error::{Error, Result};
use sqlite::Local;

/// Longer than the server lets any statement run. Only a server that died silently exceeds it.
const ANSWERS_WITHIN: Duration = Duration::from_secs(40);

/// Sent in one packet. The code relies on data that a transaction reads staying current: each store
/// has one writer at a time, so events become visible in the order of their numbers. The lock of a
/// dead client ends with its connection. The lock is named after a table, however the database was
/// reached.
const BEGIN_POSTGRES: &str = "begin; select pg_advisory_xact_lock(hashtextextended('rejoin', 'rejoin_schema'::regclass::oid::bigint))";

#[derive(Debug)]
pub(crate) enum Connection {
    Sqlite(Box<Local>),
    Postgres(Box<ServerConnection>),
}

/// A connection to a server.
#[derive(Debug)]
pub(crate) struct ServerConnection {
    pub(crate) line: PgConnection,
    /// Server and database, for display.
    pub(crate) place: Arc<str>,
}

impl Connection {
    pub(crate) async fn all(
        &mut self,
        sql: &'static str,
        values: Vec<SqlValue>,
    ) -> Result<Vec<Row>> {
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

    /// Runs a statement and returns the number of affected rows.
    pub(crate) async fn run(&mut self, sql: &'static str, values: Vec<SqlValue>) -> Result<u64> {
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

    /// Begins a transaction whose queries all see the store as it is at the first of them.
    pub(crate) async fn begin_reading(&mut self) -> Result<()> {
        let sql = match self {
            Self::Sqlite(_) => "begin deferred",
            Self::Postgres(_) => "begin isolation level repeatable read read only",
        };
        self.run(sql, vec![]).await.map(drop)
    }

    /// Prepares a statement. Ignores an error: it occurs again when the statement is used.
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

/// Yields now and then: a query to a file never waits, so the thread's other tasks would starve.
async fn others_too() {
    tokio::task::coop::consume_budget().await;
}

/// Waits for a server's answer, with a timeout.
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
    values: Vec<SqlValue>,
) -> sqlx::query::Query<'static, Postgres, PgArguments> {
    values
        .into_iter()
        .fold(sqlx::query(sql), |query, value| match value {
            SqlValue::Int(v) => query.bind(v),
            SqlValue::Text(v) => query.bind(v.map(escaped)),
            SqlValue::Bytes(v) => query.bind(v),
            SqlValue::Id(v) => query.bind(v),
        })
}

/// PostgreSQL text holds every character but NUL. NUL is stored as this escape character and `0`.
/// The escape character, which has no meaning anywhere, is stored as itself and `1`.
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

/// Returns true if the connection is lost, so that the state at its other end is unknown.
pub(crate) fn is_lost(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    match code {
        // Session ended by the server: administrator, crash, startup, or a time limit.
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
        // A sequence that was cut in the middle stays as it is.
        assert_eq!(unescaped(format!("a{ESCAPE}")), format!("a{ESCAPE}"));
    }
}
