//! Handler that predicts the next turn, for one agent or for all.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use rejoin_core::{AgentName, Fresh, PermissionMode};
use rejoin_errors::CommandError;
use rejoin_hub::{Hub, NextError, NextOfAgent, NextView, NextViews, TurnFlags, fields};
use rejoin_runner::doctor_facts;
use rejoin_store::{Conversation, TokenScope};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::find;
use crate::extract::Params;
use crate::folders;
use crate::guard::Caller;
use crate::problem::{Refusal, Result};
use crate::state::App;

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Supposing {
    /// If this agent answered.
    agent: Option<String>,
    /// `*`: a prediction for each installed agent that is not switched off. A list of names, separated by commas: for
    /// these.
    agents: Option<String>,
    /// With this model.
    model: Option<String>,
    /// In this folder.
    workdir: Option<String>,
    /// With these permissions: `read-only`, `edit`, `full` or `ask`.
    permission: Option<String>,
    /// With these tools only, separated by commas.
    tools: Option<String>,
    /// Without these tools, separated by commas.
    deny_tools: Option<String>,
    /// In a new session.
    #[serde(default)]
    fresh_session: bool,
    /// With the session of another folder.
    #[serde(default)]
    relocate: bool,
}

/// Prediction; with `agents` a list of them.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(clippy::large_enum_variant, reason = "one per answer")]
pub(super) enum NextAnswer {
    One(NextView),
    Each(NextViews),
}

/// Predict the next turn
#[utoipa::path(
    get, path = "/api/conversations/{id}/next", operation_id = "foresee", tag = "conversations",
    params(("id" = String, Path, description = "Id, handle or key"), Supposing),
    responses(
        (status = 200, body = NextAnswer),
    )
)]
pub(super) async fn next(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Params(supposing): Params<Supposing>,
) -> Result<Response> {
    caller.must(TokenScope::Read)?;
    let hub = app.hub(&caller);
    let found = find::conversation(&hub, &id).await?;
    let Some(agents) = &supposing.agents else {
        let agent = match &supposing.agent {
            Some(name) => fields::agent(name)?,
            None => found.agent.clone(),
        };
        let next = foresee(&app, &caller, &hub, &found, &agent, &supposing).await?;
        return Ok(Json(NextAnswer::One(next)).into_response());
    };
    if supposing.agent.is_some() {
        return Err(Refusal::usage("use either agent or agents"));
    }
    let mut each = vec![];
    for name in named(&app, &found, agents)? {
        let next = foresee(&app, &caller, &hub, &found, &name, &supposing).await;
        let (next, error) = match next {
            Ok(next) => (Some(next), None),
            Err(Refusal(error)) => {
                // The daemon itself has failed, not one of its agents.
                if error.status() >= 500 {
                    return Err(Refusal(error));
                }
                let error = NextError {
                    code: error.code.to_string(),
                    message: error.message,
                    next: error.next,
                };
                (None, Some(error))
            }
        };
        let agent = name.to_string();
        each.push(NextOfAgent { agent, next, error });
    }
    Ok(Json(NextAnswer::Each(NextViews { agents: each })).into_response())
}

/// Returns the agents that a list selects. The conversation's own agent comes first.
fn named(app: &App, c: &Conversation, list: &str) -> Result<Vec<AgentName>> {
    if list != "*" {
        let names = list.split(',').map(str::trim).filter(|n| !n.is_empty());
        let names: Vec<AgentName> = names
            .map(fields::agent)
            .collect::<std::result::Result<_, _>>()?;
        if names.is_empty() || names.len() > 20 {
            return Err(Refusal::usage("agents is `*`, or a list of 1 to 20 names"));
        }
        return Ok(names);
    }
    let config = &app.runner.config;
    let installed = config.adapters().filter(|adapter| {
        let there = adapter.profile().program.is_none()
            || doctor_facts::program(config, *adapter).is_some();
        there && adapter.name() != "demo"
    });
    let mut names = vec![c.agent.clone()];
    for adapter in installed {
        let name = fields::agent(adapter.name())?;
        if !names.contains(&name) && app.defaults.check_enabled(&name).is_ok() {
            names.push(name);
        }
    }
    Ok(names)
}

async fn foresee(
    app: &App,
    caller: &Caller,
    hub: &Hub,
    found: &Conversation,
    agent: &AgentName,
    supposing: &Supposing,
) -> Result<NextView> {
    let list = |text: &Option<String>| -> Option<Vec<String>> {
        let names = text.as_ref()?.split(',').map(str::trim);
        Some(names.filter(|n| !n.is_empty()).map(str::to_owned).collect())
    };
    let workdir = supposing.workdir.as_deref();
    let permission = supposing.permission.as_deref();
    let permission: Option<PermissionMode> = permission.map(fields::permission).transpose()?;
    let flags = TurnFlags {
        workdir: workdir
            .map(|dir| folders::allowed(app, caller, dir))
            .transpose()?,
        permission,
        tools: list(&supposing.tools),
        deny_tools: list(&supposing.deny_tools),
        model: supposing.model.clone(),
        default_model: app.defaults.models.get(agent.as_str()).cloned(),
        ..TurnFlags::default()
    };
    rejoin_hub::check_model(flags.model.as_deref())?;
    let mut request = flags.over(found, agent, &app.defaults.request);
    if supposing.fresh_session {
        request.fresh = Some(Fresh::Asked);
    }
    request.relocate |= supposing.relocate;
    let mut read = hub.store.read().await?;
    let handle = read.conversations().short_handle(&found.handle).await?;
    drop(read);
    let foreseen = app
        .queue
        .foresee(found.clone(), agent.clone(), request.clone());
    let seen = foreseen.await;
    let seen = seen.ok_or_else(|| CommandError::unavailable("the daemon is about to end"))??;
    Ok(seen.view(handle, agent, &request))
}
