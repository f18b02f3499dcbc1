//! Handlers for conversations: create, list, show, delete.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use rejoin_hub::{
    ConversationView, CreateRequest, ListQuery, ListView, PageRequest, WholeView, fields, micros_of,
};
use rejoin_runner::inspect;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::find;
use crate::extract::{Body, Params};
use crate::folders;
use crate::guard::Caller;
use crate::problem::{Refusal, Result};
use crate::state::App;

/// Default size of a page.
const PAGE: i64 = 50;

/// A new conversation without messages.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ConversationBody {
    /// Agent of the conversation; none: the daemon's own choice.
    agent: Option<String>,
    /// Working folder.
    workdir: Option<String>,
    /// Your own name of the conversation.
    key: Option<String>,
    model: Option<String>,
    title: Option<String>,
    /// `read-only`, `edit`, `full` or `ask`.
    permission: Option<String>,
    /// `full` or `agent`.
    scope: Option<String>,
}

/// Create a conversation without a message
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
        Some(name) => fields::agent(name)?,
        None => app.defaults.agent.clone(),
    };
    app.defaults.check_enabled(&agent)?;
    let here = app.defaults.here.to_string_lossy();
    let workdir = body.workdir.as_deref().unwrap_or(&here);
    let workdir = folders::allowed(&app, &caller, workdir)?;
    inspect::preflight(&hub, &app.runner.config, agent.as_str(), &workdir).await?;
    let permission = body
        .permission
        .as_deref()
        .map(fields::permission)
        .transpose()?;
    let request = CreateRequest {
        key: body.key.as_deref().map(fields::key).transpose()?,
        title: body.title.as_deref().map(fields::title).transpose()?,
        agent,
        model: body.model.clone(),
        workdir,
        permission: permission
            .unwrap_or_else(|| caller.default_permission(app.defaults.permission)),
        scope: body
            .scope
            .as_deref()
            .map_or(Ok(app.defaults.scope), fields::scope)?,
        client_key: super::send::idempotency_key(&headers)?,
    };
    let (made, new) = hub.create(&request).await?;
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
    /// Only those whose title contains this text. A page without results may have a `next_cursor`: the newest 10,000
    /// conversations after the cursor are examined.
    title: Option<String>,
    /// Only those used at this time or later (RFC 3339).
    since: Option<String>,
    /// List archived conversations instead of the others.
    #[serde(default)]
    archived: bool,
    /// Add the number of conversations by state.
    #[serde(default)]
    counts: bool,
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
    let since = match &listing.since {
        Some(text) => Some(
            micros_of(text)
                .ok_or_else(|| Refusal::usage("since is a time like 2026-11-15T14:31:00Z"))?,
        ),
        None => None,
    };
    let query = ListQuery {
        title: listing.title.filter(|title| !title.trim().is_empty()),
        since,
        workdir: listing.workdir,
        agent: listing.agent,
        state: listing.state,
        archived: listing.archived,
        cursor: listing.cursor.filter(|c| !c.is_empty()),
        limit: listing.limit.unwrap_or(PAGE),
        words: listing.q.filter(|q| !q.trim().is_empty()),
        counts: listing.counts,
    };
    Ok(Json(app.hub(&caller).list(&query).await?))
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
    /// Return the messages around this one.
    around: Option<i64>,
    /// Maximum number of messages; 100 by default, 1000 at most. Fewer if they are long: a page holds about 2 MiB of text.
    limit: Option<i64>,
}

/// Show a conversation: a page of its messages, their turns, and its sessions
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

/// Delete a conversation and its data permanently
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
