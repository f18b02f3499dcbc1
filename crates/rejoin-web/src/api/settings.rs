//! What belongs to a conversation besides its history, changed.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use rejoin_core::AgentName;
use rejoin_hub::{Changed, Continues, ConversationView, Doing, Wish};
use rejoin_store::Conversation;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::find;
use crate::asked::{agent_name, key, mode, must_be_enabled, scope, title};
use crate::extract::{Body, Dry, Params};
use crate::folders;
use crate::guard::Caller;
use crate::problem::{Refusal, Result};
use crate::state::App;

/// What is to be otherwise; what is not named stays.
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
    /// What a message does that finds it idle: `auto`, `ask` or `never`.
    #[serde(rename = "continue")]
    continues: Option<String>,
    /// Of its agent; empty: the agent's own choice.
    model: Option<String>,
    /// Of its agent.
    tools: Option<Vec<String>>,
    /// Of its agent.
    deny_tools: Option<Vec<String>>,
    /// Of other agents, by their names.
    #[serde(default)]
    agents: BTreeMap<String, AgentBody>,
    archived: Option<bool>,
}

/// What belongs to a conversation and one agent.
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
    /// Whatever the agent has.
    Own(()),
}

/// Null is something else than nothing.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// What a change came to.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ChangedView {
    conversation: ConversationView,
    /// None: only put away, or taken out again.
    changed: Option<Changed>,
}

/// Change what belongs to a conversation
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
    let wishes = wishes(&app, &caller, &found, &body)?;
    let mut changed = None;
    if !wishes.is_empty() {
        let kind = match wishes.as_slice() {
            [Wish::Title(_)] => "rename",
            _ => "set",
        };
        changed = Some(hub.set(found.id, kind, &wishes, dry.doing()).await?);
    }
    if let Some(away) = body.archived
        && dry.doing() == Doing::Now
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

fn wishes(app: &App, caller: &Caller, c: &Conversation, body: &ChangeBody) -> Result<Vec<Wish>> {
    let mut wishes = vec![];
    if let Some(text) = &body.title {
        wishes.push(Wish::Title(title(text)?));
    }
    if let Some(text) = &body.key {
        let some = (!text.is_empty()).then(|| key(text)).transpose()?;
        wishes.push(Wish::Key(some));
    }
    let agent = body.agent.as_deref().map(agent_name).transpose()?;
    if let Some(agent) = &agent {
        known(app, agent)?;
        must_be_enabled(app, agent)?;
        wishes.push(Wish::Agent(agent.clone()));
    }
    if let Some(dir) = &body.workdir {
        wishes.push(Wish::Workdir(folders::allowed(app, caller, dir)?));
    }
    if let Some(text) = &body.permission {
        wishes.push(Wish::Permission(mode(text)?));
    }
    if let Some(text) = &body.scope {
        wishes.push(Wish::Scope(scope(text)?));
    }
    if let Some(resume) = body.resume {
        wishes.push(Wish::Fresh(!resume));
    }
    if let Some(text) = &body.continues {
        wishes.push(Wish::Continues(match text.as_str() {
            "auto" => Continues::Auto,
            "ask" => Continues::Ask,
            "never" => Continues::Never,
            _ => return Err(Refusal::usage("continue is one of auto, ask, never")),
        }));
    }
    let of = agent.unwrap_or_else(|| c.agent.clone());
    if let Some(model) = &body.model {
        let some = (!model.is_empty()).then(|| model.clone());
        wishes.push(Wish::Model(of.clone(), some));
    }
    if let Some(tools) = &body.tools {
        wishes.push(Wish::Tools(of.clone(), Some(tools.clone())));
    }
    if let Some(tools) = &body.deny_tools {
        wishes.push(Wish::DenyTools(of, tools.clone()));
    }
    for (name, body) in &body.agents {
        let agent = agent_name(name)?;
        known(app, &agent)?;
        if let Some(model) = &body.model {
            let some = (!model.is_empty()).then(|| model.clone());
            wishes.push(Wish::Model(agent.clone(), some));
        }
        if let Some(tools) = &body.tools {
            let tools = match tools {
                Tools::These(tools) => Some(tools.clone()),
                Tools::Own(()) => None,
            };
            wishes.push(Wish::Tools(agent.clone(), tools));
        }
        if let Some(tools) = &body.deny_tools {
            wishes.push(Wish::DenyTools(agent, tools.clone()));
        }
    }
    Ok(wishes)
}

fn known(app: &App, agent: &AgentName) -> Result<()> {
    let unknown = || {
        let text = format!("no agent is called `{agent}`");
        Refusal::usage(text).try_this("rejoin doctor")
    };
    let found = app.runner.config.adapter(agent.as_str());
    found.map(drop).ok_or_else(unknown)
}
