//! Builds the input of the hub from the request to send or retry a message: the same code for commands
//! and HTTP.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rejoin_agents::WORKFLOW_AGENT;
use rejoin_core::{AgentName, Fresh, MessageId, PermissionMode, Scope, Tiers};
use rejoin_hub::{
    Hub, Incoming, MessageRequest, RetryOptions, Target, TierTurn, TurnFlags, TurnRequest, fields,
};
use rejoin_store::Conversation;

use crate::config::RunnerConfig;
use crate::error::{Error, Result};
use crate::inspect;

/// Configured defaults for fields that a request leaves out.
#[derive(Debug, Clone)]
pub struct Defaults {
    pub agent: AgentName,
    pub scope: Scope,
    pub permission: Option<PermissionMode>,
    /// Models by agent.
    pub models: BTreeMap<String, String>,
    /// Agents that are switched off.
    pub disabled: Vec<String>,
    pub request: TurnRequest,
    pub tiers: Tiers,
    /// Folder of a conversation for which no folder is named.
    pub here: PathBuf,
}

impl Defaults {
    /// Refuses an agent that is switched off.
    pub fn check_enabled(&self, agent: &AgentName) -> Result<()> {
        if self.disabled.iter().any(|name| name == agent.as_str()) {
            return Err(Error::AgentDisabled(agent.to_string()));
        }
        Ok(())
    }
}

/// A request whose conversation and agent are known, and whose values are checked but for the folder:
/// callers differ in the folders that they may use.
#[derive(Debug)]
pub struct Draft<'a> {
    request: &'a MessageRequest,
    defaults: &'a Defaults,
    known: Option<&'a Conversation>,
    agent: Option<AgentName>,
    default_agent: AgentName,
    answering: AgentName,
    tier: Option<TierTurn>,
}

impl<'a> Draft<'a> {
    /// Checks the agent of a request. `known` is the conversation, if it exists.
    pub fn new(
        request: &'a MessageRequest,
        defaults: &'a Defaults,
        known: Option<&'a Conversation>,
    ) -> Result<Self> {
        let agent = request.agent.as_deref().map(fields::agent).transpose()?;
        let tier = tier_of(request, defaults)?;
        let tiers_agent = tier.as_ref().and_then(|turn| turn.tier()?.agent.clone());
        let agent = match (agent, tiers_agent) {
            (Some(asked), Some(tiers)) if asked != tiers => {
                let text = format!("the tier runs {tiers}, not {asked}");
                return Err(usage(text));
            }
            (asked, tiers) => asked.or(tiers),
        };
        let default_agent = match &request.defaults.agent {
            Some(name) => fields::agent(name)?,
            None => defaults.agent.clone(),
        };
        let answering = agent
            .clone()
            .or_else(|| known.map(|conversation| conversation.agent.clone()))
            .unwrap_or_else(|| default_agent.clone());
        defaults.check_enabled(&answering)?;
        if answering.as_str() == WORKFLOW_AGENT && !request.workflow_step {
            let text = "this conversation is a command step of a workflow, and takes no messages; name an agent";
            return Err(usage(text.into()));
        }
        Ok(Self {
            request,
            defaults,
            known,
            agent,
            default_agent,
            answering,
            tier,
        })
    }

    /// Returns the agent that answers.
    pub fn answering(&self) -> &AgentName {
        &self.answering
    }

    /// Returns the folder that the turn enters: the request's, else the conversation's, else the
    /// sender's, else this process's.
    pub fn folder(&self) -> String {
        let named = self.request.workdir.clone();
        let named = named.or_else(|| self.known.map(|c| c.workdir.clone()));
        let named = named.or_else(|| self.request.defaults.workdir.clone());
        named.unwrap_or_else(|| self.defaults.here.to_string_lossy().into_owned())
    }

    /// Builds the input of [`Hub::accept`]. `folder` is the real path of [`Self::folder`]. A missing
    /// agent or folder is an error before the message is accepted.
    pub async fn incoming(
        self,
        hub: &Hub,
        config: &RunnerConfig,
        target: Target,
        folder: String,
    ) -> Result<Incoming> {
        let request = self.request;
        let text = request.whole_text()?;
        let title = request.title.as_deref().map(fields::title).transpose()?;
        let scope = (request.scope.as_deref()).or(request.defaults.scope.as_deref());
        let scope = scope.map_or(Ok(self.defaults.scope), fields::scope)?;
        let client_key = request.client_key.as_deref().map(fields::key).transpose()?;
        let (flags, options) = self.options(hub, config, &folder).await?;
        Ok(Incoming {
            turn: None,
            target,
            text,
            agent: self.agent,
            default_agent: self.default_agent,
            here: folder,
            title,
            scope,
            flags,
            request: options,
            client_key,
            if_busy: request.if_busy,
            queue_limit: None,
            confirmed: request.confirm,
            answers: request.answers.clone(),
            occurrence: None,
        })
    }

    /// Builds the input of [`Hub::retry`]. `folder` is the real path of [`Self::folder`].
    pub async fn retry(
        self,
        hub: &Hub,
        config: &RunnerConfig,
        message: MessageId,
        folder: &str,
    ) -> Result<RetryOptions> {
        let request = self.request;
        let client_key = request.client_key.as_deref().map(fields::key).transpose()?;
        let (flags, options) = self.options(hub, config, folder).await?;
        Ok(RetryOptions {
            message,
            agent: self.agent,
            flags,
            request: options,
            client_key,
            confirmed: request.confirm,
            queue_limit: None,
        })
    }

    async fn options(
        &self,
        hub: &Hub,
        config: &RunnerConfig,
        folder: &str,
    ) -> Result<(TurnFlags, TurnRequest)> {
        let (request, defaults) = (self.request, self.defaults);
        let (name, sender) = (self.answering.as_str(), &request.defaults);
        let mode = |text: &String| fields::permission(text);
        let own_mode = sender.permission.as_ref().map(mode).transpose()?;
        let permission = match &request.permission {
            Some(text) => Some(fields::permission(text)?),
            None if self.known.is_none() => {
                let mode = own_mode.or(defaults.permission).unwrap_or_default();
                Some(hub.ceiling.map_or(mode, |ceiling| mode.at_most(ceiling)))
            }
            None => None,
        };
        let flags = TurnFlags {
            workdir: request.workdir.as_ref().map(|_| folder.to_owned()),
            permission,
            tools: request.tools.clone(),
            deny_tools: request.deny_tools.clone(),
            model: request.model.as_deref().map(fields::model).transpose()?,
            default_model: sender
                .models
                .get(name)
                .or(defaults.models.get(name))
                .cloned(),
            tier: self.tier.clone(),
        };
        let options = TurnRequest {
            fresh: request.fresh_session.then_some(Fresh::Asked),
            no_reseed: request.no_reseed,
            relocate: request.relocate,
            raw: request.raw,
            keep_background: request.keep_background,
            timeout_ms: request.timeout_ms.filter(|ms| *ms > 0),
            idle_ms: request.idle_timeout_ms,
            max_cost: request.max_cost_usd.map(fields::max_cost).transpose()?,
            instructions: request.instructions.clone(),
            notify_url: request.notify_url.clone(),
            ..defaults.request.clone()
        };
        inspect::preflight(hub, config, name, folder).await?;
        Ok((flags, options))
    }
}

/// Returns the tier that a request names.
fn tier_of(request: &MessageRequest, defaults: &Defaults) -> Result<Option<TierTurn>> {
    let Some(name) = &request.tier else {
        if request.climb {
            return Err(usage("a climb needs a tier to begin with".into()));
        }
        return Ok(None);
    };
    let tiers = (request.defaults.tiers.as_ref()).unwrap_or(&defaults.tiers);
    if tiers.find(name).is_none() {
        let known: Vec<&str> = tiers.names().collect();
        return Err(usage(match known.as_slice() {
            [] => "no tiers are configured".to_owned(),
            known => format!(
                "there is no tier `{name}`; the tiers are {}",
                known.join(", ")
            ),
        }));
    }
    let own = request.permission.is_some() || request.tools.is_some();
    if own || request.deny_tools.is_some() || request.model.is_some() {
        let text = "a tier sets the model, the permission and the tools of its turn: name the tier or these";
        return Err(usage(text.to_owned()));
    }
    Ok(Some(TierTurn {
        name: name.clone(),
        tiers: tiers.clone(),
        climb: request.climb,
        ceiling: None,
        findings_for: None,
    }))
}

fn usage(text: String) -> Error {
    rejoin_hub::Error::Usage(text).into()
}
