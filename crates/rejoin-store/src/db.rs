//! The waist: values in, rows out, one SQL text for every engine. A new engine is a variant here, a
//! folder of migrations and a line in `open.rs`; nothing above this file knows which one it is.

use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::de::DeserializeOwned;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{ConnectOptions as _, Row as _, Sqlite, SqlitePool};
use uuid::Uuid;

use crate::error::{Error, Result};

/// A store that is open.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) writer: SqlitePool,
    pub(crate) readers: Arc<Readers>,
}

impl Store {
    /// A write transaction. It takes the engine's write lock at once, so what it reads stays true.
    pub async fn begin(&self) -> Result<Tx> {
        let inner = self.writer.begin_with("begin immediate").await?;
        Ok(Tx { inner })
    }

    /// A connection for looking only.
    pub async fn read(&self) -> Result<Read> {
        let idle = self.readers.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.readers.options.connect().await?,
        };
        Ok(Read {
            connection: Some(connection),
            home: Arc::clone(&self.readers),
        })
    }

    /// Waits until everything is closed. A command need not: what is committed is kept.
    pub async fn close(&self) {
        self.readers.idle().clear();
        self.writer.close().await;
    }
}

/// Idle readers kept open.
const KEPT: usize = 4;

/// Connections nobody reads from right now. Given back at once, unlike to a pool, which takes its
/// time: so a command makes do with one.
#[derive(Debug)]
pub(crate) struct Readers {
    pub(crate) options: SqliteConnectOptions,
    pub(crate) idle: Mutex<Vec<SqliteConnection>>,
}

impl Readers {
    fn idle(&self) -> MutexGuard<'_, Vec<SqliteConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A write transaction; dropped without commit, it never was.
#[derive(Debug)]
pub struct Tx {
    inner: sqlx::Transaction<'static, Sqlite>,
}

impl Tx {
    pub async fn commit(self) -> Result<()> {
        Ok(self.inner.commit().await?)
    }

    /// Runs a change, says how many rows it met.
    pub(crate) async fn run(&mut self, sql: &'static str, values: Vec<Val>) -> Result<u64> {
        Ok(bind(sql, values)
            .execute(&mut *self.inner)
            .await?
            .rows_affected())
    }

    /// A compare-and-set: meeting no row means somebody was faster.
    pub(crate) async fn must(
        &mut self,
        sql: &'static str,
        values: Vec<Val>,
        lost: &'static str,
    ) -> Result<()> {
        match self.run(sql, values).await? {
            0 => Err(Error::Conflict(lost)),
            _ => Ok(()),
        }
    }
}

/// A connection for looking only; goes back to the others when dropped.
#[derive(Debug)]
pub struct Read {
    connection: Option<SqliteConnection>,
    home: Arc<Readers>,
}

impl Drop for Read {
    fn drop(&mut self) {
        let mut idle = self.home.idle();
        if idle.len() < KEPT {
            idle.extend(self.connection.take());
        }
    }
}

/// What can be asked of a transaction and of a reading connection alike.
pub(crate) trait Ask {
    fn connection(&mut self) -> Result<&mut SqliteConnection>;
}

impl Ask for Tx {
    fn connection(&mut self) -> Result<&mut SqliteConnection> {
        Ok(&mut self.inner)
    }
}

impl Ask for Read {
    fn connection(&mut self) -> Result<&mut SqliteConnection> {
        self.connection
            .as_mut()
            .ok_or_else(|| Error::Foreign("a connection was given back while in use".into()))
    }
}

pub(crate) async fn rows(
    at: &mut impl Ask,
    sql: &'static str,
    values: Vec<Val>,
) -> Result<Vec<Row>> {
    let found = bind(sql, values).fetch_all(at.connection()?).await?;
    Ok(found.into_iter().map(Row).collect())
}

pub(crate) async fn one(
    at: &mut impl Ask,
    sql: &'static str,
    values: Vec<Val>,
) -> Result<Option<Row>> {
    Ok(bind(sql, values)
        .fetch_optional(at.connection()?)
        .await?
        .map(Row))
}

fn bind(
    sql: &'static str,
    values: Vec<Val>,
) -> sqlx::query::Query<'static, Sqlite, SqliteArguments> {
    values
        .into_iter()
        .fold(sqlx::query(sql), |query, value| match value {
            Val::Int(v) => query.bind(v),
            Val::Text(v) => query.bind(v),
            Val::Bytes(v) => query.bind(v),
            Val::Id(v) => query.bind(v.map(|id| id.as_bytes().to_vec())),
        })
}

/// A value with its type, so that NULL has one too.
#[derive(Debug, Clone)]
pub(crate) enum Val {
    Int(Option<i64>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
    Id(Option<Uuid>),
}

macro_rules! val_from {
    ($($from:ty => |$v:ident| $make:expr;)+) => {
        $(impl From<$from> for Val {
            fn from($v: $from) -> Self { $make }
        })+
    };
}

val_from! {
    i64 => |v| Val::Int(Some(v));
    Option<i64> => |v| Val::Int(v);
    &str => |v| Val::Text(Some(v.to_owned()));
    String => |v| Val::Text(Some(v));
    Option<String> => |v| Val::Text(v);
    Option<&str> => |v| Val::Text(v.map(str::to_owned));
    Uuid => |v| Val::Id(Some(v));
    Option<Uuid> => |v| Val::Id(v);
    [u8; 32] => |v| Val::Bytes(Some(v.to_vec()));
    Option<[u8; 32]> => |v| Val::Bytes(v.map(|b| b.to_vec()));
}

/// `vals![a, b]`: each converted into its [`Val`].
macro_rules! vals {
    ($($value:expr),* $(,)?) => { vec![$($crate::db::Val::from($value)),*] };
}
pub(crate) use vals;

/// A row, read by column name.
#[derive(Debug)]
pub(crate) struct Row(SqliteRow);

impl Row {
    pub(crate) fn int(&self, column: &str) -> Result<i64> {
        Ok(self.0.try_get(column)?)
    }

    pub(crate) fn maybe_int(&self, column: &str) -> Result<Option<i64>> {
        Ok(self.0.try_get(column)?)
    }

    pub(crate) fn text(&self, column: &str) -> Result<String> {
        Ok(self.0.try_get(column)?)
    }

    pub(crate) fn maybe_text(&self, column: &str) -> Result<Option<String>> {
        Ok(self.0.try_get(column)?)
    }

    pub(crate) fn id(&self, column: &str) -> Result<Uuid> {
        self.maybe_id(column)?
            .ok_or_else(|| Error::Foreign(format!("{column} is missing")))
    }

    pub(crate) fn maybe_id(&self, column: &str) -> Result<Option<Uuid>> {
        let bytes: Option<Vec<u8>> = self.0.try_get(column)?;
        bytes
            .map(|b| Uuid::from_slice(&b).map_err(|e| Error::Foreign(format!("{column}: {e}"))))
            .transpose()
    }

    pub(crate) fn hash(&self, column: &str) -> Result<[u8; 32]> {
        let bytes: Vec<u8> = self.0.try_get(column)?;
        <[u8; 32]>::try_from(bytes).map_err(|_| Error::Foreign(format!("{column} is not a hash")))
    }

    pub(crate) fn json<T: DeserializeOwned>(&self, column: &str) -> Result<T> {
        Ok(serde_json::from_str(&self.text(column)?)?)
    }

    pub(crate) fn maybe_json<T: DeserializeOwned>(&self, column: &str) -> Result<Option<T>> {
        Ok(self
            .maybe_text(column)?
            .map(|text| serde_json::from_str(&text))
            .transpose()?)
    }

    /// A word of one of our enums.
    pub(crate) fn word<T: FromStr>(&self, column: &str) -> Result<T> {
        parse(&self.text(column)?, column)
    }

    pub(crate) fn maybe_word<T: FromStr>(&self, column: &str) -> Result<Option<T>> {
        self.maybe_text(column)?
            .map(|text| parse(&text, column))
            .transpose()
    }
}

fn parse<T: FromStr>(text: &str, column: &str) -> Result<T> {
    text.parse()
        .map_err(|_| Error::Foreign(format!("{column} is `{text}`")))
}
