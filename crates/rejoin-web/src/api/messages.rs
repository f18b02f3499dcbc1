//! Messages: accepted, edited, removed, run again.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use rejoin_hub::{Again, Changed, Doing, Target, TurnFlags, TurnRequest, TurnView};
use rejoin_runner::{IfBusy, look};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::find;
use super::send::{Sending, Waiting, idempotency_key};
use crate::asked::{MessageBody, agent_name, must_be_enabled};
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
    request_body = MessageBody,
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
    Body(body): Body<MessageBody>,
) -> Result<Response> {
    let hub = app.hub(&caller);
    let found = find::conversation(&hub, &id).await?;
    let sending = Sending {
        app: &app,
        caller: &caller,
        hub: &hub,
        headers: &headers,
        waiting,
    };
    let target = Target::Conversation(found.id);
    sending.send(body.wishes(), target, Some(&found)).await
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditBody {
    text: String,
}

/// Change what a message says
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

/// What became of a message that was taken away.
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

/// Remove a message and all after it, or withdraw it if it is still in the queue
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
        Doing::Later
    } else {
        Doing::Now
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

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RetryBody {
    agent: Option<String>,
    model: Option<String>,
    permission: Option<String>,
    workdir: Option<String>,
    /// Stop the turn after this time.
    timeout_ms: Option<u64>,
    /// Stop the turn if the agent prints nothing for this time; 0: never.
    idle_timeout_ms: Option<u64>,
    /// Stop the turn once it has cost this.
    max_cost_usd: Option<f64>,
    /// Continue a conversation that asks first.
    #[serde(default)]
    confirm: bool,
}

/// Run a message again, in a new session; what followed it is removed
#[utoipa::path(
    post, path = "/api/messages/{id}/retry", operation_id = "retryMessage", tag = "history",
    params(("id" = String, Path), Waiting, Dry, ("Idempotency-Key" = Option<String>, Header)),
    request_body(content = Option<RetryBody>),
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
    MaybeBody(body): MaybeBody<RetryBody>,
) -> Result<Response> {
    let hub = app.hub(&caller);
    let (conversation, message) = find::message(&hub, &id).await?;
    if dry.doing() == Doing::Later {
        app.runner.take_in_before_change(conversation.id).await?;
        return Ok(Json(hub.would_retry(message.message.id).await?).into_response());
    }
    let agent = body.agent.as_deref().map(agent_name).transpose()?;
    let answering = agent.clone().unwrap_or_else(|| conversation.agent.clone());
    must_be_enabled(&app, &answering)?;
    let workdir = body.workdir.as_deref();
    let workdir = workdir
        .map(|dir| folders::allowed(&app, &caller, dir))
        .transpose()?;
    let place = match &workdir {
        Some(dir) => dir.clone(),
        None => folders::allowed(&app, &caller, &conversation.workdir)?,
    };
    look::ground(&hub, &app.runner.config, answering.as_str(), &place).await?;
    let permission = body
        .permission
        .as_deref()
        .map(crate::asked::mode)
        .transpose()?;
    let again = Again {
        message: message.message.id,
        agent,
        flags: TurnFlags {
            workdir: workdir.clone(),
            permission,
            model: body.model,
            default_model: app.defaults.models.get(answering.as_str()).cloned(),
            ..TurnFlags::default()
        },
        request: TurnRequest {
            timeout_ms: body.timeout_ms.filter(|ms| *ms > 0),
            idle_ms: body.idle_timeout_ms,
            max_cost: crate::asked::max_cost(body.max_cost_usd)?,
            roots: folders::roots(&app, &caller),
            ..app.defaults.request.clone()
        },
        client_key: idempotency_key(&headers)?,
        confirmed: body.confirm,
        // Without a place for its agent it waits in the queue.
        queue_limit: (!app.queue.has_place()).then_some(app.options.max_queued),
    };
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
