//! Rate limits: counts refused tokens and open event streams.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::guard::Caller;

/// Number of refused tokens from one address within [`WINDOW`] after which it has to wait.
const FAILURES: u32 = 20;
const WINDOW: Duration = Duration::from_mins(1);
/// Number of addresses that are remembered. Beyond it, expired entries are dropped, and all entries
/// if that is not enough.
const REMEMBERED: usize = 4096;
/// Limits for event streams that are open at the same time: of one token, of one namespace, and of
/// all.
const OF_TOKEN: usize = 500;
const OF_NAMESPACE: usize = 1000;
const OF_ALL: usize = 2000;

pub(crate) struct Gate {
    failures: Mutex<HashMap<IpAddr, Failed>>,
    watchers: Arc<Mutex<Watchers>>,
}

/// Counts of open streams.
#[derive(Default)]
struct Watchers {
    all: usize,
    tokens: HashMap<Uuid, usize>,
    namespaces: HashMap<Arc<str>, usize>,
}

/// Place of one open stream, released on drop.
pub(crate) struct WatcherPlace {
    watchers: Arc<Mutex<Watchers>>,
    token: Option<Uuid>,
    namespace: Arc<str>,
}

impl Drop for WatcherPlace {
    fn drop(&mut self) {
        let mut watchers = lock(&self.watchers);
        watchers.all -= 1;
        if let Some(token) = self.token {
            give_back(&mut watchers.tokens, &token);
        }
        give_back(&mut watchers.namespaces, &self.namespace);
    }
}

fn give_back<K: Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
            watchers: Arc::default(),
        }
    }

    /// Returns true if too many tokens from this address were refused.
    pub(crate) fn is_shut(&self, from: IpAddr) -> bool {
        let failures = lock(&self.failures);
        let failed = failures.get(&from);
        failed.is_some_and(|f| f.times >= FAILURES && f.since.elapsed() < WINDOW)
    }

    pub(crate) fn failed(&self, from: IpAddr) {
        let mut failures = lock(&self.failures);
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

    /// Takes a place for a stream of this caller. Returns None if the token, its namespace or the
    /// daemon has as many streams open as it may.
    pub(crate) fn watcher(&self, caller: &Caller) -> Option<WatcherPlace> {
        let mut watchers = lock(&self.watchers);
        let token = caller.token;
        let count = |token| watchers.tokens.get(&token).copied().unwrap_or_default();
        let of_token = token.map_or(0, count);
        let of_namespace = watchers.namespaces.get(&caller.namespace).copied();
        if of_token >= OF_TOKEN
            || of_namespace.unwrap_or_default() >= OF_NAMESPACE
            || watchers.all >= OF_ALL
        {
            return None;
        }
        watchers.all += 1;
        if let Some(token) = token {
            *watchers.tokens.entry(token).or_default() += 1;
        }
        let namespace = Arc::clone(&caller.namespace);
        *watchers
            .namespaces
            .entry(Arc::clone(&namespace))
            .or_default() += 1;
        Some(WatcherPlace {
            watchers: Arc::clone(&self.watchers),
            token,
            namespace,
        })
    }

    pub(crate) fn watching(&self) -> usize {
        lock(&self.watchers).all
    }
}
