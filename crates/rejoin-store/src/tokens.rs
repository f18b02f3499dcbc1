//! Tokens for a daemon. Only hashes are stored, so a reader of the store cannot impersonate a user.

use std::fmt;
use std::str::FromStr;

use rejoin_core::PermissionMode;
use uuid::Uuid;

use crate::connections::Tx;
use crate::db::{Ask, Row, one, rows, topic, vals};
use crate::error::Result;

/// Rights of a token. `send` includes `read`, `admin` includes both; `runner` is separate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenScope {
    Read,
    Send,
    Admin,
    Runner,
}

impl TokenScope {
    pub const ALL: [Self; 4] = [Self::Read, Self::Send, Self::Admin, Self::Runner];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Send => "send",
            Self::Admin => "admin",
            Self::Runner => "runner",
        }
    }

    /// Returns true if this scope grants `asked`.
    pub const fn includes(self, asked: Self) -> bool {
        match self {
            Self::Read => matches!(asked, Self::Read),
            Self::Send => matches!(asked, Self::Read | Self::Send),
            Self::Admin => matches!(asked, Self::Read | Self::Send | Self::Admin),
            Self::Runner => matches!(asked, Self::Runner),
        }
    }
}

impl fmt::Display for TokenScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for TokenScope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|scope| scope.as_str() == text);
        found.ok_or_else(|| format!("a scope is read, send, admin or runner, not `{text}`"))
    }
}

#[derive(Debug, Clone)]
pub struct NewToken<'a> {
    pub id: Uuid,
    pub name: &'a str,
    pub hash: [u8; 32],
    pub scope: TokenScope,
    pub namespace: &'a str,
    pub now: i64,
    pub expires_at: Option<i64>,
    /// `None`: the configured ceiling applies.
    pub max_permission: Option<PermissionMode>,
}

#[derive(Debug, Clone)]
pub struct Token {
    pub id: Uuid,
    pub name: String,
    pub hash: [u8; 32],
    pub scope: TokenScope,
    pub namespace: String,
    pub created_at: i64,
    pub expires_at: Option<i64>,
    pub used_at: Option<i64>,
    pub revoked_at: Option<i64>,
    /// `None`: the configured ceiling applies.
    pub max_permission: Option<PermissionMode>,
}

impl Token {
    pub fn is_good(&self, now: i64) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|at| at > now)
    }
}

topic! {
    /// Tokens of daemon clients.
    Tokens, tokens
}

impl Tokens<'_, Tx> {
    /// Stores a token. Returns false if one with this name exists.
    pub async fn add(&mut self, new: &NewToken<'_>) -> Result<bool> {
        let sql = "insert into tokens (id, name, hash, scope, namespace, created_at, expires_at, max_permission)
            values ($1, $2, $3, $4, $5, $6, $7, $8)
            on conflict (name) where revoked_at is null do nothing";
        let values = vals![
            new.id,
            new.name,
            new.hash,
            new.scope.as_str(),
            new.namespace,
            new.now,
            new.expires_at,
            new.max_permission.map(PermissionMode::as_str),
        ];
        Ok(self.0.run(sql, values).await? > 0)
    }

    /// Revokes a token. Returns false if none has this name.
    pub async fn revoke(&mut self, name: &str, now: i64) -> Result<bool> {
        let sql = "update tokens set revoked_at = $2 where name = $1 and revoked_at is null";
        Ok(self.0.run(sql, vals![name, now]).await? > 0)
    }

    pub async fn mark_used(&mut self, id: Uuid, now: i64) -> Result<()> {
        let sql = "update tokens set used_at = $2 where id = $1";
        self.0.run(sql, vals![id, now]).await?;
        Ok(())
    }
}

impl<C: Ask> Tokens<'_, C> {
    /// Returns the token with this hash, valid or not. It is found by an index, so the caller must
    /// also compare the hash.
    pub async fn by_hash(&mut self, hash: &[u8; 32]) -> Result<Option<Token>> {
        let sql = "select * from tokens where hash = $1";
        let found = one(self.0, sql, vals![*hash]).await?;
        found.as_ref().map(read).transpose()
    }

    /// Returns the token with this id, valid or not.
    pub async fn get(&mut self, id: Uuid) -> Result<Option<Token>> {
        let sql = "select * from tokens where id = $1";
        let found = one(self.0, sql, vals![id]).await?;
        found.as_ref().map(read).transpose()
    }

    /// Lists all tokens, oldest first.
    pub async fn all(&mut self) -> Result<Vec<Token>> {
        let sql = "select * from tokens order by created_at, id /* scan: people make them */";
        rows(self.0, sql, vec![]).await?.iter().map(read).collect()
    }
}

fn read(row: &Row) -> Result<Token> {
    Ok(Token {
        id: row.id("id")?,
        name: row.text("name")?,
        hash: row.hash("hash")?,
        scope: row.word("scope")?,
        namespace: row.text("namespace")?,
        created_at: row.int("created_at")?,
        expires_at: row.maybe_int("expires_at")?,
        used_at: row.maybe_int("used_at")?,
        revoked_at: row.maybe_int("revoked_at")?,
        max_permission: row.maybe_word("max_permission")?,
    })
}
