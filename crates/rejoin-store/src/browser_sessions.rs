//! Sessions of browsers, and the one-time links that start them. Only hashes of the secrets are stored.

use std::fmt;
use std::str::FromStr;

use rejoin_core::PermissionMode;
use uuid::Uuid;

use crate::connections::Tx;
use crate::db::{Ask, Row, one, rows, topic, vals};
use crate::error::Result;
use crate::tokens::TokenScope;

/// Use of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionKind {
    /// Signs in one browser, once.
    Link,
    /// Authenticates the requests of a browser.
    Session,
}

impl SessionKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Session => "session",
        }
    }
}

impl fmt::Display for SessionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SessionKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "link" => Ok(Self::Link),
            "session" => Ok(Self::Session),
            _ => Err(format!("`{text}` is neither a link nor a session")),
        }
    }
}

#[derive(Debug, Clone)]
pub struct NewBrowserSession<'a> {
    pub id: Uuid,
    pub hash: [u8; 32],
    pub kind: SessionKind,
    /// Identity that may list and end the session.
    pub owner: &'a str,
    /// Token that signed in. `None`: the user of the daemon.
    pub token: Option<Uuid>,
    pub name: &'a str,
    pub scope: TokenScope,
    pub namespace: &'a str,
    /// `None`: the configured ceiling applies.
    pub max_permission: Option<PermissionMode>,
    /// Description of the browser.
    pub browser: &'a str,
    pub now: i64,
    pub expires_at: i64,
}

#[derive(Debug, Clone)]
pub struct BrowserSession {
    pub id: Uuid,
    pub hash: [u8; 32],
    pub kind: SessionKind,
    pub owner: String,
    pub token: Option<Uuid>,
    pub name: String,
    pub scope: TokenScope,
    pub namespace: String,
    pub max_permission: Option<PermissionMode>,
    pub browser: String,
    pub created_at: i64,
    pub expires_at: i64,
    pub used_at: Option<i64>,
}

topic! {
    /// Sessions of browsers.
    BrowserSessions, browser_sessions
}

impl BrowserSessions<'_, Tx> {
    pub async fn add(&mut self, new: &NewBrowserSession<'_>) -> Result<()> {
        let sql =
            "insert into browser_sessions (id, hash, kind, owner, token_id, name, scope, namespace,
            max_permission, browser, created_at, expires_at)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
        let values = vals![
            new.id,
            new.hash,
            new.kind.as_str(),
            new.owner,
            new.token,
            new.name,
            new.scope.as_str(),
            new.namespace,
            new.max_permission.map(PermissionMode::as_str),
            new.browser,
            new.now,
            new.expires_at,
        ];
        self.0.run(sql, values).await?;
        Ok(())
    }

    /// Turns a link into a session with another secret. Returns false if the link was used before.
    pub async fn redeem(
        &mut self,
        id: Uuid,
        hash: [u8; 32],
        browser: &str,
        (now, expires_at): (i64, i64),
    ) -> Result<bool> {
        let sql = "update browser_sessions set kind = 'session', hash = $2, browser = $3, created_at = $4,
            expires_at = $5 where id = $1 and kind = 'link'";
        let values = vals![id, hash, browser, now, expires_at];
        Ok(self.0.run(sql, values).await? > 0)
    }

    /// Removes one session of an owner. Returns false if there is none.
    pub async fn remove(&mut self, owner: &str, id: Uuid) -> Result<bool> {
        let sql = "delete from browser_sessions where id = $1 and owner = $2";
        Ok(self.0.run(sql, vals![id, owner]).await? > 0)
    }

    /// Removes all sessions and links of an owner. Returns their number.
    pub async fn remove_all(&mut self, owner: &str) -> Result<u64> {
        let sql = "delete from browser_sessions where owner = $1";
        self.0.run(sql, vals![owner]).await
    }

    pub async fn remove_expired(&mut self, now: i64) -> Result<()> {
        let sql = "delete from browser_sessions where expires_at <= $1";
        self.0.run(sql, vals![now]).await?;
        Ok(())
    }

    pub async fn mark_used(&mut self, id: Uuid, now: i64) -> Result<()> {
        let sql = "update browser_sessions set used_at = $2 where id = $1";
        self.0.run(sql, vals![id, now]).await?;
        Ok(())
    }
}

impl<C: Ask> BrowserSessions<'_, C> {
    /// Returns the session or link with this hash. It is found by an index, so the caller must also
    /// compare the hash.
    pub async fn by_hash(&mut self, hash: &[u8; 32]) -> Result<Option<BrowserSession>> {
        let sql = "select * from browser_sessions where hash = $1";
        let found = one(self.0, sql, vals![*hash]).await?;
        found.as_ref().map(read).transpose()
    }

    pub async fn get(&mut self, id: Uuid) -> Result<Option<BrowserSession>> {
        let sql = "select * from browser_sessions where id = $1";
        let found = one(self.0, sql, vals![id]).await?;
        found.as_ref().map(read).transpose()
    }

    /// Lists the sessions and links of an owner, oldest first.
    pub async fn of(&mut self, owner: &str) -> Result<Vec<BrowserSession>> {
        let sql = "select * from browser_sessions where owner = $1 order by created_at, id";
        let found = rows(self.0, sql, vals![owner]).await?;
        found.iter().map(read).collect()
    }
}

fn read(row: &Row) -> Result<BrowserSession> {
    Ok(BrowserSession {
        id: row.id("id")?,
        hash: row.hash("hash")?,
        kind: row.word("kind")?,
        owner: row.text("owner")?,
        token: row.maybe_id("token_id")?,
        name: row.text("name")?,
        scope: row.word("scope")?,
        namespace: row.text("namespace")?,
        max_permission: row.maybe_word("max_permission")?,
        browser: row.text("browser")?,
        created_at: row.int("created_at")?,
        expires_at: row.int("expires_at")?,
        used_at: row.maybe_int("used_at")?,
    })
}
