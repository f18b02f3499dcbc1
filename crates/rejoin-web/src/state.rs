//! What every request can reach.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use rejoin_core::{AgentName, PermissionMode, Scope};
use rejoin_hub::{Hub, TurnRequest};
use rejoin_runner::Runner;
use rejoin_store::Retention;
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

/// What the configuration says where a request says nothing.
#[derive(Debug, Clone)]
pub struct Defaults {
    pub agent: AgentName,
    pub scope: Scope,
    pub permission: Option<PermissionMode>,
    /// By agent.
    pub models: BTreeMap<String, String>,
    /// Agents that are switched off.
    pub disabled: Vec<String>,
    pub request: TurnRequest,
    /// Where a conversation lives for which no folder is named.
    pub here: PathBuf,
}

/// How the daemon is to behave.
#[derive(Debug, Clone)]
pub struct Options {
    /// Working folders that are allowed; none: any.
    pub roots: Vec<PathBuf>,
    /// The most that a token without a ceiling of its own may ask an agent to do.
    pub max_permission: PermissionMode,
    /// Agents at the same time; further messages wait in the queue.
    pub max_running: usize,
    /// Messages that may wait there; further ones are refused.
    pub max_queued: u64,
    /// Names under which it is reached besides those of loopback.
    pub allow_hosts: Vec<String>,
    /// Where browsers see it, behind a proxy.
    pub public_url: Option<String>,
    /// Stands for the store.
    pub store: String,
    pub notify: Notify,
    /// How long snapshots are kept; looked at once a day.
    pub keep: Retention,
}

pub(crate) struct Shared {
    pub(crate) runner: Arc<Runner>,
    pub(crate) defaults: Defaults,
    pub(crate) options: Options,
    pub(crate) queue: Queue,
    pub(crate) live: Arc<Live>,
    pub(crate) gate: Gate,
    pub(crate) tokens: TokenWatch,
    pub(crate) secrets: Secrets,
    pub(crate) bodies: Bodies,
    pub(crate) metrics: Metrics,
    pub(crate) readiness: Readiness,
    /// True once it is to end.
    pub(crate) ending: watch::Receiver<bool>,
    /// It listens beyond loopback.
    pub(crate) everywhere: bool,
}

pub(crate) type App = Arc<Shared>;

impl Shared {
    /// The hub, as this caller sees it.
    pub(crate) fn hub(&self, caller: &Caller) -> Hub {
        Hub {
            namespace: Arc::clone(&caller.namespace),
            ceiling: caller.ceiling,
            ..self.runner.hub.clone()
        }
    }
}

/// Secrets of tokens that are requested with an `Idempotency-Key`. A token is stored as a hash only, so a
/// repeated request could not be answered with it; derived from the key and from bytes that only this
/// process knows, it is the same again for as long as the daemon runs.
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

/// Until the daemon is to end.
pub(crate) async fn ends(ending: &mut watch::Receiver<bool>) {
    drop(ending.wait_for(|ending| *ending).await);
}
