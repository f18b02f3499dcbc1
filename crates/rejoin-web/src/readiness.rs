//! Readiness: tells if the store can be written. Requests need no token, so the store is asked once
//! a second at most.

use std::time::{Duration, Instant};

use rejoin_store::{Error, Store};
use tokio::sync::Mutex;

/// Time for which an answer is reused.
const KEPT: Duration = Duration::from_secs(1);
/// Time within which a ready store must commit.
const WITHIN: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(crate) struct Readiness(Mutex<Option<Known>>);

#[derive(Clone)]
struct Known {
    since: Instant,
    found: Result<(), String>,
}

impl Readiness {
    /// Returns the reason if the store cannot be written. Names no address: the caller has no
    /// token.
    pub(crate) async fn of(&self, store: &Store) -> Result<(), String> {
        let mut known = self.0.lock().await;
        if let Some(known) = known.as_ref().filter(|known| known.since.elapsed() < KEPT) {
            return known.found.clone();
        }
        let found = store.must_be_writable(WITHIN).await;
        let found = found.map_err(|error| reason(&error));
        *known = Some(Known {
            since: Instant::now(),
            found: found.clone(),
        });
        found
    }
}

fn reason(error: &Error) -> String {
    let named = matches!(
        error,
        Error::Away { .. } | Error::Open { .. } | Error::Pooled { .. }
    );
    if named {
        return "the store does not answer".into();
    }
    error.to_string()
}
