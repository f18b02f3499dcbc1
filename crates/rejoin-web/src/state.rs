//! Shared state of all requests.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use rejoin_core::PermissionMode;
use rejoin_hub::Hub;
use rejoin_hub::{Keep, Schedule};
use rejoin_runner::Runner;
use rejoin_runner::send::Defaults;
use tokio::sync::watch;

use crate::body::Bodies;
use crate::gate::Gate;
use crate::guard::Caller;
use crate::live::Live;
use crate::metrics::Metrics;
use crate::notify::Notify;
use crate::queue::Queue;
use crate::readiness::Readiness;
use crate::token_watch::TokenWatch;

/// Options of the daemon.
#[derive(Debug, Clone)]
pub struct Options {
    /// Allowed working folders; empty means any.
    pub roots: Vec<PathBuf>,
    /// Highest permission that a token without a ceiling of its own may request.
    pub max_permission: PermissionMode,
    /// Limit for agents that run at the same time; further messages wait in the queue.
    pub max_running: usize,
    /// Limit for messages in the queue; further ones are refused.
    pub max_queued: u64,
    /// Host names of the daemon besides those of loopback.
    pub allow_hosts: Vec<String>,
    /// URL under which browsers see it, behind a proxy.
    pub public_url: Option<String>,
    /// Identifier of the store.
    pub store: String,
    pub notify: Notify,
    pub schedules: Vec<Schedule>,
    /// Folder of the workflows that requests can name.
    pub workflows: Option<PathBuf>,
    /// Time for which snapshots are kept; checked once a day.
    pub keep: Keep,
}

pub(crate) struct Shared {
    pub(crate) runner: Arc<Runner>,
    pub(crate) defaults: Defaults,
    pub(crate) options: Options,
    pub(crate) queue: Queue,
    /// Signal that there may be a run of a workflow to continue.
    pub(crate) workflows: tokio::sync::Notify,
    pub(crate) live: Arc<Live>,
    pub(crate) gate: Gate,
    pub(crate) tokens: TokenWatch,
    pub(crate) secrets: Secrets,
    pub(crate) bodies: Bodies,
    pub(crate) metrics: Metrics,
    pub(crate) readiness: Readiness,
    /// True once the daemon is to end.
    pub(crate) ending: watch::Receiver<bool>,
    /// True if the daemon listens beyond loopback.
    pub(crate) everywhere: bool,
    pub(crate) listens: SocketAddr,
}

pub(crate) type App = Arc<Shared>;

impl Shared {
    /// Returns the address that browsers open.
    pub(crate) fn address(&self) -> String {
        if let Some(url) = &self.options.public_url {
            return url.trim_end_matches('/').to_owned();
        }
        if self.listens.ip().is_unspecified() {
            return format!("http://{}:{}", self.runner.hub.machine, self.listens.port());
        }
        format!("http://{}", self.listens)
    }

    /// Returns the hub with the caller's namespace and ceiling.
    pub(crate) fn hub(&self, caller: &Caller) -> Hub {
        Hub {
            namespace: Arc::clone(&caller.namespace),
            ceiling: caller.ceiling,
            ..self.runner.hub.clone()
        }
    }
}

/// Secrets of tokens that are requested with an `Idempotency-Key`. A token is stored as a hash
/// only, so a repeated request could not be answered with it. Derived from the key and from bytes
/// that only this process knows, it is the same again for as long as the daemon runs.
pub(crate) struct Secrets(blake3::Hash);

impl Secrets {
    pub(crate) fn new(bytes: [u8; 32]) -> Self {
        Self(bytes.into())
    }

    pub(crate) fn of(&self, caller: &str, key: &str) -> [u8; 32] {
        let text = format!("{caller}\n{key}");
        *blake3::keyed_hash(self.0.as_bytes(), text.as_bytes()).as_bytes()
    }
}

/// Waits until the daemon is to end.
pub(crate) async fn ends(ending: &mut watch::Receiver<bool>) {
    drop(ending.wait_for(|ending| *ending).await);
}
