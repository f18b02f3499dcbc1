//! Who may talk to a daemon. Only hashes are kept: whoever reads the store cannot pass for anybody.

use std::fmt;
use std::str::FromStr;

use rejoin_core::PermissionMode;
use uuid::Uuid;

use crate::connections::{Read, Tx};
use crate::db::{Row, one, rows, vals};
use crate::error::Result;

/// What a token is good for. `send` includes `read`, `admin` both; `runner` stands alone.
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

    /// Is whoever may do this also allowed that?
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
    /// None: the configured ceiling holds.
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
    /// None: the configured ceiling holds.
    pub max_permission: Option<PermissionMode>,
}

impl Token {
    pub fn is_good(&self, now: i64) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|at| at > now)
    }
}

impl Tx {
    /// False: there is one of that name already.
    pub async fn add_token(&mut self, new: &NewToken<'_>) -> Result<bool> {
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
        Ok(self.run(sql, values).await? > 0)
    }

    /// False: there is none of that name.
    pub async fn revoke_token(&mut self, name: &str, now: i64) -> Result<bool> {
        let sql = "update tokens set revoked_at = $2 where name = $1 and revoked_at is null";
        Ok(self.run(sql, vals![name, now]).await? > 0)
    }

    pub async fn token_used(&mut self, id: Uuid, now: i64) -> Result<()> {
        let sql = "update tokens set used_at = $2 where id = $1";
        self.run(sql, vals![id, now]).await?;
        Ok(())
    }
}

impl Read {
    /// The one with this hash, good or not. Found by an index, so whoever asks must compare it too.
    pub async fn token_by_hash(&mut self, hash: &[u8; 32]) -> Result<Option<Token>> {
        let sql = "select * from tokens where hash = $1";
        let found = one(self, sql, vals![*hash]).await?;
        found.as_ref().map(read).transpose()
    }

    /// The token with this id, good or not.
    pub async fn token(&mut self, id: Uuid) -> Result<Option<Token>> {
        let sql = "select * from tokens where id = $1";
        let found = one(self, sql, vals![id]).await?;
        found.as_ref().map(read).transpose()
    }

    /// All of them, oldest first.
    pub async fn tokens(&mut self) -> Result<Vec<Token>> {
        let sql = "select * from tokens order by created_at, id /* scan: people make them */";
        rows(self, sql, vec![]).await?.iter().map(read).collect()
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
