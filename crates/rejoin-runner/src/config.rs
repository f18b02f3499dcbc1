//! What the runner is told about the world: where things are, and the settings of each agent.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use rejoin_agents::{ADAPTERS, Adapter, adapter};
use rejoin_core::Price;

use crate::wall::WallConfig;
use crate::warm::Warm;

/// Settings of one agent (`[agents.NAME]`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentConfig {
    pub bin: Option<String>,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub pass_env: Vec<String>,
    /// False: never resume with this agent.
    pub resume: Option<bool>,
    /// How long it may print nothing; zero: for ever.
    pub idle_timeout: Option<Duration>,
}

/// What the user says of a model (`[models.NAME]`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelConfig {
    pub window: Option<u64>,
    pub price: Price,
}

/// Returns what the user says of a model, named as asked for or without `provider/`.
pub(crate) fn model_config<'a>(
    models: &'a BTreeMap<String, ModelConfig>,
    asked: &str,
) -> Option<&'a ModelConfig> {
    let plain = || models.get(asked.rsplit_once('/')?.1);
    models.get(asked).or_else(plain)
}

/// Who could answer what an agent asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Asks {
    /// It is told so at once, and goes on without.
    #[default]
    Nobody,
    /// The turn waits for them.
    Somebody,
}

#[derive(Clone)]
pub struct RunnerConfig {
    /// `REJOIN_HOME`: turn folders lie in it.
    pub home: PathBuf,
    pub agents: BTreeMap<String, AgentConfig>,
    /// The caller's environment, of which the agent gets what concerns it.
    pub env: Vec<(String, String)>,
    pub models: BTreeMap<String, ModelConfig>,
    /// Agents that the configuration describes.
    pub described: Vec<&'static dyn Adapter>,
    pub unrun: Unrun,
    /// Of turns that begin here; one that was begun keeps what it was begun with.
    pub asks: Asks,
    /// After this time without an answer a question need not keep its process; none: it does.
    pub defer_after: Option<Duration>,
    /// Processes may stay up between turns; none: each ends with its turn.
    pub warm: Option<Warm>,
    /// Folders that no process of a turn may read or change.
    pub wall: WallConfig,
}

/// What becomes of a turn for which nothing was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unrun {
    /// As if it had never been sent: whoever sent it is told, and nobody else knows of it.
    #[default]
    TakenBack,
    /// It ends: others were told of it already.
    Ends,
}

impl RunnerConfig {
    /// Built in, or described.
    pub fn adapter(&self, name: &str) -> Option<&'static dyn Adapter> {
        let described = || self.described.iter().copied().find(|a| a.name() == name);
        adapter(name).or_else(described)
    }

    pub fn adapters(&self) -> impl Iterator<Item = &'static dyn Adapter> {
        ADAPTERS.iter().chain(&self.described).copied()
    }

    pub fn agent(&self, name: &str) -> AgentConfig {
        self.agents.get(name).cloned().unwrap_or_default()
    }

    pub fn var(&self, name: &str) -> Option<String> {
        self.env
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.clone())
    }
}
