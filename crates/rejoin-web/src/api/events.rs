//! Live events: server-sent, with durable numbers.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use rejoin_core::{ConversationId, TurnId};
use rejoin_runner::failure::{Failure, codes};
use serde::Deserialize;
use tokio::time::{Instant, sleep};
use utoipa::IntoParams;

use super::find;
use crate::extract::Params;
use crate::gate::WatcherPlace;
use crate::guard::Caller;
use crate::live::Wanted;
use crate::problem::{Refusal, Result};
use crate::state::{App, ends};

/// Proxies close what is silent.
const HEARTBEAT: Duration = Duration::from_secs(15);
const ALIVE: Bytes = Bytes::from_static(b": alive\n\n");

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct After {
    /// Only what comes after this number; 0: from the beginning. The same as `Last-Event-ID`.
    after: Option<i64>,
}

/// What happens in a conversation
///
/// Without `Last-Event-ID` or `after` only what is new.
#[utoipa::path(
    get, path = "/api/conversations/{id}/events", operation_id = "watchConversation", tag = "events",
    params(("id" = String, Path, description = "Id, handle or key"), After, ("Last-Event-ID" = Option<i64>, Header)),
    responses(
        (status = 200, description = "`id:` a durable number, `event:` the type, `data:` the event", content_type = "text/event-stream", body = String),
    )
)]
pub(super) async fn of_conversation(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Params(after): Params<After>,
    headers: HeaderMap,
) -> Result<Response> {
    let hub = app.hub(&caller);
    let found = find::conversation(&hub, &id).await?;
    let wanted = Wanted {
        namespace: Arc::clone(&caller.namespace),
        conversation: Some(found.id),
        turn: None,
    };
    let after = since(&headers, &after)?;
    let place = place(&app, &caller)?;
    let events = app.live.watch(wanted, after);
    Ok(streamed(&app, &caller, place, events))
}

/// What happens in all conversations
#[utoipa::path(
    get, path = "/api/events", operation_id = "watchAll", tag = "events",
    params(After, ("Last-Event-ID" = Option<i64>, Header)),
    responses(
        (status = 200, description = "`id:` a durable number, `event:` the type, `data:` the event", content_type = "text/event-stream", body = String),
    )
)]
pub(super) async fn of_all(
    State(app): State<App>,
    caller: Caller,
    Params(after): Params<After>,
    headers: HeaderMap,
) -> Result<Response> {
    let wanted = Wanted {
        namespace: Arc::clone(&caller.namespace),
        conversation: None,
        turn: None,
    };
    let after = since(&headers, &after)?;
    let place = place(&app, &caller)?;
    let events = app.live.watch(wanted, after);
    Ok(streamed(&app, &caller, place, events))
}

/// What happens in one turn, until it has ended.
pub(super) fn of_turn(
    app: &App,
    caller: &Caller,
    place: WatcherPlace,
    (c, turn): (ConversationId, TurnId),
    after: i64,
) -> Response {
    let wanted = Wanted {
        namespace: Arc::clone(&caller.namespace),
        conversation: Some(c),
        turn: Some(turn),
    };
    let events = app.live.watch(wanted, Some(after));
    streamed(app, caller, place, events)
}

/// Takes a place for one stream, before anything is done for it.
pub(super) fn place(app: &App, caller: &Caller) -> Result<WatcherPlace> {
    app.gate.watcher(caller).ok_or_else(|| {
        Refusal(Failure::new(
            codes::RATE_LIMITED,
            "this token, its namespace or the daemon has too many event streams open; nothing was sent",
        ))
    })
}

fn streamed(
    app: &App,
    caller: &Caller,
    place: WatcherPlace,
    events: impl Stream<Item = Bytes> + Send + 'static,
) -> Response {
    let mut ending = app.ending.clone();
    let (shared, token) = (Arc::clone(app), caller.token);
    let end = async move {
        tokio::select! {
            () = ends(&mut ending) => {}
            () = shared.tokens.until_void(token) => {}
        }
    };
    let events = kept_alive(events.take_until(Box::pin(end))).map(move |words| {
        // Held for as long as the stream is open.
        let _place = &place;
        Ok::<_, Infallible>(words)
    });
    let headers = [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-cache"),
        // Proxies that collect answers would hold everything back.
        ("x-accel-buffering", "no"),
    ];
    (headers, Body::from_stream(events)).into_response()
}

/// Says something of no meaning where there is nothing to say.
fn kept_alive(events: impl Stream<Item = Bytes> + Send) -> impl Stream<Item = Bytes> + Send {
    let mut events = Box::pin(events);
    let mut quiet = Box::pin(sleep(HEARTBEAT));
    stream::poll_fn(move |cx| {
        let mut next = events.as_mut().poll_next(cx);
        if next.is_pending() && quiet.as_mut().poll(cx).is_ready() {
            next = Poll::Ready(Some(ALIVE));
        }
        if next.is_ready() {
            quiet.as_mut().reset(Instant::now() + HEARTBEAT);
        }
        next
    })
}

/// The header comes from a browser that lost its connection, so it counts more.
pub(super) fn since(headers: &HeaderMap, after: &After) -> Result<Option<i64>> {
    let Some(last) = headers.get("last-event-id") else {
        return Ok(after.after);
    };
    let last = last.to_str().ok().and_then(|text| text.trim().parse().ok());
    last.map(Some)
        .ok_or_else(|| Refusal::usage("Last-Event-ID is the number of an event"))
}
