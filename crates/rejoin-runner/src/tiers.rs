//! The tiers of a configuration for people and scripts: the parts that each agent enforces, by which
//! mechanism, and the parts that it cannot.

use rejoin_agents::{Adapter, EnforcedPart, enforced_parts};
use rejoin_core::{Micros, PermissionMode, Tier, Tiers, ToolLimit};
use serde::Serialize;

/// The configured tiers, lowest first.
#[derive(Debug, Clone, Serialize)]
pub struct TiersView {
    pub tiers: Vec<TierView>,
    /// Parts of the configuration that are legal, and probably a mistake.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct TierView {
    pub name: String,
    pub role: String,
    pub agent: Option<String>,
    pub model: Option<String>,
    pub permission: Option<PermissionMode>,
    pub tools: Option<Vec<String>>,
    pub deny_tools: Vec<String>,
    pub may: Vec<String>,
    pub dry_run: bool,
    pub timeout_ms: Option<u64>,
    pub max_cost_usd: Option<f64>,
    pub cooldown_ms: Option<u64>,
    /// True if a person must approve each climb into the tier.
    pub approval: bool,
    /// Calls that the tier may make within a time.
    pub limit: Vec<ToolLimit>,
    /// Agents that may run the tier: its own, or all.
    pub agents: Vec<AgentParts>,
}

/// How one agent enforces a tier.
#[derive(Debug, Clone, Serialize)]
pub struct AgentParts {
    pub agent: String,
    pub enforced: Vec<EnforcedPart>,
    pub impossible: Vec<EnforcedPart>,
}

impl TiersView {
    /// Builds the view. `mode` applies where a tier has none.
    pub fn new(
        tiers: &Tiers,
        adapters: &[&'static dyn Adapter],
        mode: PermissionMode,
        as_root: bool,
    ) -> Self {
        let view = |tier: &Tier| TierView {
            name: tier.name.clone(),
            role: tier.role.clone(),
            agent: tier.agent.as_ref().map(ToString::to_string),
            model: tier.model.clone(),
            permission: tier.permission,
            tools: tier.tools.clone(),
            deny_tools: tier.deny_tools.clone(),
            may: tier.may.clone(),
            dry_run: tier.dry_run,
            timeout_ms: tier.timeout_ms,
            max_cost_usd: tier.max_cost.map(Micros::dollars),
            cooldown_ms: tier.cooldown_ms,
            approval: tier.approval,
            limit: tier.limit.clone(),
            agents: adapters
                .iter()
                .filter(|a| {
                    tier.agent
                        .as_ref()
                        .is_none_or(|own| own.as_str() == a.name())
                })
                .map(|adapter| AgentParts::new(tier, *adapter, mode, as_root))
                .collect(),
        };
        Self {
            tiers: tiers.tiers.iter().map(view).collect(),
            warnings: warnings(tiers),
        }
    }

    /// Returns the tiers that their agent cannot run, each with the agent and one sentence. A tier
    /// without an agent is run by `default`.
    pub fn impossible<'a>(&'a self, default: &'a str) -> Vec<(&'a str, &'a str, &'a str)> {
        let mut found = vec![];
        for tier in &self.tiers {
            let agent = tier.agent.as_deref().unwrap_or(default);
            let parts = tier.agents.iter().find(|parts| parts.agent == agent);
            if let Some(part) = parts.and_then(|parts| parts.impossible.first()) {
                found.push((tier.name.as_str(), agent, part.by.as_str()));
            }
        }
        found
    }
}

impl AgentParts {
    fn new(tier: &Tier, adapter: &dyn Adapter, mode: PermissionMode, as_root: bool) -> Self {
        let parts = enforced_parts(tier, mode, adapter, as_root);
        let (enforced, impossible) = parts.into_iter().partition(|part| part.enforced);
        Self {
            agent: adapter.name().to_owned(),
            enforced,
            impossible,
        }
    }
}

/// Returns true if an agent that starts here runs as root without a sandbox, which some refuse.
pub fn as_root() -> bool {
    nix::unistd::geteuid().is_root() && std::env::var_os("IS_SANDBOX").is_none()
}

fn warnings(tiers: &Tiers) -> Vec<String> {
    let mut found = vec![];
    for (rank, tier) in tiers.tiers.iter().enumerate() {
        let name = &tier.name;
        if tier.may.is_empty() {
            found.push(format!(
                "tier `{name}` has an empty `may`: it is not told what it is authorised to do"
            ));
        }
        for lower in tiers.tiers.iter().take(rank) {
            let denied = tier.deny_tools.iter().find(|denied| allows(lower, denied));
            if let Some(denied) = denied {
                let below = &lower.name;
                found.push(format!(
                    "tier `{name}` denies `{denied}`, which the lower tier `{below}` allows"
                ));
            }
        }
    }
    found
}

/// Returns true if the tier allows what the rule `denied` of another tier denies.
fn allows(tier: &Tier, denied: &str) -> bool {
    let tool = denied.split('(').next().unwrap_or(denied);
    let denies = |rule: &String| rule == denied || rule == tool;
    let named = |tools: &Vec<String>| tools.iter().any(|name| name == tool);
    !tier.dry_run && !tier.deny_tools.iter().any(denies) && tier.tools.as_ref().is_some_and(named)
}
