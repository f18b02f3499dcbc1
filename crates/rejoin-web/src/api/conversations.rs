//! Conversations: made, listed, shown, changed, deleted; and what would happen next.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use rejoin_hub::{
    ConversationView, ListView, ListWish, NewWish, NextView, PageRequest, TurnFlags, WholeView,
};
use rejoin_runner::failure::Failure;
use rejoin_runner::look;
use rejoin_store::TokenScope;
use serde::Deserialize;
use utoipa::IntoParams;

use super::find;
use crate::asked::{ConversationBody, agent_name, key, mode, must_be_enabled, scope, title};
use crate::extract::{Body, Params};
use crate::folders;
use crate::guard::Caller;
use crate::problem::{Refusal, Result};
use crate::state::App;

/// A page, if nothing is said.
const PAGE: i64 = 50;

/// Begin a conversation without saying anything yet
#[utoipa::path(
    post, path = "/api/conversations", operation_id = "createConversation", tag = "conversations",
    params(("Idempotency-Key" = Option<String>, Header)),
    request_body = ConversationBody,
    responses(
        (status = 201, description = "It was made", body = ConversationView),
        (status = 200, description = "It was made before, under the same Idempotency-Key", body = ConversationView),
    )
)]
pub(super) async fn create(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<ConversationBody>,
) -> Result<(StatusCode, Json<ConversationView>)> {
    let hub = app.hub(&caller);
    let agent = match &body.agent {
        Some(name) => agent_name(name)?,
        None => app.defaults.agent.clone(),
    };
    must_be_enabled(&app, &agent)?;
    let here = app.defaults.here.to_string_lossy();
    let workdir = body.workdir.as_deref().unwrap_or(&here);
    let workdir = folders::allowed(&app, &caller, workdir)?;
    look::ground(&hub, &app.runner.config, agent.as_str(), &workdir).await?;
    let permission = body.permission.as_deref().map(mode).transpose()?;
    let wish = NewWish {
        key: body.key.as_deref().map(key).transpose()?,
        title: body.title.as_deref().map(title).transpose()?,
        agent,
        model: body.model.clone(),
        workdir,
        permission: permission
            .unwrap_or_else(|| caller.default_permission(app.defaults.permission)),
        scope: body
            .scope
            .as_deref()
            .map_or(Ok(app.defaults.scope), scope)?,
        client_key: super::send::idempotency_key(&headers)?,
    };
    let (made, new) = hub.create(&wish).await?;
    let status = if new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, Json(hub.conversation_view(&made).await?)))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Listing {
    /// Go on after a page: its `next_cursor`.
    cursor: Option<String>,
    /// Only those in which these words were said, best first.
    q: Option<String>,
    /// Only those whose newest turn this agent answered.
    agent: Option<String>,
    /// `idle`, `queued`, `running` or `waiting`.
    state: Option<String>,
    /// Only those of this folder.
    workdir: Option<String>,
    /// Those that were put away, instead of the others.
    #[serde(default)]
    archived: bool,
    /// How many; 50 if nothing is said, 1000 at most.
    limit: Option<i64>,
}

/// List conversations, newest first
#[utoipa::path(
    get, path = "/api/conversations", operation_id = "listConversations", tag = "conversations",
    params(Listing),
    responses(
        (status = 200, body = ListView),
    )
)]
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(listing): Params<Listing>,
) -> Result<Json<ListView>> {
    let known = ["idle", "queued", "running", "waiting"];
    if let Some(state) = &listing.state
        && !known.contains(&state.as_str())
    {
        return Err(Refusal::usage(
            "state is one of idle, queued, running, waiting",
        ));
    }
    let wish = ListWish {
        workdir: listing.workdir,
        agent: listing.agent,
        state: listing.state,
        archived: listing.archived,
        cursor: listing.cursor.filter(|c| !c.is_empty()),
        limit: listing.limit.unwrap_or(PAGE),
        words: listing.q.filter(|q| !q.trim().is_empty()),
    };
    Ok(Json(app.hub(&caller).list(&wish).await?))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Showing {
    /// With removed messages and earlier words.
    #[serde(default)]
    all: bool,
    /// Messages before this number.
    before: Option<i64>,
    /// Messages after this number.
    after: Option<i64>,
    /// This message and those on both sides.
    around: Option<i64>,
    /// How many messages; 1000 at most, and if nothing is said. Fewer where they are long.
    limit: Option<i64>,
}

/// A conversation with its newest messages, or with those of another page, their turns and its sessions
#[utoipa::path(
    get, path = "/api/conversations/{id}", operation_id = "showConversation", tag = "conversations",
    params(("id" = String, Path, description = "Id, handle or key"), Showing),
    responses(
        (status = 200, body = WholeView),
    )
)]
pub(super) async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Params(showing): Params<Showing>,
) -> Result<Json<WholeView>> {
    let hub = app.hub(&caller);
    let found = find::conversation(&hub, &id).await?;
    let page = PageRequest {
        before: showing.before,
        after: showing.after,
        around: showing.around,
        limit: showing.limit,
        all: showing.all,
    };
    Ok(Json(hub.page_view(&found, &page).await?))
}

/// Delete a conversation with everything that belongs to it; nothing brings it back
#[utoipa::path(
    delete, path = "/api/conversations/{id}", operation_id = "deleteConversation", tag = "conversations",
    params(("id" = String, Path, description = "Id, handle or key")),
    responses(
        (status = 204, description = "It is gone"),
    )
)]
pub(super) async fn delete(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    let hub = app.hub(&caller);
    let found = find::conversation(&hub, &id).await?;
    hub.delete(found.id).await?;
    app.runner.end_processes(found.id).await;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Supposing {
    /// If this agent answered.
    agent: Option<String>,
    /// With this model.
    model: Option<String>,
    /// In this folder.
    workdir: Option<String>,
}

/// What would happen if one sent now
#[utoipa::path(
    get, path = "/api/conversations/{id}/next", operation_id = "foresee", tag = "conversations",
    params(("id" = String, Path, description = "Id, handle or key"), Supposing),
    responses(
        (status = 200, body = NextView),
    )
)]
pub(super) async fn next(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Params(supposing): Params<Supposing>,
) -> Result<Json<NextView>> {
    caller.must(TokenScope::Read)?;
    let hub = app.hub(&caller);
    let found = find::conversation(&hub, &id).await?;
    let agent = match &supposing.agent {
        Some(name) => agent_name(name)?,
        None => found.agent.clone(),
    };
    let workdir = supposing.workdir.as_deref();
    let flags = TurnFlags {
        workdir: workdir
            .map(|dir| folders::allowed(&app, &caller, dir))
            .transpose()?,
        model: supposing.model,
        default_model: app.defaults.models.get(agent.as_str()).cloned(),
        ..TurnFlags::default()
    };
    let request = flags.over(&found, &agent, &app.defaults.request);
    let handle = hub.store.read().await?.short_handle(&found.handle).await?;
    let foreseen = app.queue.foresee(found, agent.clone(), request.clone());
    let seen = foreseen.await;
    let seen = seen.ok_or_else(|| Failure::unavailable("the daemon is about to end"))??;
    Ok(Json(seen.view(handle, &agent, &request)))
}
