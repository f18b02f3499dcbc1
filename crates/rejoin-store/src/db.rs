//! Values in, rows out: one SQL text for every engine. A new engine is a variant here and in
//! `engine.rs`, a folder of migrations and an opener in `open/`; no code above knows which engine
//! is used.

use std::future::Future;
use std::str::FromStr;

use serde::de::DeserializeOwned;
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use crate::engine::sqlite::LocalRow;
use crate::engine::{Connection, unescaped};
use crate::error::{Error, Result};

/// Operations that a transaction and a read-only connection have in common.
pub(crate) trait Ask {
    fn connection(&mut self) -> Result<&mut Connection>;

    /// Returns true if a query may be repeated on a new connection, because a lost one takes no
    /// work with it.
    fn may_ask_again(&self) -> bool;

    /// Opens a connection to replace one that was given up.
    fn renew(&mut self) -> impl Future<Output = Result<()>> + Send;

    /// Discards the connection.
    fn give_up(&mut self);
}

pub(crate) async fn rows(
    at: &mut impl Ask,
    sql: &'static str,
    values: Vec<SqlValue>,
) -> Result<Vec<Row>> {
    let again = at.may_ask_again().then(|| values.clone());
    let found = at.connection()?.all(sql, values).await;
    match (found, again) {
        (Err(error), again) if error.is_lost() => {
            at.give_up();
            let Some(values) = again else {
                return Err(error);
            };
            at.renew().await?;
            at.connection()?.all(sql, values).await
        }
        (found, _) => found,
    }
}

pub(crate) async fn one(
    at: &mut impl Ask,
    sql: &'static str,
    values: Vec<SqlValue>,
) -> Result<Option<Row>> {
    Ok(rows(at, sql, values).await?.into_iter().next())
}

/// A value with its type, so that NULL has a type too.
#[derive(Debug, Clone)]
pub(crate) enum SqlValue {
    Int(Option<i64>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
    Id(Option<Uuid>),
}

macro_rules! val_from {
    ($($from:ty => |$v:ident| $make:expr;)+) => {
        $(impl From<$from> for SqlValue {
            fn from($v: $from) -> Self { $make }
        })+
    };
}

val_from! {
    i64 => |v| SqlValue::Int(Some(v));
    Option<i64> => |v| SqlValue::Int(v);
    &str => |v| SqlValue::Text(Some(v.to_owned()));
    String => |v| SqlValue::Text(Some(v));
    Option<String> => |v| SqlValue::Text(v);
    Option<&str> => |v| SqlValue::Text(v.map(str::to_owned));
    Uuid => |v| SqlValue::Id(Some(v));
    Option<Uuid> => |v| SqlValue::Id(v);
    Vec<u8> => |v| SqlValue::Bytes(Some(v));
    Option<Vec<u8>> => |v| SqlValue::Bytes(v);
    [u8; 32] => |v| SqlValue::Bytes(Some(v.to_vec()));
    Option<[u8; 32]> => |v| SqlValue::Bytes(v.map(|b| b.to_vec()));
}

/// Converts each value into its [`SqlValue`]: `vals![a, b]`.
macro_rules! vals {
    ($($value:expr),* $(,)?) => { vec![$($crate::db::SqlValue::from($value)),*] };
}
pub(crate) use vals;

/// Declares the handle of one topic, and the methods of [`Tx`](crate::Tx) and [`Read`](crate::Read)
/// that return it. So a call names the file of its statement: `tx.turns().claim(…)`.
macro_rules! topic {
    ($(#[$doc:meta])+ $type:ident, $name:ident) => {
        $(#[$doc])+
        #[derive(Debug)]
        pub struct $type<'a, C>(&'a mut C);

        impl $crate::connections::Tx {
            $(#[$doc])+
            pub fn $name(&mut self) -> $type<'_, Self> {
                $type(self)
            }
        }

        impl $crate::connections::Read {
            $(#[$doc])+
            pub fn $name(&mut self) -> $type<'_, Self> {
                $type(self)
            }
        }
    };
}
pub(crate) use topic;

/// A row, read by column name.
#[derive(Debug)]
pub(crate) enum Row {
    Sqlite(LocalRow),
    Postgres(PgRow),
}

impl Row {
    pub(crate) fn int(&self, column: &str) -> Result<i64> {
        self.maybe_int(column)?.ok_or_else(|| missing(column))
    }

    pub(crate) fn maybe_int(&self, column: &str) -> Result<Option<i64>> {
        match self {
            Self::Sqlite(row) => row.int(column),
            // PostgreSQL functions may return shorter integers.
            Self::Postgres(row) => match row.try_get::<Option<i64>, _>(column) {
                Ok(found) => Ok(found),
                Err(_) => Ok(row.try_get::<Option<i32>, _>(column)?.map(i64::from)),
            },
        }
    }

    pub(crate) fn text(&self, column: &str) -> Result<String> {
        self.maybe_text(column)?.ok_or_else(|| missing(column))
    }

    pub(crate) fn maybe_text(&self, column: &str) -> Result<Option<String>> {
        match self {
            Self::Sqlite(row) => row.text(column),
            Self::Postgres(row) => Ok(row.try_get::<Option<String>, _>(column)?.map(unescaped)),
        }
    }

    pub(crate) fn id(&self, column: &str) -> Result<Uuid> {
        self.maybe_id(column)?.ok_or_else(|| missing(column))
    }

    pub(crate) fn maybe_id(&self, column: &str) -> Result<Option<Uuid>> {
        match self {
            Self::Sqlite(row) => row
                .bytes(column)?
                .map(|b| Uuid::from_slice(&b).map_err(|e| Error::Foreign(format!("{column}: {e}"))))
                .transpose(),
            Self::Postgres(row) => Ok(row.try_get(column)?),
        }
    }

    pub(crate) fn maybe_bytes(&self, column: &str) -> Result<Option<Vec<u8>>> {
        match self {
            Self::Sqlite(row) => row.bytes(column),
            Self::Postgres(row) => Ok(row.try_get(column)?),
        }
    }

    pub(crate) fn hash(&self, column: &str) -> Result<[u8; 32]> {
        self.maybe_hash(column)?.ok_or_else(|| missing(column))
    }

    pub(crate) fn maybe_hash(&self, column: &str) -> Result<Option<[u8; 32]>> {
        self.maybe_bytes(column)?
            .map(|b| {
                <[u8; 32]>::try_from(b)
                    .map_err(|_| Error::Foreign(format!("{column} is not a hash")))
            })
            .transpose()
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

    /// Parses a word of one of our enums.
    pub(crate) fn word<T: FromStr>(&self, column: &str) -> Result<T> {
        parse(&self.text(column)?, column)
    }

    pub(crate) fn maybe_word<T: FromStr>(&self, column: &str) -> Result<Option<T>> {
        self.maybe_text(column)?
            .map(|text| parse(&text, column))
            .transpose()
    }
}

fn missing(column: &str) -> Error {
    Error::Foreign(format!("{column} is missing"))
}

fn parse<T: FromStr>(text: &str, column: &str) -> Result<T> {
    text.parse()
        .map_err(|_| Error::Foreign(format!("{column} is `{text}`")))
}
