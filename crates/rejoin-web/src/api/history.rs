//! Handlers for changes of the history of a whole conversation.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use rejoin_core::ConversationId;
use rejoin_hub::{ChangeMode, Changed, ForkRequest, ForkView, Merged, Setting, fields};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::find;
use crate::extract::{Body, Dry, MaybeBody, Params};
use crate::guard::Caller;
use crate::problem::{Refusal, Result};
use crate::state::App;

/// A message of the conversation.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub(super) enum Last {
    Number(i64),
    Id(String),
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ForkBody {
    /// The last message that is copied, by its id or number; none: all of them.
    at: Option<Last>,
    key: Option<String>,
    title: Option<String>,
    /// `read-only`, `edit`, `full` or `ask`; none: as in the other.
    permission: Option<String>,
}

/// Fork a conversation at a message
#[utoipa::path(
    post, path = "/api/conversations/{id}/fork", operation_id = "forkConversation", tag = "history",
    params(("id" = String, Path, description = "Id, handle or key"), ("Idempotency-Key" = Option<String>, Header)),
    request_body(content = Option<ForkBody>),
    responses(
        (status = 201, description = "It was made", body = ForkView),
    )
)]
pub(super) async fn fork(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    MaybeBody(body): MaybeBody<ForkBody>,
) -> Result<(StatusCode, Json<ForkView>)> {
    let hub = app.hub(&caller);
    let found = find::conversation(&hub, &id).await?;
    let at = match &body.at {
        None => None,
        Some(Last::Number(number)) => Some(*number),
        Some(Last::Id(id)) => {
            let (of, message) = find::message(&hub, id).await?;
            if of.id != found.id {
                return Err(Refusal::usage("that message is of another conversation"));
            }
            Some(message.message.seq)
        }
    };
    let request = ForkRequest {
        at,
        permission: body
            .permission
            .as_deref()
            .map(fields::permission)
            .transpose()?,
        key: body.key.as_deref().map(fields::key).transpose()?,
        title: body.title.as_deref().map(fields::title).transpose()?,
        client_key: super::send::idempotency_key(&headers)?,
    };
    app.runner.take_in_before_change(found.id).await?;
    let view = hub.fork(found.id, &request).await?;
    Ok((StatusCode::CREATED, Json(view)))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MergeBody {
    /// The conversation that this one is put into.
    into: String,
}

/// Merge a conversation into another, the older messages first
#[utoipa::path(
    post, path = "/api/conversations/{id}/merge", operation_id = "mergeConversation", tag = "history",
    params(("id" = String, Path, description = "Id, handle or key"), Dry),
    request_body = MergeBody,
    responses(
        (status = 200, description = "It leads to the other now", body = Merged),
    )
)]
pub(super) async fn merge(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Params(dry): Params<Dry>,
    Body(body): Body<MergeBody>,
) -> Result<Json<Merged>> {
    let hub = app.hub(&caller);
    let from = find::conversation(&hub, &id).await?;
    let into = find::conversation(&hub, &body.into).await?;
    app.runner.take_in_before_change(from.id).await?;
    app.runner.take_in_before_change(into.id).await?;
    let merged = hub.merge(from.id, into.id, dry.doing()).await?;
    app.runner.wake.send_modify(|n| *n += 1);
    Ok(Json(merged))
}

/// Undo the last change
#[utoipa::path(
    post, path = "/api/conversations/{id}/undo", operation_id = "undo", tag = "history",
    params(("id" = String, Path, description = "Id, handle or key"), Dry),
    responses(
        (status = 200, description = "It is as it was before", body = Changed),
    )
)]
pub(super) async fn undo(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Params(dry): Params<Dry>,
) -> Result<Json<Changed>> {
    let hub = app.hub(&caller);
    let found = find::conversation(&hub, &id).await?;
    app.runner.take_in_before_change(found.id).await?;
    let changed = hub.undo(found.id, dry.doing()).await?;
    app.runner.wake.send_modify(|n| *n += 1);
    Ok(Json(changed))
}

/// The result of a reset.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Reset {
    /// Sessions that are not used again.
    sessions: u64,
    #[serde(flatten)]
    changed: Changed,
}

/// Retire the sessions and keep the messages
#[utoipa::path(
    post, path = "/api/conversations/{id}/reset", operation_id = "resetConversation", tag = "history",
    params(("id" = String, Path, description = "Id, handle or key"), Dry),
    responses(
        (status = 200, description = "The next turn begins a session", body = Reset),
    )
)]
pub(super) async fn reset(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Params(dry): Params<Dry>,
) -> Result<Json<Reset>> {
    let hub = app.hub(&caller);
    let found = find::conversation(&hub, &id).await?;
    app.runner.take_in_before_change(found.id).await?;
    let (sessions, changed) = hub.reset(found.id, dry.doing()).await?;
    app.runner.wake.send_modify(|n| *n += 1);
    Ok(Json(Reset { sessions, changed }))
}

/// The result of a reload.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Reloaded {
    conversation_id: ConversationId,
    /// Processes that were ended.
    ended: usize,
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReloadBody {
    /// Permission of the conversation from the next turn on: `read-only`, `edit`, `full` or `ask`; none: as it is.
    permission: Option<String>,
}

/// End warm processes; the next turn resumes in a new one, with another permission if given
#[utoipa::path(
    post, path = "/api/conversations/{id}/reload", operation_id = "reloadConversation", tag = "history",
    params(("id" = String, Path, description = "Id, handle or key")),
    request_body(content = Option<ReloadBody>),
    responses(
        (status = 200, description = "None of them runs any more; a running turn is left alone", body = Reloaded),
    )
)]
pub(super) async fn reload(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    MaybeBody(body): MaybeBody<ReloadBody>,
) -> Result<Json<Reloaded>> {
    let hub = app.hub(&caller);
    let found = find::conversation(&hub, &id).await?;
    if let Some(permission) = body.permission.as_deref() {
        let settings = [Setting::Permission(fields::permission(permission)?)];
        hub.set(found.id, "set", &settings, ChangeMode::Now).await?;
        app.runner.wake.send_modify(|n| *n += 1);
    }
    Ok(Json(Reloaded {
        conversation_id: found.id,
        ended: app.runner.reload(found.id).await,
    }))
}
