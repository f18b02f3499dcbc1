//! Options of a turn besides its text. They are stored with the turn, so that a later runner uses
//! the same.

use std::path::Path;

use rejoin_agents::{adapter, tier_permissions};
use rejoin_core::{
    AgentName, Fresh, LimitState, Micros, PermissionMode, Permissions, Policy, Request, Tier,
    Tiers, is_word,
};
use rejoin_store::{AgentSettings, Conversation};
use serde::{Deserialize, Serialize};

use crate::climb::PendingClimb;
use crate::error::{Error, Result};

/// Options of one turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnRequest {
    pub workdir: String,
    pub model: Option<String>,
    #[serde(rename = "envelope")]
    pub permissions: Permissions,
    pub fresh: Option<Fresh>,
    pub no_reseed: bool,
    pub relocate: bool,
    pub raw: bool,
    pub keep_background: bool,
    pub timeout_ms: Option<u64>,
    /// Time for which the agent may print nothing. Zero: no limit. `None`: as configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    pub max_cost: Option<Micros>,
    #[serde(flatten)]
    pub policy: Policy,
    /// Tier of the turn. `permissions` are then those of the tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<TierTurn>,
    /// Limits of the tier, with the calls that are left to this turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitState>,
    /// Standing instructions of the product that embeds rejoin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Webhook for notifications about this turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notify_url: Option<String>,
    /// Trace that the turn belongs to (W3C Trace Context).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// Folders that the turn must stay beneath, by their real paths; empty: any folder. Checked
    /// against the folder that the turn enters, at every run and by every runner.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<String>,
    /// Digest of the message as sent. Set if the request has an idempotency key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// Tier of a turn, with the tiers that were configured when its chain began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierTurn {
    pub name: String,
    pub tiers: Tiers,
    /// True if the chain climbs by policy.
    #[serde(default)]
    pub climb: bool,
    /// Ceiling of the caller, which holds for every climb of the chain.
    #[serde(default)]
    pub ceiling: Option<PermissionMode>,
    /// Set if the turn writes down the findings of its tier, before this climb.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub findings_for: Option<PendingClimb>,
}

impl TierTurn {
    /// Returns the tier itself.
    pub fn tier(&self) -> Option<&Tier> {
        self.tiers.find(&self.name).map(|(_, tier)| tier)
    }
}

impl TurnRequest {
    /// Returns the value of a `traceparent` header if it has only characters that W3C Trace Context
    /// allows, else `None`.
    pub fn well_formed_trace(given: &str) -> Option<String> {
        let fits = |c: u8| c.is_ascii_hexdigit() || c == b'-';
        let fits = !given.is_empty() && given.len() <= 100 && given.bytes().all(fits);
        fits.then(|| given.to_owned())
    }

    /// Returns true if the turn may work in the folder with this real path.
    pub fn may_enter(&self, real: &Path) -> bool {
        self.roots.is_empty() || self.roots.iter().any(|root| real.starts_with(root))
    }

    pub fn for_decision(&self) -> Request {
        Request {
            fresh: self.fresh,
            no_reseed: self.no_reseed,
            relocate: self.relocate,
        }
    }
}

/// Behaviour while another turn of the conversation runs, or another process uses its session or
/// its bundle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = WhileBusy))]
#[serde(rename_all = "lowercase")]
pub enum IfBusy {
    #[default]
    Wait,
    /// Refuse the message, so that nothing is stored.
    Fail,
}

/// Flags of one turn, which override the settings of the conversation. A turn and its prediction
/// are built from the same flags.
#[derive(Debug, Clone, Default)]
pub struct TurnFlags {
    /// `None`: the conversation's folder.
    pub workdir: Option<String>,
    pub permission: Option<PermissionMode>,
    pub tools: Option<Vec<String>>,
    pub deny_tools: Option<Vec<String>>,
    pub model: Option<String>,
    /// Configured model, used if neither flag nor conversation names one.
    pub default_model: Option<String>,
    /// Tier of the turn: its permissions replace those of the conversation.
    pub tier: Option<TierTurn>,
}

/// Refuses a name that a CLI could take for a flag or for more than one argument.
pub fn check_model(model: Option<&str>) -> Result<()> {
    match model {
        Some(model) if !is_word(model) => Err(Error::Usage(format!(
            "`{}` cannot be a model: a model is one word that does not begin with `-`",
            model.escape_debug()
        ))),
        Some(_) | None => Ok(()),
    }
}

impl TurnFlags {
    /// Fills unset flags with the options of an earlier turn. Models and tools are kept only for
    /// the same agent: another agent names them differently.
    #[must_use]
    pub fn after(mut self, was: &TurnRequest, same_agent: bool) -> Self {
        if was.tier.is_some() && self.permission.is_none() {
            self.tier = self.tier.or_else(|| was.tier.clone());
            self.workdir = self.workdir.or_else(|| Some(was.workdir.clone()));
            return self;
        }
        self.permission = self.permission.or(Some(was.permissions.mode));
        self.workdir = self.workdir.or_else(|| Some(was.workdir.clone()));
        if same_agent {
            self.tools = self.tools.or_else(|| was.permissions.tools.clone());
            self.deny_tools =
                (self.deny_tools).or_else(|| Some(was.permissions.deny_tools.clone()));
            self.model = self.model.or_else(|| was.model.clone());
        }
        self
    }

    /// Returns the settings that these flags fix for an agent with its first turn.
    pub fn settled(&self) -> AgentSettings {
        AgentSettings {
            model: self.model.clone(),
            tools: self.tools.clone(),
            deny_tools: self.deny_tools.clone().unwrap_or_default(),
        }
    }

    /// Combines the flags, the conversation's settings and the other options in `request`.
    pub fn over(&self, c: &Conversation, agent: &AgentName, request: &TurnRequest) -> TurnRequest {
        let settings = c.settings.get(agent.as_str()).cloned();
        let own = settings.unwrap_or_else(|| self.settled());
        if let Some(tier) = self.tier.as_ref().and_then(TierTurn::tier) {
            return self.of_tier(tier, c, agent, own.model, request);
        }
        // A denied tool stays denied: flags of a turn can only add to the list.
        let mut deny_tools = own.deny_tools;
        for denied in self.deny_tools.iter().flatten() {
            if !deny_tools.contains(denied) {
                deny_tools.push(denied.clone());
            }
        }
        TurnRequest {
            workdir: self.workdir.clone().unwrap_or_else(|| c.workdir.clone()),
            model: (self.model.clone().or(own.model)).or_else(|| self.default_model.clone()),
            permissions: Permissions {
                mode: self.permission.unwrap_or(c.permission),
                tools: self.tools.clone().or(own.tools),
                deny_tools,
                commands: false,
            },
            fresh: request.fresh.or(c.fresh.then_some(Fresh::Always)),
            ..request.clone()
        }
    }

    /// Returns the options of a turn of a tier: permissions and limits are the tier's, and nothing
    /// of the conversation's lists is left.
    fn of_tier(
        &self,
        tier: &Tier,
        c: &Conversation,
        agent: &AgentName,
        own_model: Option<String>,
        request: &TurnRequest,
    ) -> TurnRequest {
        let least = |own: Option<u64>, tiers: Option<u64>| own.into_iter().chain(tiers).min();
        let mode = self.permission.unwrap_or(c.permission);
        let model = self.model.clone().or_else(|| tier.model.clone());
        TurnRequest {
            workdir: self.workdir.clone().unwrap_or_else(|| c.workdir.clone()),
            model: model.or(own_model).or_else(|| self.default_model.clone()),
            permissions: tier_permissions(tier, mode, adapter(agent.as_str())),
            fresh: request.fresh.or(c.fresh.then_some(Fresh::Always)),
            timeout_ms: least(request.timeout_ms, tier.timeout_ms),
            max_cost: request.max_cost.into_iter().chain(tier.max_cost).min(),
            tier: self.tier.clone(),
            ..request.clone()
        }
    }
}
