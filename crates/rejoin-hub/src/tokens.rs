//! Tokens: made once, shown once, known by their hash.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use rejoin_core::PermissionMode;
use rejoin_store::{NewToken, Token, TokenScope};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::{Hub, rfc3339};

/// What every token begins with, so that scanners find one that leaked.
const PREFIX: &str = "rejoin_";
/// `used_at` is written no more often than this.
const NOTED_EVERY: i64 = 60_000_000;
/// A request does not wait longer for that.
const NOTED_WITHIN: Duration = Duration::from_millis(500);

/// A token that is to be made.
#[derive(Debug, Clone)]
pub struct TokenWish {
    pub name: String,
    pub scope: TokenScope,
    pub namespace: String,
    /// In microseconds from now.
    pub expires_in: Option<i64>,
    /// None: the configured ceiling holds.
    pub max_permission: Option<PermissionMode>,
    /// Random bytes of the caller; none: fresh ones. The same wish with the same bytes is the same token.
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
    pub async fn create_token(&self, wish: &TokenWish) -> Result<NewTokenView> {
        well_formed(&wish.name, "name")?;
        if wish.scope == TokenScope::Runner {
            return Err(Error::TokenScope(
                "this version of rejoin has no runners on other machines, so nothing takes a token with the scope `runner`".into(),
            ));
        }
        if !wish.namespace.is_empty() {
            well_formed(&wish.namespace, "namespace")?;
        }
        let secret = wish.secret.map_or_else(|| self.clock.secret(), Ok)?;
        let token = secret.iter().fold(PREFIX.to_owned(), |text, byte| {
            text + &format!("{byte:02x}")
        });
        let now = self.clock.now();
        let expires_at = wish.expires_in.map(|for_| now.saturating_add(for_));
        let new = NewToken {
            id: self.clock.turn_id()?.uuid(),
            name: &wish.name,
            hash: hash(&token),
            scope: wish.scope,
            namespace: &wish.namespace,
            now,
            expires_at,
            max_permission: wish.max_permission,
        };
        let mut tx = self.store.begin().await?;
        let made = NewTokenView {
            name: wish.name.clone(),
            scope: wish.scope.to_string(),
            namespace: wish.namespace.clone(),
            expires_at: expires_at.map(rfc3339),
            max_permission: wish.max_permission.map(|mode| mode.to_string()),
            token,
        };
        if !tx.add_token(&new).await? {
            drop(tx);
            if let Some(before) = self.made_before(&made).await? {
                return Ok(before);
            }
            return Err(Error::TokenTaken(format!(
                "there is a token called `{}` already",
                wish.name
            )));
        }
        tx.commit().await?;
        Ok(made)
    }

    /// Returns the token if this very one was made before: the request for it is repeated.
    async fn made_before(&self, made: &NewTokenView) -> Result<Option<NewTokenView>> {
        let given = hash(&made.token);
        let found = self.store.read().await?.token_by_hash(&given).await?;
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
        let found = self.store.read().await?.tokens().await?;
        Ok(found.into_iter().map(|token| view(token, now)).collect())
    }

    pub async fn revoke_token(&self, name: &str) -> Result<()> {
        let mut tx = self.store.begin().await?;
        if !tx.revoke_token(name, self.clock.now()).await? {
            return Err(Error::NoToken(format!("there is no token called `{name}`")));
        }
        Ok(tx.commit().await?)
    }

    /// Whose token this is; none: nobody's, or it is no longer good.
    pub async fn token(&self, text: &str) -> Result<Option<Token>> {
        let given = hash(text);
        let found = self.store.read().await?.token_by_hash(&given).await?;
        let now = self.clock.now();
        // Found by an index; compared in constant time all the same.
        let same = |token: &Token| blake3::Hash::from(token.hash) == blake3::Hash::from(given);
        let Some(token) = found.filter(|token| same(token) && token.is_good(now)) else {
            return Ok(None);
        };
        if token.used_at.is_none_or(|at| now - at > NOTED_EVERY) {
            self.note_use(&token, now).await;
        }
        Ok(Some(token))
    }

    /// True if the token is neither revoked nor expired.
    pub async fn is_good_token(&self, id: Uuid) -> Result<bool> {
        let found = self.store.read().await?.token(id).await?;
        Ok(found.is_some_and(|token| token.is_good(self.clock.now())))
    }

    /// Notes that a token was used. A store that cannot be written keeps nobody from reading: after a
    /// failure it is tried again later.
    async fn note_use(&self, token: &Token, now: i64) {
        static NOT_BEFORE: AtomicI64 = AtomicI64::new(i64::MIN);
        if now < NOT_BEFORE.load(Ordering::Relaxed) {
            return;
        }
        let noted = async {
            let mut tx = self.store.begin().await?;
            tx.token_used(token.id, now).await?;
            tx.commit().await
        };
        if !matches!(tokio::time::timeout(NOTED_WITHIN, noted).await, Ok(Ok(()))) {
            NOT_BEFORE.store(now.saturating_add(NOTED_EVERY), Ordering::Relaxed);
        }
    }

    /// Is there any that is good?
    pub async fn has_tokens(&self) -> Result<bool> {
        let now = self.clock.now();
        let found = self.store.read().await?.tokens().await?;
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

/// A token is random, so nothing slower is needed.
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
