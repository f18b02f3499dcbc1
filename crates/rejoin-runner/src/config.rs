//! Configuration of the runner: folders, environment, and the settings of each agent.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use rejoin_agents::{ADAPTERS, Adapter, adapter};
use rejoin_core::Price;
use rejoin_hub::Claimed;

use crate::error::{Error, Result};
use crate::wall::WallConfig;
use crate::warm::Warm;

/// Settings of one agent (`[agents.NAME]`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentConfig {
    pub bin: Option<String>,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub pass_env: Vec<String>,
    /// False if sessions of this agent are never resumed.
    pub resume: Option<bool>,
    /// Time for which the agent may print nothing; zero means no limit.
    pub idle_timeout: Option<Duration>,
}

/// User's settings for a model (`[models.NAME]`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelConfig {
    pub window: Option<u64>,
    pub price: Price,
}

/// Returns the user's settings for a model, by the requested name or by that name without
/// `provider/`.
pub fn model_config<'a>(
    models: &'a BTreeMap<String, ModelConfig>,
    asked: &str,
) -> Option<&'a ModelConfig> {
    let plain = || models.get(asked.rsplit_once('/')?.1);
    models.get(asked).or_else(plain)
}

/// Says if a person can answer the questions of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Asks {
    /// The agent gets a refusal at once and continues.
    #[default]
    Nobody,
    /// The turn waits for an answer.
    Somebody,
}

#[derive(Clone)]
pub struct RunnerConfig {
    /// `REJOIN_HOME`, which contains the folders of turns.
    pub home: PathBuf,
    pub agents: BTreeMap<String, AgentConfig>,
    /// The caller's environment, of which an agent gets the part that concerns it.
    pub env: Vec<(String, String)>,
    pub models: BTreeMap<String, ModelConfig>,
    /// Agents that the configuration describes.
    pub described: Vec<&'static dyn Adapter>,
    pub unrun: Unrun,
    /// Setting for turns that begin here; a running turn keeps the setting that it began with.
    pub asks: Asks,
    /// Time without an answer after which a question may be deferred and its process end; None
    /// means never.
    pub defer_after: Option<Duration>,
    /// Limits for processes that stay up between turns; None means that each process ends with its
    /// turn.
    pub warm: Option<Warm>,
    /// Folders that no process of a turn may read or change.
    pub wall: WallConfig,
}

/// Treatment of a turn for which nothing ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unrun {
    /// Withdraw it as if it had never been sent: only its sender learns of it.
    #[default]
    TakenBack,
    /// End it, because others already know of it.
    Ends,
}

impl RunnerConfig {
    /// Returns the adapter of a built-in or described agent.
    pub fn adapter(&self, name: &str) -> Option<&'static dyn Adapter> {
        let described = || self.described.iter().copied().find(|a| a.name() == name);
        adapter(name).or_else(described)
    }

    /// Returns the adapter of a turn's agent.
    pub(crate) fn adapter_of(&self, claimed: &Claimed) -> Result<&'static dyn Adapter> {
        let name = claimed.turn.agent.as_str();
        let adapter = self.adapter(name);
        adapter.ok_or_else(|| Error::UnknownAgent(name.to_owned()))
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
