//! Signing in with a browser: a token or a one-time link starts a session. Only hashes of the secrets are stored.

use rejoin_core::PermissionMode;
use rejoin_store::{BrowserSession, NewBrowserSession, SessionKind, Token, TokenScope};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::tokens::Used;
use crate::{Hub, rfc3339};

const SECOND: i64 = 1_000_000;
const DAY: i64 = 24 * 3600 * SECOND;
/// Lifetime of a session that the user wants to keep, and of one that ends with the browser.
const KEPT: i64 = 30 * DAY;
const SHORT: i64 = DAY / 2;
/// Lifetime of a link.
const LINK: i64 = 10 * 60 * SECOND;
/// Longest stored description of a browser, in characters.
const BROWSER: usize = 200;

/// Rights that a session or a link gives.
#[derive(Debug, Clone)]
pub struct SessionAccess {
    pub name: String,
    pub scope: TokenScope,
    pub namespace: String,
    /// `None`: the configured ceiling applies.
    pub max_permission: Option<PermissionMode>,
    /// Token whose end is the end of the session. `None`: the user of the daemon.
    pub token: Option<Uuid>,
}

impl SessionAccess {
    /// Returns the rights of the user of the daemon.
    pub fn local() -> Self {
        Self {
            name: "local".into(),
            scope: TokenScope::Admin,
            namespace: String::new(),
            max_permission: None,
            token: None,
        }
    }

    /// Returns the identity that lists and ends these sessions.
    pub fn owner(&self) -> String {
        self.token
            .map_or_else(|| "local".to_owned(), |id| id.to_string())
    }
}

impl From<&Token> for SessionAccess {
    fn from(token: &Token) -> Self {
        Self {
            name: token.name.clone(),
            scope: token.scope,
            namespace: token.namespace.clone(),
            max_permission: token.max_permission,
            token: Some(token.id),
        }
    }
}

/// A new session. Its secret is known to the browser alone.
#[derive(Debug, Clone)]
pub struct SignedIn {
    pub secret: String,
    /// Lifetime in seconds. `None`: the cookie ends with the browser.
    pub keep_seconds: Option<i64>,
}

/// A one-time link that signs in a browser.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LinkView {
    /// Address to open in the browser.
    #[serde(default)]
    pub url: String,
    /// Path below the address of the daemon.
    pub path: String,
    pub expires_at: String,
    pub scope: String,
    pub namespace: String,
}

/// A browser that is signed in.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BrowserSessionView {
    pub id: String,
    pub name: String,
    pub browser: String,
    pub scope: String,
    pub created_at: String,
    pub expires_at: String,
    pub used_at: Option<String>,
}

/// Letters of a secret: 32 bytes in hexadecimal.
const SECRET: usize = 64;

impl Hub {
    /// Creates a link that signs in one browser within ten minutes.
    pub async fn create_sign_in_link(&self, access: &SessionAccess) -> Result<LinkView> {
        let (secret, now) = (self.new_secret()?, self.clock.now());
        self.add_session(access, SessionKind::Link, &secret, "", now + LINK)
            .await?;
        Ok(LinkView {
            url: String::new(),
            path: format!("/pair/{secret}"),
            expires_at: rfc3339(now + LINK),
            scope: access.scope.to_string(),
            namespace: access.namespace.clone(),
        })
    }

    /// Starts a session with the rights of a token.
    pub async fn sign_in(&self, token: &Token, browser: &str, keep: bool) -> Result<SignedIn> {
        if token.scope == TokenScope::Runner {
            return Err(Error::TokenScope(
                "a token with the scope `runner` cannot sign in".into(),
            ));
        }
        let signed_in = self.new_session(keep)?;
        let lives = if keep { KEPT } else { SHORT };
        let mut until = self.clock.now() + lives;
        if let Some(end) = token.expires_at {
            until = until.min(end);
        }
        let access = SessionAccess::from(token);
        let kind = SessionKind::Session;
        self.add_session(&access, kind, &signed_in.secret, browser, until)
            .await?;
        Ok(signed_in)
    }

    /// Starts the session of a link. `None`: the link is unknown, was used or has expired.
    pub async fn redeem_link(
        &self,
        secret: &str,
        browser: &str,
        keep: bool,
    ) -> Result<Option<SignedIn>> {
        let Some(link) = self.found(secret, SessionKind::Link).await? else {
            return Ok(None);
        };
        let signed_in = self.new_session(keep)?;
        let now = self.clock.now();
        let until = now + if keep { KEPT } else { SHORT };
        let mut tx = self.store.begin().await?;
        let given = hash(&signed_in.secret);
        let browser = described(browser);
        let redeemed = tx
            .browser_sessions()
            .redeem(link.id, given, &browser, (now, until))
            .await?;
        tx.commit().await?;
        Ok(redeemed.then_some(signed_in))
    }

    /// Returns false for a code that is cut off or mistyped: no link has such a code.
    pub fn is_whole_link(secret: &str) -> bool {
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        secret.len() == SECRET && secret.bytes().all(hex)
    }

    /// Returns true if the link can still sign in a browser.
    pub async fn is_good_link(&self, secret: &str) -> Result<bool> {
        Ok(self.found(secret, SessionKind::Link).await?.is_some())
    }

    /// Returns the session with this secret, or `None` if it is unknown, has ended or its token has.
    pub async fn browser_session(&self, secret: &str) -> Result<Option<BrowserSession>> {
        let found = self.found(secret, SessionKind::Session).await?;
        if let Some(session) = &found {
            self.note_use(Used::Session(session.id), session.used_at)
                .await;
        }
        Ok(found)
    }

    async fn found(&self, secret: &str, kind: SessionKind) -> Result<Option<BrowserSession>> {
        let given = hash(secret);
        let mut read = self.store.read().await?;
        let found = read.browser_sessions().by_hash(&given).await?;
        drop(read);
        // Found by an index, and still compared in constant time.
        let same = |s: &BrowserSession| blake3::Hash::from(s.hash) == blake3::Hash::from(given);
        let Some(session) = found.filter(|s| same(s) && s.kind == kind) else {
            return Ok(None);
        };
        Ok(self.is_live(&session).await?.then_some(session))
    }

    /// True if the session has not expired, and its token is good.
    pub(crate) async fn is_live(&self, session: &BrowserSession) -> Result<bool> {
        let now = self.clock.now();
        if session.expires_at <= now {
            return Ok(false);
        }
        let Some(id) = session.token else {
            return Ok(true);
        };
        let token = self.store.read().await?.tokens().get(id).await?;
        Ok(token.is_some_and(|token| token.is_good(now)))
    }

    /// Lists the browsers that are signed in with this access, oldest first.
    pub async fn browser_session_views(&self, owner: &str) -> Result<Vec<BrowserSessionView>> {
        let now = self.clock.now();
        let found = self
            .store
            .read()
            .await?
            .browser_sessions()
            .of(owner)
            .await?;
        let live = found
            .into_iter()
            .filter(|s| s.kind == SessionKind::Session && s.expires_at > now);
        Ok(live
            .map(|s| BrowserSessionView {
                id: s.id.to_string(),
                name: s.name,
                browser: s.browser,
                scope: s.scope.to_string(),
                created_at: rfc3339(s.created_at),
                expires_at: rfc3339(s.expires_at),
                used_at: s.used_at.map(rfc3339),
            })
            .collect())
    }

    /// Ends one session of this owner.
    pub async fn end_browser_session(&self, owner: &str, id: Uuid) -> Result<()> {
        let mut tx = self.store.begin().await?;
        if !tx.browser_sessions().remove(owner, id).await? {
            return Err(Error::NotFound("there is no such session".into()));
        }
        Ok(tx.commit().await?)
    }

    /// Ends all sessions and links of this owner. Returns their number.
    pub async fn end_browser_sessions(&self, owner: &str) -> Result<u64> {
        let mut tx = self.store.begin().await?;
        let ended = tx.browser_sessions().remove_all(owner).await?;
        tx.commit().await?;
        Ok(ended)
    }

    async fn add_session(
        &self,
        access: &SessionAccess,
        kind: SessionKind,
        secret: &str,
        browser: &str,
        expires_at: i64,
    ) -> Result<()> {
        let now = self.clock.now();
        let (owner, browser) = (access.owner(), described(browser));
        let mut tx = self.store.begin().await?;
        tx.browser_sessions().remove_expired(now).await?;
        tx.browser_sessions()
            .add(&NewBrowserSession {
                id: self.clock.turn_id()?.uuid(),
                hash: hash(secret),
                kind,
                owner: &owner,
                token: access.token,
                name: &access.name,
                scope: access.scope,
                namespace: &access.namespace,
                max_permission: access.max_permission,
                browser: &browser,
                now,
                expires_at,
            })
            .await?;
        Ok(tx.commit().await?)
    }

    fn new_session(&self, keep: bool) -> Result<SignedIn> {
        Ok(SignedIn {
            secret: self.new_secret()?,
            keep_seconds: keep.then_some(KEPT / SECOND),
        })
    }

    fn new_secret(&self) -> Result<String> {
        Ok(rejoin_core::hex(&self.clock.secret()?))
    }
}

/// Hashes a secret. It is random, so no slower hash is needed.
fn hash(secret: &str) -> [u8; 32] {
    blake3::derive_key("rejoin 2026 browser session", secret.as_bytes())
}

fn described(browser: &str) -> String {
    let plain = browser.chars().filter(|c| !c.is_control());
    plain.take(BROWSER).collect()
}
