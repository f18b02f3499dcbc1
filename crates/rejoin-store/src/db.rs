//! Values in, rows out: one SQL text for every engine. A new engine is a variant here and in
//! `connections.rs`, a folder of migrations and a line in `open.rs`; nothing above knows which.

use std::str::FromStr;

use serde::de::DeserializeOwned;
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{Row as _, Sqlite};
use uuid::Uuid;

use crate::error::{Error, Result};

/// What can be asked of a transaction and of a reading connection alike.
pub(crate) trait Ask {
    fn connection(&mut self) -> Result<&mut SqliteConnection>;
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

pub(crate) fn bind(
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
    Vec<u8> => |v| Val::Bytes(Some(v));
    Option<Vec<u8>> => |v| Val::Bytes(v);
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

    pub(crate) fn maybe_bytes(&self, column: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.0.try_get(column)?)
    }

    pub(crate) fn hash(&self, column: &str) -> Result<[u8; 32]> {
        let bytes: Vec<u8> = self.0.try_get(column)?;
        <[u8; 32]>::try_from(bytes).map_err(|_| Error::Foreign(format!("{column} is not a hash")))
    }

    pub(crate) fn maybe_hash(&self, column: &str) -> Result<Option<[u8; 32]>> {
        let bytes: Option<Vec<u8>> = self.0.try_get(column)?;
        bytes
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
