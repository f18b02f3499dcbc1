//! How many may come: refused tokens and watchers are counted.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// So many refused tokens from one address within [`WINDOW`], and it has to wait.
const FAILURES: u32 = 20;
const WINDOW: Duration = Duration::from_mins(1);
/// Addresses that are remembered; above that the oldest are forgotten.
const REMEMBERED: usize = 4096;
/// Connections that watch at the same time.
const WATCHERS: usize = 1000;

pub(crate) struct Gate {
    failures: Mutex<HashMap<IpAddr, Failed>>,
    watchers: Arc<Semaphore>,
}

#[derive(Clone, Copy)]
struct Failed {
    since: Instant,
    times: u32,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self {
            failures: Mutex::default(),
            watchers: Arc::new(Semaphore::new(WATCHERS)),
        }
    }

    /// Has this address guessed too often?
    pub(crate) fn is_shut(&self, from: IpAddr) -> bool {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = failures.get(&from);
        failed.is_some_and(|f| f.times >= FAILURES && f.since.elapsed() < WINDOW)
    }

    pub(crate) fn failed(&self, from: IpAddr) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= REMEMBERED {
            failures.retain(|_, f| f.since.elapsed() < WINDOW);
        }
        if failures.len() >= REMEMBERED {
            failures.clear();
        }
        let now = Instant::now();
        let failed = failures.entry(from).or_insert(Failed {
            since: now,
            times: 0,
        });
        if failed.since.elapsed() >= WINDOW {
            *failed = Failed {
                since: now,
                times: 0,
            };
        }
        failed.times = failed.times.saturating_add(1);
    }

    /// A place among those who watch; none: there is none left.
    pub(crate) fn watcher(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.watchers).try_acquire_owned().ok()
    }

    pub(crate) fn watching(&self) -> usize {
        WATCHERS - self.watchers.available_permits()
    }
}
