//! What a request asks for, made into what the hub takes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rejoin_core::{AgentName, Micros, PermissionMode, Scope};
use rejoin_hub::{FreshWish, Hub, Incoming, LateAnswer, Target, TurnFlags, TurnRequest};
use rejoin_runner::failure::Failure;
use rejoin_runner::{IfBusy, look};
use rejoin_store::Conversation;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::folders;
use crate::guard::Caller;
use crate::problem::{Refusal, Result};
use crate::state::App;

/// Names of the user's own.
const KEY: usize = 200;
/// Longest text of one message.
const TEXT: usize = 8 << 20;

/// A file that comes with a message. Its text becomes part of the message, so that every later agent
/// sees it too.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Attachment {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// What is asked of one turn, whichever way its message came.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wishes {
    pub(crate) text: String,
    pub(crate) attachments: Vec<Attachment>,
    pub(crate) agent: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) instructions: Option<String>,
    pub(crate) fresh_session: bool,
    pub(crate) no_reseed: bool,
    pub(crate) relocate: bool,
    pub(crate) permission: Option<String>,
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) deny_tools: Option<Vec<String>>,
    pub(crate) tier: Option<String>,
    pub(crate) client_key: Option<String>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) idle_timeout_ms: Option<u64>,
    pub(crate) max_cost_usd: Option<f64>,
    pub(crate) confirm: bool,
    pub(crate) workdir: Option<String>,
    pub(crate) raw: bool,
    pub(crate) keep_background: bool,
    pub(crate) if_busy: WhileBusy,
    pub(crate) defaults: DefaultsBody,
    pub(crate) notify_url: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) scope: Option<String>,
    /// The message answers a question whose process is gone.
    pub(crate) answers: Option<Box<LateAnswer>>,
}

/// What the sender's own configuration says; where it says nothing, the daemon's counts.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DefaultsBody {
    /// Of a new conversation.
    workdir: Option<String>,
    /// Of a new conversation.
    agent: Option<String>,
    /// Of a new conversation.
    permission: Option<String>,
    /// Of a new conversation.
    scope: Option<String>,
    /// By agent.
    #[serde(default)]
    models: BTreeMap<String, String>,
}

/// What to do while another turn of the conversation runs, or another process has its session open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WhileBusy {
    #[default]
    Wait,
    Fail,
}

/// The fields that every message has, and some more.
macro_rules! message_body {
    ($(#[$doc:meta])* $name:ident { $($(#[$meta:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Deserialize, ToSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            $($(#[$meta])* pub(crate) $field: $type,)*
            /// What is said.
            pub(crate) text: String,
            /// Text files that belong to it.
            #[serde(default)]
            pub(crate) attachments: Vec<Attachment>,
            /// Who answers; none: the agent of the newest turn.
            pub(crate) agent: Option<String>,
            pub(crate) model: Option<String>,
            /// Standing text of the product that embeds this: told once, and again when it changed.
            pub(crate) instructions: Option<String>,
            /// Start a new session and tell it what was said.
            #[serde(default)]
            pub(crate) fresh_session: bool,
            /// Refuse rather than re-tell what was said.
            #[serde(default)]
            pub(crate) no_reseed: bool,
            /// Resume also in another folder.
            #[serde(default)]
            pub(crate) relocate: bool,
            /// `read-only`, `edit`, `full` or `ask`.
            pub(crate) permission: Option<String>,
            /// Exactly these tools.
            pub(crate) tools: Option<Vec<String>>,
            /// Not these tools.
            pub(crate) deny_tools: Option<Vec<String>>,
            pub(crate) tier: Option<String>,
            /// The same key again returns the same turn and never runs it twice.
            pub(crate) client_key: Option<String>,
            /// Stop the turn after this time.
            pub(crate) timeout_ms: Option<u64>,
            /// Stop the turn if the agent prints nothing for this time; 0: never.
            pub(crate) idle_timeout_ms: Option<u64>,
            /// Stop the turn once it has cost this.
            pub(crate) max_cost_usd: Option<f64>,
            /// Go on with a conversation that asks first.
            #[serde(default)]
            pub(crate) confirm: bool,
            /// The folder it works in; none: the conversation's.
            pub(crate) workdir: Option<String>,
            /// Let the agent's CLI read /commands and @files in it.
            #[serde(default)]
            pub(crate) raw: bool,
            /// Let processes live on that the turn leaves.
            #[serde(default)]
            pub(crate) keep_background: bool,
            /// `wait`, or `fail`: then nothing is kept.
            #[serde(default)]
            pub(crate) if_busy: WhileBusy,
            /// Told, signed, when the turn waits and when it has ended.
            pub(crate) notify_url: Option<String>,
        }

        impl $name {
            pub(crate) fn wishes(&self) -> Wishes {
                Wishes {
                    text: self.text.clone(),
                    attachments: self.attachments.clone(),
                    agent: self.agent.clone(),
                    model: self.model.clone(),
                    instructions: self.instructions.clone(),
                    fresh_session: self.fresh_session,
                    no_reseed: self.no_reseed,
                    relocate: self.relocate,
                    permission: self.permission.clone(),
                    tools: self.tools.clone(),
                    deny_tools: self.deny_tools.clone(),
                    tier: self.tier.clone(),
                    client_key: self.client_key.clone(),
                    timeout_ms: self.timeout_ms,
                    idle_timeout_ms: self.idle_timeout_ms,
                    max_cost_usd: self.max_cost_usd,
                    confirm: self.confirm,
                    workdir: self.workdir.clone(),
                    raw: self.raw,
                    keep_background: self.keep_background,
                    if_busy: self.if_busy,
                    defaults: DefaultsBody::default(),
                    notify_url: self.notify_url.clone(),
                    title: None,
                    scope: None,
                    answers: None,
                }
            }
        }
    };
}

message_body! {
    /// A message to a conversation.
    MessageBody {}
}

message_body! {
    /// A message, and the conversation it is for: by id, or by a key under which it is made if it is not
    /// there; by neither a new one.
    SendBody {
        conversation_id: Option<String>,
        key: Option<String>,
        /// Of a new conversation.
        title: Option<String>,
        /// Of a new conversation: `full` or `agent`.
        scope: Option<String>,
        /// What counts where neither the message nor the conversation says anything.
        #[serde(default)]
        defaults: DefaultsBody,
    }
}

/// A conversation in which nothing was said yet.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConversationBody {
    /// Who answers in it; none: the daemon's own choice.
    pub(crate) agent: Option<String>,
    /// The folder it works in.
    pub(crate) workdir: Option<String>,
    /// Your own name for it.
    pub(crate) key: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) title: Option<String>,
    /// `read-only`, `edit`, `full` or `ask`.
    pub(crate) permission: Option<String>,
    /// `full` or `agent`.
    pub(crate) scope: Option<String>,
}

impl WhileBusy {
    pub(crate) fn for_runner(self) -> IfBusy {
        match self {
            Self::Wait => IfBusy::Wait,
            Self::Fail => IfBusy::Fail,
        }
    }
}

impl Wishes {
    /// Checks everything that can be known before the message is kept.
    pub(crate) async fn incoming(
        &self,
        app: &App,
        caller: &Caller,
        hub: &Hub,
        target: Target,
        known: Option<&Conversation>,
    ) -> Result<Incoming> {
        let text = self.whole_text()?;
        if self.tier.is_some() {
            return Err(Refusal::usage("no tiers are set up in this daemon"));
        }
        let agent = self.agent.as_deref().map(agent_name).transpose()?;
        let default_agent = match &self.defaults.agent {
            Some(name) => agent_name(name)?,
            None => app.defaults.agent.clone(),
        };
        let answering = (agent.clone())
            .or_else(|| known.map(|c| c.agent.clone()))
            .unwrap_or_else(|| default_agent.clone());
        must_be_enabled(app, &answering)?;
        let workdir = match &self.workdir {
            Some(dir) => Some(folders::allowed(app, caller, dir)?),
            None => None,
        };
        let here = match &self.defaults.workdir {
            Some(dir) => dir.clone(),
            None => app.defaults.here.to_string_lossy().into_owned(),
        };
        let place = match (&workdir, known) {
            (Some(dir), _) => dir.clone(),
            // The folder may be another one than when it was stored.
            (None, Some(c)) => folders::allowed(app, caller, &c.workdir)?,
            (None, None) => folders::allowed(app, caller, &here)?,
        };
        look::ground(hub, &app.runner.config, answering.as_str(), &place).await?;
        let new = known.is_none();
        let permission = match &self.permission {
            Some(text) => Some(mode(text)?),
            None if new => {
                let own = self.defaults.permission.as_deref().map(mode).transpose()?;
                Some(caller.default_permission(own.or(app.defaults.permission)))
            }
            None => None,
        };
        let scoped = self.scope.as_deref().or(self.defaults.scope.as_deref());
        let name = answering.as_str();
        let own_model = self.defaults.models.get(name);
        let request = TurnRequest {
            fresh: self.fresh_session.then_some(FreshWish::Asked),
            no_reseed: self.no_reseed,
            relocate: self.relocate,
            raw: self.raw,
            keep_background: self.keep_background,
            instructions: self.instructions.clone(),
            notify_url: self.notify_url(app)?,
            timeout_ms: self.timeout_ms.filter(|ms| *ms > 0),
            idle_ms: self.idle_timeout_ms,
            max_cost: max_cost(self.max_cost_usd)?,
            roots: folders::roots(app, caller),
            ..app.defaults.request.clone()
        };
        Ok(Incoming {
            turn: None,
            target,
            text,
            agent,
            default_agent,
            here: place,
            title: self.title.as_deref().map(title).transpose()?,
            scope: scoped.map_or(Ok(app.defaults.scope), scope)?,
            flags: TurnFlags {
                workdir,
                permission,
                tools: self.tools.clone(),
                deny_tools: self.deny_tools.clone(),
                model: self.model.clone(),
                default_model: own_model.or(app.defaults.models.get(name)).cloned(),
            },
            request,
            client_key: self.client_key.as_deref().map(key).transpose()?,
            refuse_if_busy: self.if_busy == WhileBusy::Fail,
            queue_limit: Some(app.options.max_queued),
            confirmed: self.confirm,
            answers: self.answers.clone(),
        })
    }

    fn notify_url(&self, app: &App) -> Result<Option<String>> {
        match &self.notify_url {
            Some(url) if !app.options.notify.allows(url) => Err(Refusal::forbidden(
                "notify_url is not at or below an address that this daemon allows",
            )
            .try_this("[notify] urls in the configuration")),
            url => Ok(url.clone()),
        }
    }

    /// With its files.
    fn whole_text(&self) -> Result<String> {
        let mut text = self.text.clone();
        for file in &self.attachments {
            let name = &file.name;
            if name.is_empty()
                || name.len() > KEY
                || name.contains(['"', '<', '>'])
                || has_control(name)
            {
                return Err(Refusal::usage(
                    "an attachment has a name of 1 to 200 plain characters",
                ));
            }
            let content = file.text.trim_end();
            let _ = write!(text, "\n\n<file name=\"{name}\">\n{content}\n</file>");
        }
        if text.trim().is_empty() {
            return Err(Refusal::usage("the message is empty"));
        }
        if text.contains('\0') {
            return Err(Refusal::usage("the message contains a NUL character"));
        }
        if text.len() > TEXT {
            return Err(Refusal::usage(format!(
                "a message may have {} MiB at most",
                TEXT >> 20
            )));
        }
        Ok(text)
    }
}

pub(crate) fn max_cost(dollars: Option<f64>) -> Result<Option<Micros>> {
    let wrong = || Refusal::usage("max_cost_usd is an amount in dollars above 0");
    let Some(dollars) = dollars else {
        return Ok(None);
    };
    let cost = Micros::from_dollars(dollars).filter(|m| m.0 > 0);
    cost.map(Some).ok_or_else(wrong)
}

pub(crate) fn agent_name(name: &str) -> Result<AgentName> {
    AgentName::new(name).map_err(|e| Refusal::usage(e.to_string()))
}

pub(crate) fn must_be_enabled(app: &App, agent: &AgentName) -> Result<()> {
    if app.defaults.disabled.iter().any(|d| d == agent.as_str()) {
        return Err(Refusal::usage(format!(
            "{agent} is switched off in the configuration"
        )));
    }
    Ok(())
}

pub(crate) fn mode(text: &str) -> Result<PermissionMode> {
    let wrong = |_| Refusal::usage("permission is one of read-only, edit, full, ask");
    text.parse().map_err(wrong)
}

pub(crate) fn scope(text: &str) -> Result<Scope> {
    match text {
        "full" => Ok(Scope::Full),
        "agent" => Ok(Scope::Agent),
        _ => Err(Refusal::usage("scope is one of full, agent")),
    }
}

pub(crate) fn key(text: &str) -> Result<String> {
    if text.is_empty() || text.len() > KEY || has_control(text) {
        return Err(Refusal(Failure::usage(
            "a key has 1 to 200 characters and no control characters",
        )));
    }
    Ok(text.to_owned())
}

pub(crate) fn title(text: &str) -> Result<String> {
    let line = text.trim();
    if line.is_empty() || line.len() > 1000 || has_control(line) {
        return Err(Refusal::usage(
            "a title is one line of 1 to 1000 characters",
        ));
    }
    Ok(line.to_owned())
}

fn has_control(text: &str) -> bool {
    text.chars().any(char::is_control)
}
