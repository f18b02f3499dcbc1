//! Handler for changes to the settings of a conversation.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use rejoin_core::AgentName;
use rejoin_hub::{ChangeMode, Changed, Continues, ConversationView, Setting, fields};
use rejoin_store::Conversation;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::find;
use crate::extract::{Body, Dry, Params};
use crate::folders;
use crate::guard::Caller;
use crate::problem::{Refusal, Result};
use crate::state::App;

/// Settings to change; a setting that is not named stays.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangeBody {
    title: Option<String>,
    /// Empty: it has none any more.
    key: Option<String>,
    agent: Option<String>,
    workdir: Option<String>,
    permission: Option<String>,
    scope: Option<String>,
    /// False: no turn of it resumes.
    resume: Option<bool>,
    /// Effect of a message on an idle conversation: `auto`, `ask` or `never`.
    #[serde(rename = "continue")]
    continues: Option<String>,
    /// Model of the conversation's agent; empty: the agent's own choice.
    model: Option<String>,
    /// Allowed tools of the conversation's agent.
    tools: Option<Vec<String>>,
    /// Denied tools of the conversation's agent.
    deny_tools: Option<Vec<String>>,
    /// Settings of other agents, by name.
    #[serde(default)]
    agents: BTreeMap<String, AgentBody>,
    archived: Option<bool>,
}

/// Settings of an agent in a conversation.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentBody {
    /// Empty: its own choice.
    model: Option<String>,
    /// Exactly these; null: its own set.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    tools: Option<Tools>,
    deny_tools: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Tools {
    These(Vec<String>),
    /// Null: the agent's own tools.
    Own(()),
}

/// Tells null from a missing field.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// The result of a change.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ChangedView {
    conversation: ConversationView,
    /// Changed history; none: the conversation was only archived, or taken out of the archive.
    changed: Option<Changed>,
}

/// Change settings of a conversation
#[utoipa::path(
    patch, path = "/api/conversations/{id}", operation_id = "changeConversation", tag = "conversations",
    params(("id" = String, Path, description = "Id, handle or key"), Dry),
    request_body = ChangeBody,
    responses(
        (status = 200, description = "It is so now", body = ChangedView),
    )
)]
pub(super) async fn change(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Params(dry): Params<Dry>,
    Body(body): Body<ChangeBody>,
) -> Result<Json<ChangedView>> {
    let hub = app.hub(&caller);
    let found = find::conversation(&hub, &id).await?;
    let settings = settings(&app, &caller, &found, &body)?;
    let mut changed = None;
    if !settings.is_empty() {
        let kind = match settings.as_slice() {
            [Setting::Title(_)] => "rename",
            _ => "set",
        };
        changed = Some(hub.set(found.id, kind, &settings, dry.doing()).await?);
    }
    if let Some(away) = body.archived
        && dry.doing() == ChangeMode::Now
    {
        hub.archive(found.id, away).await?;
    }
    app.runner.wake.send_modify(|n| *n += 1);
    let now = find::conversation(&hub, &found.id.to_string()).await?;
    Ok(Json(ChangedView {
        conversation: hub.conversation_view(&now).await?,
        changed,
    }))
}

fn settings(
    app: &App,
    caller: &Caller,
    c: &Conversation,
    body: &ChangeBody,
) -> Result<Vec<Setting>> {
    let mut settings = vec![];
    if let Some(text) = &body.title {
        settings.push(Setting::Title(fields::title(text)?));
    }
    if let Some(text) = &body.key {
        let some = (!text.is_empty()).then(|| fields::key(text)).transpose()?;
        settings.push(Setting::Key(some));
    }
    let agent = body.agent.as_deref().map(fields::agent).transpose()?;
    if let Some(agent) = &agent {
        known(app, agent)?;
        app.defaults.check_enabled(agent)?;
        settings.push(Setting::Agent(agent.clone()));
    }
    if let Some(dir) = &body.workdir {
        settings.push(Setting::Workdir(folders::allowed(app, caller, dir)?));
    }
    if let Some(text) = &body.permission {
        settings.push(Setting::Permission(fields::permission(text)?));
    }
    if let Some(text) = &body.scope {
        settings.push(Setting::Scope(fields::scope(text)?));
    }
    if let Some(resume) = body.resume {
        settings.push(Setting::Fresh(!resume));
    }
    if let Some(text) = &body.continues {
        settings.push(Setting::Continues(match text.as_str() {
            "auto" => Continues::Auto,
            "ask" => Continues::Ask,
            "never" => Continues::Never,
            _ => return Err(Refusal::usage("continue is one of auto, ask, never")),
        }));
    }
    let of = agent.unwrap_or_else(|| c.agent.clone());
    if let Some(model) = &body.model {
        let some = (!model.is_empty()).then(|| model.clone());
        settings.push(Setting::Model(of.clone(), some));
    }
    if let Some(tools) = &body.tools {
        settings.push(Setting::Tools(of.clone(), Some(tools.clone())));
    }
    if let Some(tools) = &body.deny_tools {
        settings.push(Setting::DenyTools(of, tools.clone()));
    }
    for (name, body) in &body.agents {
        let agent = fields::agent(name)?;
        known(app, &agent)?;
        if let Some(model) = &body.model {
            let some = (!model.is_empty()).then(|| model.clone());
            settings.push(Setting::Model(agent.clone(), some));
        }
        if let Some(tools) = &body.tools {
            let tools = match tools {
                Tools::These(tools) => Some(tools.clone()),
                Tools::Own(()) => None,
            };
            settings.push(Setting::Tools(agent.clone(), tools));
        }
        if let Some(tools) = &body.deny_tools {
            settings.push(Setting::DenyTools(agent, tools.clone()));
        }
    }
    Ok(settings)
}

fn known(app: &App, agent: &AgentName) -> Result<()> {
    let unknown = || {
        let text = format!("no agent is called `{agent}`");
        Refusal::usage(text).try_this("rejoin doctor")
    };
    let found = app.runner.config.adapter(agent.as_str());
    found.map(drop).ok_or_else(unknown)
}
