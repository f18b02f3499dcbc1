//! What the sender asked for beyond the text: kept with the turn, so that whoever runs it later
//! runs the same.

use std::path::Path;

use rejoin_core::{AgentName, Envelope, Fresh, Micros, PermissionMode, Policy, Request, is_word};
use rejoin_store::{AgentSettings, Conversation};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// One turn's wishes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnRequest {
    pub workdir: String,
    pub model: Option<String>,
    pub envelope: Envelope,
    pub fresh: Option<FreshWish>,
    pub no_reseed: bool,
    pub relocate: bool,
    pub raw: bool,
    pub keep_background: bool,
    pub timeout_ms: Option<u64>,
    /// How long the agent may print nothing; zero: for ever. None: as configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    pub max_cost: Option<Micros>,
    pub context_threshold: f64,
    pub breaker: u32,
    pub model_change: rejoin_core::ModelChange,
    pub after_compaction: rejoin_core::AfterCompaction,
    /// Standing text of the product that embeds this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Who hears what becomes of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notify_url: Option<String>,
    /// The trace that it is part of (W3C Trace Context).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// Folders that the turn must stay beneath, by their real paths; none: any folder. Compared with the folder
    /// that the turn enters, whenever it runs and whoever runs it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<String>,
    /// Of the message as it was sent, where the same may be sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl Default for TurnRequest {
    fn default() -> Self {
        let policy = Policy::default();
        Self {
            workdir: String::new(),
            model: None,
            envelope: Envelope::default(),
            fresh: None,
            no_reseed: false,
            relocate: false,
            raw: false,
            keep_background: false,
            timeout_ms: None,
            idle_ms: None,
            max_cost: None,
            context_threshold: policy.context_threshold,
            breaker: policy.breaker,
            model_change: policy.model_change,
            after_compaction: policy.after_compaction,
            instructions: None,
            notify_url: None,
            traceparent: None,
            roots: vec![],
            digest: None,
        }
    }
}

/// Who wants a new session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FreshWish {
    Asked,
    Retry,
    Always,
}

impl TurnRequest {
    /// The trace that a turn is part of, where it is written as W3C Trace Context has it.
    pub fn well_formed_trace(given: &str) -> Option<String> {
        let fits = |c: u8| c.is_ascii_hexdigit() || c == b'-';
        let fits = !given.is_empty() && given.len() <= 100 && given.bytes().all(fits);
        fits.then(|| given.to_owned())
    }

    /// Says if the turn may work in the folder with this real path.
    pub fn may_enter(&self, real: &Path) -> bool {
        self.roots.is_empty() || self.roots.iter().any(|root| real.starts_with(root))
    }

    pub fn policy(&self) -> Policy {
        Policy {
            context_threshold: self.context_threshold,
            breaker: self.breaker,
            model_change: self.model_change,
            after_compaction: self.after_compaction,
        }
    }

    pub fn for_decision(&self) -> Request {
        let fresh = self.fresh.map(|wish| match wish {
            FreshWish::Asked => Fresh::Asked,
            FreshWish::Retry => Fresh::Retry,
            FreshWish::Always => Fresh::Always,
        });
        Request {
            fresh,
            no_reseed: self.no_reseed,
            relocate: self.relocate,
        }
    }
}

/// Flags of one turn, over what belongs to the conversation. A turn and its prediction are made from
/// the same.
#[derive(Debug, Clone, Default)]
pub struct TurnFlags {
    /// None: the conversation's folder.
    pub workdir: Option<String>,
    pub permission: Option<PermissionMode>,
    pub tools: Option<Vec<String>>,
    pub deny_tools: Option<Vec<String>>,
    pub model: Option<String>,
    /// The configured one, where neither flag nor conversation says anything.
    pub default_model: Option<String>,
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
    /// What is not said now is as it was asked for before. Models and tools have other names with
    /// another agent.
    #[must_use]
    pub fn after(mut self, was: &TurnRequest, same_agent: bool) -> Self {
        self.permission = self.permission.or(Some(was.envelope.mode));
        self.workdir = self.workdir.or_else(|| Some(was.workdir.clone()));
        if same_agent {
            self.tools = self.tools.or_else(|| was.envelope.tools.clone());
            self.deny_tools = (self.deny_tools).or_else(|| Some(was.envelope.deny_tools.clone()));
            self.model = self.model.or_else(|| was.model.clone());
        }
        self
    }

    /// What they settle for an agent when they come with its first turn.
    pub fn settled(&self) -> AgentSettings {
        AgentSettings {
            model: self.model.clone(),
            tools: self.tools.clone(),
            deny_tools: self.deny_tools.clone().unwrap_or_default(),
        }
    }

    /// The turn's own request; what it asks for besides comes in `request`.
    pub fn over(&self, c: &Conversation, agent: &AgentName, request: &TurnRequest) -> TurnRequest {
        let settings = c.settings.get(agent.as_str()).cloned();
        let own = settings.unwrap_or_else(|| self.settled());
        // What was denied once stays denied: a flag of one turn may add to it.
        let mut deny_tools = own.deny_tools;
        for denied in self.deny_tools.iter().flatten() {
            if !deny_tools.contains(denied) {
                deny_tools.push(denied.clone());
            }
        }
        TurnRequest {
            workdir: self.workdir.clone().unwrap_or_else(|| c.workdir.clone()),
            model: (self.model.clone().or(own.model)).or_else(|| self.default_model.clone()),
            envelope: Envelope {
                mode: self.permission.unwrap_or(c.permission),
                tools: self.tools.clone().or(own.tools),
                deny_tools,
            },
            fresh: request.fresh.or(c.fresh.then_some(FreshWish::Always)),
            ..request.clone()
        }
    }
}
