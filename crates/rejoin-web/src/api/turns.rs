//! Handlers for turns: show, explain, follow, cancel.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use rejoin_core::Handoff;
use rejoin_errors::CommandError;
use rejoin_hub::{ChainView, ChainsView, ExplainView, PromptView, TurnView};
use serde::Deserialize;
use utoipa::IntoParams;

use super::events;
use super::find;
use super::send::until_rest;
use crate::extract::Params;
use crate::guard::Caller;
use crate::problem::{Problem, Refusal, Result};
use crate::state::App;

/// Time to wait for a cancelled turn to end.
const STOPS_WITHIN: Duration = Duration::from_mins(1);

#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ChainsPage {
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Show a turn
#[utoipa::path(
    get, path = "/api/turns/{id}", operation_id = "showTurn", tag = "turns",
    params(("id" = String, Path)),
    responses(
        (status = 200, body = TurnView),
    )
)]
pub(super) async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<TurnView>> {
    let hub = app.hub(&caller);
    let turn = find::turn(&hub, &id).await?;
    Ok(Json(hub.turn_view_as_of(turn.id).await?))
}

/// Explain the verdict of a turn
#[utoipa::path(
    get, path = "/api/turns/{id}/explain", operation_id = "explainTurn", tag = "turns",
    params(("id" = String, Path)),
    responses(
        (status = 200, body = ExplainView),
    )
)]
pub(super) async fn explain(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<ExplainView>> {
    let hub = app.hub(&caller);
    let turn = find::turn(&hub, &id).await?;
    Ok(Json(hub.explain(turn.id).await?))
}

/// Stream the events of a turn, from its start to its end
#[utoipa::path(
    get, path = "/api/turns/{id}/events", operation_id = "turnEvents", tag = "events",
    params(("id" = String, Path), events::After, ("Last-Event-ID" = Option<i64>, Header)),
    responses(
        (status = 200, description = "`id:` a durable number, `event:` the type, `data:` the event", content_type = "text/event-stream", body = String),
    )
)]
pub(super) async fn events(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Params(after): Params<events::After>,
    headers: HeaderMap,
) -> Result<Response> {
    let hub = app.hub(&caller);
    let turn = find::turn(&hub, &id).await?;
    let types = events::types(after.types.as_deref())?;
    let place = events::place(&app, &caller)?;
    let after = match events::since(&headers, &after)? {
        Some(after) if after > 0 => after,
        // Events of earlier turns are not read.
        Some(_) | None => {
            let first = hub
                .store
                .read()
                .await?
                .events()
                .of_turn(turn.id, 0, 1)
                .await?;
            first.first().map_or(0, |row| row.seq - 1)
        }
    };
    let turn = (turn.conversation, turn.id);
    Ok(events::of_turn(&app, &caller, place, turn, after, types))
}

/// Show the chain of a turn: the turns linked by climbs, root first
#[utoipa::path(
    get, path = "/api/turns/{id}/chain", operation_id = "showChain", tag = "turns",
    params(("id" = String, Path)),
    responses(
        (status = 200, body = ChainView),
    )
)]
pub(super) async fn chain(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<ChainView>> {
    let hub = app.hub(&caller);
    let turn = find::turn(&hub, &id).await?;
    Ok(Json(hub.chain(&turn).await?))
}

/// List the chains of the namespace, newest first
#[utoipa::path(
    get, path = "/api/chains", operation_id = "listChains", tag = "turns",
    params(ChainsPage),
    responses(
        (status = 200, body = ChainsView),
    )
)]
pub(super) async fn chains(
    State(app): State<App>,
    caller: Caller,
    Params(page): Params<ChainsPage>,
) -> Result<Json<ChainsView>> {
    let hub = app.hub(&caller);
    Ok(Json(hub.chains(page.cursor.as_deref()).await?))
}

/// Show what the agent of a turn was told beside its message
///
/// Transcript, catch-up, handoff and notices, run by run, without keys and passwords of known forms.
#[utoipa::path(
    get, path = "/api/turns/{id}/prompt", operation_id = "showPrompt", tag = "turns",
    params(("id" = String, Path)),
    responses(
        (status = 200, body = PromptView),
    )
)]
pub(super) async fn prompt(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<PromptView>> {
    let hub = app.hub(&caller);
    let turn = find::turn(&hub, &id).await?;
    Ok(Json(hub.prompt_of(&turn).await?))
}

/// Show the handoff of a turn
///
/// Findings, checks, attempted actions and affected services: what a next tier is told that cannot resume the session.
#[utoipa::path(
    get, path = "/api/turns/{id}/handoff", operation_id = "showHandoff", tag = "turns",
    params(("id" = String, Path)),
    responses(
        (status = 200, body = Handoff),
    )
)]
pub(super) async fn handoff(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Handoff>> {
    let hub = app.hub(&caller);
    let turn = find::turn(&hub, &id).await?;
    Ok(Json(hub.handoff(&turn).await?))
}

/// Stop a turn, withdraw a queued one, or end the processes that an ended one kept
#[utoipa::path(
    post, path = "/api/turns/{id}/cancel", operation_id = "cancelTurn", tag = "turns",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "The turn has ended, or the processes that it had kept in the background have", body = TurnView),
        (status = 503, description = "It was told to stop and has not ended yet, or the store could not be written", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn cancel(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<TurnView>> {
    let hub = app.hub(&caller);
    let turn = find::turn(&hub, &id).await?;
    if turn.status.ended() {
        if app.runner.end_kept(&turn).await? > 0 {
            return Ok(Json(hub.turn_view(turn.id).await?));
        }
        let text = format!("the turn has ended already: {}", turn.status);
        return Err(Refusal(
            CommandError::conflict(text).try_this(format!("GET /api/turns/{}", turn.id)),
        ));
    }
    if !hub.cancel_queued(turn.id).await? {
        hub.ask_cancel(turn.id).await?;
        app.queue.cancel(turn.id);
        app.queue.take(turn.conversation);
    }
    app.runner.wake.send_modify(|n| *n += 1);
    // The turn may still be `waiting` for a moment.
    let ended = async {
        loop {
            let view = until_rest(&app, &caller, &hub, turn.id).await?;
            if view.ended() {
                return Ok(view);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let within = rejoin_hub::fault::stops().unwrap_or(STOPS_WITHIN);
    match tokio::time::timeout(within, ended).await {
        Ok(view) => view.map(Json),
        Err(_) => Err(Refusal(
            CommandError::unavailable("the turn was told to stop and has not ended yet")
                .try_this(format!("GET /api/turns/{}", turn.id)),
        )),
    }
}
