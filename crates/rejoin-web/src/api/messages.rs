//! Handlers for messages: accept, edit, remove, retry.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use rejoin_hub::{ChangeMode, Changed, IfBusy, MessageRequest, RetryRequest, Target, TurnView};
use rejoin_runner::send::Draft;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::find;
use super::send::{Sending, Waiting, idempotency_key};
use crate::extract::{Body, Dry, MaybeBody, Params};
use crate::folders;
use crate::guard::Caller;
use crate::problem::{Refusal, Result};
use crate::state::App;

/// Send a message to a conversation
///
/// An idle conversation is continued; while a turn runs the message waits in the queue.
#[utoipa::path(
    post, path = "/api/conversations/{id}/messages", operation_id = "sendMessage", tag = "conversations",
    params(("id" = String, Path, description = "Id, handle or key"), Waiting, ("Idempotency-Key" = Option<String>, Header)),
    request_body = MessageRequest,
    responses(
        (status = 200, description = "The turn has ended, or waits for somebody", body = TurnView),
        (status = 202, description = "It was accepted", body = TurnView),
    )
)]
pub(super) async fn accept(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Params(waiting): Params<Waiting>,
    headers: HeaderMap,
    Body(body): Body<MessageRequest>,
) -> Result<Response> {
    let hub = app.hub(&caller);
    let found = find::conversation(&hub, &id).await?;
    let of_new = [&body.conversation_id, &body.key, &body.title, &body.scope];
    if of_new.iter().any(|field| field.is_some()) {
        return Err(Refusal::usage(
            "conversation_id, key, title and scope are fields of POST /api/send: here the path names the conversation",
        ));
    }
    let sending = Sending {
        app: &app,
        caller: &caller,
        hub: &hub,
        headers: &headers,
        waiting,
    };
    let target = Target::Conversation(found.id);
    sending.send(body, target, Some(&found)).await
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditBody {
    text: String,
}

/// Change the text of a message
#[utoipa::path(
    patch, path = "/api/messages/{id}", operation_id = "editMessage", tag = "history",
    params(("id" = String, Path), Dry),
    request_body = EditBody,
    responses(
        (status = 200, description = "It says this now", body = Changed),
    )
)]
pub(super) async fn edit(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Params(dry): Params<Dry>,
    Body(body): Body<EditBody>,
) -> Result<Json<Changed>> {
    let hub = app.hub(&caller);
    let (c, message) = find::message(&hub, &id).await?;
    if body.text.trim().is_empty() || body.text.contains('\0') {
        return Err(Refusal::usage(
            "the text is empty or contains a NUL character",
        ));
    }
    app.runner.take_in_before_change(c.id).await?;
    let changed = hub
        .edit(message.message.id, &body.text, dry.doing())
        .await?;
    app.runner.wake.send_modify(|n| *n += 1);
    Ok(Json(changed))
}

#[derive(Debug, Clone, Copy, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Removing {
    /// Say what it would affect, and change nothing.
    #[serde(default)]
    dry_run: bool,
    /// Only if it has its place in the history: one in the queue is not withdrawn.
    #[serde(default)]
    placed: bool,
}

/// The result of removing a message.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum Removed {
    Changed(Changed),
    Withdrawn(Withdrawn),
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Withdrawn {
    turn_id: String,
    withdrawn: bool,
}

/// Remove a message and all later ones, or withdraw a queued message
#[utoipa::path(
    delete, path = "/api/messages/{id}", operation_id = "removeMessage", tag = "history",
    params(("id" = String, Path), Removing),
    responses(
        (status = 200, description = "It is gone", body = Removed),
    )
)]
pub(super) async fn remove(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Params(removing): Params<Removing>,
) -> Result<Json<Removed>> {
    let hub = app.hub(&caller);
    let (c, message) = find::message(&hub, &id).await?;
    let doing = if removing.dry_run {
        ChangeMode::Later
    } else {
        ChangeMode::Now
    };
    let queued = message.message.seq == 0 && !removing.placed;
    let removed = if queued && !removing.dry_run && hub.cancel_queued(message.turn).await? {
        Removed::Withdrawn(Withdrawn {
            turn_id: message.turn.to_string(),
            withdrawn: true,
        })
    } else {
        app.runner.take_in_before_change(c.id).await?;
        Removed::Changed(hub.truncate(message.message.id, doing).await?)
    };
    app.runner.wake.send_modify(|n| *n += 1);
    Ok(Json(removed))
}

/// Run a message again in a new session; remove what followed it
#[utoipa::path(
    post, path = "/api/messages/{id}/retry", operation_id = "retryMessage", tag = "history",
    params(("id" = String, Path), Waiting, Dry, ("Idempotency-Key" = Option<String>, Header)),
    request_body(content = Option<RetryRequest>),
    responses(
        (status = 200, description = "The turn has ended, or waits for somebody; with `dry_run` what would be removed", body = TurnView),
        (status = 202, description = "It was accepted", body = TurnView),
    )
)]
pub(super) async fn retry(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Params(waiting): Params<Waiting>,
    Params(dry): Params<Dry>,
    headers: HeaderMap,
    MaybeBody(body): MaybeBody<RetryRequest>,
) -> Result<Response> {
    let hub = app.hub(&caller);
    let (mut conversation, message) = find::message(&hub, &id).await?;
    if let Some(agent) = hub.agent_of(message.message.id).await? {
        conversation.agent = agent;
    }
    if dry.doing() == ChangeMode::Later {
        app.runner.take_in_before_change(conversation.id).await?;
        return Ok(Json(hub.would_retry(message.message.id).await?).into_response());
    }
    let request = body.as_message(conversation.id);
    let draft = Draft::new(&request, &app.defaults, Some(&conversation))?;
    let folder = folders::allowed(&app, &caller, &draft.folder())?;
    let (config, id) = (&app.runner.config, message.message.id);
    let mut again = draft.retry(&hub, config, id, &folder).await?;
    again.client_key = idempotency_key(&headers)?;
    again.request.roots = folders::roots(&app, &caller);
    // If no agent can be started now, the turn waits in the queue.
    again.queue_limit = (!app.queue.has_place()).then_some(app.options.max_queued);
    let sending = Sending {
        app: &app,
        caller: &caller,
        hub: &hub,
        headers: &headers,
        waiting,
    };
    let place = sending.place()?;
    app.runner.take_in_before_change(conversation.id).await?;
    let before = *app.live.head().borrow();
    let accepted = hub.retry(&again, &app.runner.holder()?).await?;
    sending.answer(accepted, place, before, IfBusy::Wait).await
}
