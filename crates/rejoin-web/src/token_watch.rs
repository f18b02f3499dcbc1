//! Watches the tokens of requests that stay open: an event stream, or a request that waits for a
//! turn, ends when its token is revoked or expires.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rejoin_hub::Hub;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

/// Shortest interval between two lookups of a token, regardless of the number of its requests.
/// Another process may revoke it, so the store is asked.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Number of tokens that are remembered; beyond it, those that were not looked up lately are
/// dropped.
const REMEMBERED: usize = 1024;

pub(crate) struct TokenWatch {
    hub: Hub,
    seen: Mutex<HashMap<Uuid, Seen>>,
}

#[derive(Clone, Copy)]
struct Seen {
    at: Instant,
    good: bool,
}

impl TokenWatch {
    pub(crate) fn new(hub: Hub) -> Self {
        Self {
            hub,
            seen: Mutex::default(),
        }
    }

    /// Waits until the token is revoked or has expired. Without a token, waits for ever.
    pub(crate) async fn until_void(&self, token: Option<Uuid>) {
        let Some(token) = token else {
            return std::future::pending().await;
        };
        while self.is_good(token).await {
            sleep(LOOK_AGAIN).await;
        }
    }

    async fn is_good(&self, token: Uuid) -> bool {
        let now = Instant::now();
        if let Some(seen) = self.remembered(token, now) {
            return seen.good;
        }
        // A store that does not answer says nothing about the token.
        let good = self.hub.is_good_token(token).await.unwrap_or(true);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= REMEMBERED {
            seen.retain(|_, seen| now - seen.at < LOOK_AGAIN);
        }
        seen.insert(token, Seen { at: now, good });
        good
    }

    fn remembered(&self, token: Uuid, now: Instant) -> Option<Seen> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = seen.get(&token).copied();
        seen.filter(|seen| !seen.good || now - seen.at < LOOK_AGAIN)
    }
}
