//! Tiers: permission levels that an operator defines, lowest first.

use serde::{Deserialize, Serialize};

use crate::agent::AgentName;
use crate::limit::ToolLimit;
use crate::permission::PermissionMode;
use crate::usage::Micros;

/// Permission level with an agent, a model and tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tier {
    pub name: String,
    /// Name of the tier in prompts.
    pub role: String,
    /// `None`: the agent of the conversation.
    pub agent: Option<AgentName>,
    /// `None`: the model of the conversation.
    pub model: Option<String>,
    /// `None`: the mode of the conversation.
    pub permission: Option<PermissionMode>,
    /// `None`: the agent's own set.
    pub tools: Option<Vec<String>>,
    #[serde(default)]
    pub deny_tools: Vec<String>,
    /// Categories of actions that the tier is authorised to take.
    #[serde(default)]
    pub may: Vec<String>,
    /// True if tools that write or run commands are denied.
    #[serde(default)]
    pub dry_run: bool,
    /// Time limit of one turn.
    pub timeout_ms: Option<u64>,
    /// Cost limit of one turn.
    pub max_cost: Option<Micros>,
    /// Minimum time between two climbs into the tier, per conversation.
    #[serde(default)]
    pub cooldown_ms: Option<u64>,
    /// True if a person must approve each climb into the tier.
    #[serde(default)]
    pub approval: bool,
    /// Tools that the turns of the tier may call only so often.
    #[serde(default)]
    pub limit: Vec<ToolLimit>,
    /// Template in place of the built-in escalation prompt.
    #[serde(default)]
    pub prompt: Option<String>,
    /// Configured context window of the model.
    #[serde(default)]
    pub window: Option<u64>,
}

/// The tiers of a configuration, lowest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tiers {
    pub tiers: Vec<Tier>,
    /// Highest tier that a climb may reach.
    pub max_tier: Option<String>,
    /// Cost limit of a chain.
    pub max_cost: Option<Micros>,
    /// True if no climb is allowed.
    pub hold: bool,
}

impl Tiers {
    /// Returns the rank and the tier of this name.
    pub fn find(&self, name: &str) -> Option<(usize, &Tier)> {
        self.tiers
            .iter()
            .enumerate()
            .find(|(_, tier)| tier.name == name)
    }

    /// Returns the names, lowest first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tiers.iter().map(|tier| tier.name.as_str())
    }
}
