//! Tokens: created once, shown once, stored as a hash.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use rejoin_core::PermissionMode;
use rejoin_store::{NewToken, Token, TokenScope};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::{Hub, rfc3339};

/// Prefix of every token, so that scanners find one that leaked.
const PREFIX: &str = "rejoin_";
/// Minimum interval between two updates of `used_at`.
const NOTED_EVERY: i64 = 60_000_000;
/// Longest time that a request waits for that update.
const NOTED_WITHIN: Duration = Duration::from_millis(500);

/// Secret that a request came with.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Used {
    Token(Uuid),
    Session(Uuid),
}

/// Options of a new token.
#[derive(Debug, Clone)]
pub struct TokenRequest {
    pub name: String,
    pub scope: TokenScope,
    pub namespace: String,
    /// Lifetime in microseconds.
    pub expires_in: Option<i64>,
    /// `None`: the configured ceiling applies.
    pub max_permission: Option<PermissionMode>,
    /// Random bytes from the caller. `None`: fresh ones. The same options with the same bytes give
    /// the same token.
    pub secret: Option<[u8; 32]>,
}

/// Told once, when it is made.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewTokenView {
    pub name: String,
    pub token: String,
    pub scope: String,
    pub namespace: String,
    pub expires_at: Option<String>,
    /// The most it may ask for: `read-only`, `ask`, `edit` or `full`; none: the daemon's `[serve] max_permission`.
    #[serde(default)]
    pub max_permission: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TokenView {
    pub name: String,
    pub scope: String,
    pub namespace: String,
    pub created_at: String,
    pub expires_at: Option<String>,
    pub used_at: Option<String>,
    /// `good`, `expired` or `revoked`.
    pub state: String,
    /// The most it may ask for: `read-only`, `ask`, `edit` or `full`; none: the daemon's `[serve] max_permission`.
    #[serde(default)]
    pub max_permission: Option<String>,
}

impl Hub {
    pub async fn create_token(&self, request: &TokenRequest) -> Result<NewTokenView> {
        well_formed(&request.name, "name")?;
        if request.scope == TokenScope::Runner {
            return Err(Error::TokenScope(
                "this version of rejoin has no runners on other machines, so nothing takes a token with the scope `runner`".into(),
            ));
        }
        if !request.namespace.is_empty() {
            well_formed(&request.namespace, "namespace")?;
        }
        let secret = request.secret.map_or_else(|| self.clock.secret(), Ok)?;
        let token = PREFIX.to_owned() + &rejoin_core::hex(&secret);
        let now = self.clock.now();
        let expires_at = request.expires_in.map(|for_| now.saturating_add(for_));
        let new = NewToken {
            id: self.clock.turn_id()?.uuid(),
            name: &request.name,
            hash: hash(&token),
            scope: request.scope,
            namespace: &request.namespace,
            now,
            expires_at,
            max_permission: request.max_permission,
        };
        let mut tx = self.store.begin().await?;
        let made = NewTokenView {
            name: request.name.clone(),
            scope: request.scope.to_string(),
            namespace: request.namespace.clone(),
            expires_at: expires_at.map(rfc3339),
            max_permission: request.max_permission.map(|mode| mode.to_string()),
            token,
        };
        if !tx.tokens().add(&new).await? {
            drop(tx);
            if let Some(before) = self.made_before(&made).await? {
                return Ok(before);
            }
            return Err(Error::TokenTaken(format!(
                "there is a token called `{}` already",
                request.name
            )));
        }
        tx.commit().await?;
        Ok(made)
    }

    /// Returns the token if an earlier request created exactly this one.
    async fn made_before(&self, made: &NewTokenView) -> Result<Option<NewTokenView>> {
        let given = hash(&made.token);
        let found = self.store.read().await?.tokens().by_hash(&given).await?;
        let same = |token: &Token| {
            let known = (token.scope.as_str(), token.namespace.as_str());
            known == (made.scope.as_str(), made.namespace.as_str())
                && token.name == made.name
                && token.max_permission.map(|mode| mode.to_string()) == made.max_permission
                && token.is_good(self.clock.now())
        };
        Ok(found.filter(same).map(|token| NewTokenView {
            expires_at: token.expires_at.map(rfc3339),
            ..made.clone()
        }))
    }

    pub async fn token_views(&self) -> Result<Vec<TokenView>> {
        let now = self.clock.now();
        let found = self.store.read().await?.tokens().all().await?;
        Ok(found.into_iter().map(|token| view(token, now)).collect())
    }

    pub async fn revoke_token(&self, name: &str) -> Result<()> {
        let mut tx = self.store.begin().await?;
        if !tx.tokens().revoke(name, self.clock.now()).await? {
            return Err(Error::NoToken(format!("there is no token called `{name}`")));
        }
        Ok(tx.commit().await?)
    }

    /// Returns the token with this text, or `None` if it is unknown, expired or revoked.
    pub async fn token(&self, text: &str) -> Result<Option<Token>> {
        let given = hash(text);
        let found = self.store.read().await?.tokens().by_hash(&given).await?;
        let now = self.clock.now();
        // Found by an index, and still compared in constant time.
        let same = |token: &Token| blake3::Hash::from(token.hash) == blake3::Hash::from(given);
        let Some(token) = found.filter(|token| same(token) && token.is_good(now)) else {
            return Ok(None);
        };
        self.note_use(Used::Token(token.id), token.used_at).await;
        Ok(Some(token))
    }

    /// True if the token, or the session of a browser, has not ended.
    pub async fn is_good_token(&self, id: Uuid) -> Result<bool> {
        let mut read = self.store.read().await?;
        if let Some(token) = read.tokens().get(id).await? {
            return Ok(token.is_good(self.clock.now()));
        }
        let session = read.browser_sessions().get(id).await?;
        drop(read);
        match session {
            Some(session) => self.is_live(&session).await,
            None => Ok(false),
        }
    }

    /// Records the use of a token or session, at most once a minute. A read-only store does not prevent
    /// requests: after a failure the update is tried again later.
    pub(crate) async fn note_use(&self, used: Used, last: Option<i64>) {
        static NOT_BEFORE: AtomicI64 = AtomicI64::new(i64::MIN);
        let now = self.clock.now();
        if last.is_some_and(|at| now - at <= NOTED_EVERY)
            || now < NOT_BEFORE.load(Ordering::Relaxed)
        {
            return;
        }
        let noted = async {
            let mut tx = self.store.begin().await?;
            match used {
                Used::Token(id) => tx.tokens().mark_used(id, now).await?,
                Used::Session(id) => tx.browser_sessions().mark_used(id, now).await?,
            }
            tx.commit().await
        };
        if !matches!(tokio::time::timeout(NOTED_WITHIN, noted).await, Ok(Ok(()))) {
            NOT_BEFORE.store(now.saturating_add(NOTED_EVERY), Ordering::Relaxed);
        }
    }

    /// Returns true if at least one token is valid.
    pub async fn has_tokens(&self) -> Result<bool> {
        let now = self.clock.now();
        let found = self.store.read().await?.tokens().all().await?;
        Ok(found.iter().any(|token| token.is_good(now)))
    }
}

fn view(token: Token, now: i64) -> TokenView {
    let state = if token.revoked_at.is_some() {
        "revoked"
    } else if token.is_good(now) {
        "good"
    } else {
        "expired"
    };
    TokenView {
        name: token.name,
        scope: token.scope.to_string(),
        namespace: token.namespace,
        created_at: rfc3339(token.created_at),
        expires_at: token.expires_at.map(rfc3339),
        used_at: token.used_at.map(rfc3339),
        state: state.into(),
        max_permission: token.max_permission.map(|mode| mode.to_string()),
    }
}

/// Hashes a token. A token is random, so no slower hash is needed.
fn hash(token: &str) -> [u8; 32] {
    blake3::derive_key("rejoin 2026 token", token.as_bytes())
}

fn well_formed(text: &str, what: &str) -> Result<()> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    if text.is_empty() || text.len() > 64 || !text.chars().all(fits) {
        return Err(Error::TokenName(format!(
            "a token's {what} has 1 to 64 letters, digits, `-`, `_`, `.` or `@`"
        )));
    }
    Ok(())
}
