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
use rejoin_core::{ConversationId, EventBody, TurnId};
use rejoin_errors::{CommandError, codes};
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

/// Interval of the heartbeat, because proxies close silent connections.
const HEARTBEAT: Duration = Duration::from_secs(15);
const ALIVE: Bytes = Bytes::from_static(b": alive\n\n");

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct After {
    /// Only what comes after this number; 0: from the beginning. The same as `Last-Event-ID`.
    after: Option<i64>,
    /// Only events of these types, separated by commas: `turn.*,question,approval`.
    pub(super) types: Option<String>,
}

/// Stream the events of a conversation
///
/// Without `Last-Event-ID` or `after` only new events.
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
        types: types(after.types.as_deref())?,
    };
    let after = since(&headers, &after)?;
    let place = place(&app, &caller)?;
    let events = app.live.watch(wanted, after);
    Ok(streamed(&app, &caller, place, events))
}

/// Stream the events of all conversations
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
        types: types(after.types.as_deref())?,
    };
    let after = since(&headers, &after)?;
    let place = place(&app, &caller)?;
    let events = app.live.watch(wanted, after);
    Ok(streamed(&app, &caller, place, events))
}

/// Streams the events of one turn, until it has ended.
pub(super) fn of_turn(
    app: &App,
    caller: &Caller,
    place: WatcherPlace,
    (c, turn): (ConversationId, TurnId),
    after: i64,
    types: Option<Arc<[&'static str]>>,
) -> Response {
    let wanted = Wanted {
        namespace: Arc::clone(&caller.namespace),
        conversation: Some(c),
        turn: Some(turn),
        types,
    };
    let events = app.live.watch(wanted, Some(after));
    streamed(app, caller, place, events)
}

/// Takes a place for one stream, before any other work is done for it.
pub(super) fn place(app: &App, caller: &Caller) -> Result<WatcherPlace> {
    app.gate.watcher(caller).ok_or_else(|| {
        Refusal(CommandError::new(
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
        // Proxies that buffer answers would hold everything back.
        ("x-accel-buffering", "no"),
    ];
    (headers, Body::from_stream(events)).into_response()
}

/// Adds a heartbeat to the stream while there are no events.
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

/// Returns the event types that a list of types and of patterns such as `turn.*` selects.
pub(super) fn types(list: Option<&str>) -> Result<Option<Arc<[&'static str]>>> {
    let Some(list) = list.filter(|list| !list.trim().is_empty()) else {
        return Ok(None);
    };
    let mut wanted = vec![];
    for pattern in list.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let group = pattern.strip_suffix('*').filter(|g| g.ends_with('.'));
        let fits = |kind: &&&str| match group {
            Some(group) => kind.starts_with(group),
            None => **kind == pattern,
        };
        let before = wanted.len();
        wanted.extend(EventBody::KINDS.iter().filter(fits).copied());
        if wanted.len() == before {
            let shown: String = pattern
                .chars()
                .filter(|c| !c.is_control())
                .take(60)
                .collect();
            return Err(
                Refusal::usage(format!("there are no events of type `{shown}`"))
                    .try_this(format!("types={}", EventBody::KINDS.join(","))),
            );
        }
    }
    Ok(Some(wanted.into()))
}

/// Returns the number after which events are wanted. The header takes precedence, because it comes
/// from a browser that lost its connection.
pub(super) fn since(headers: &HeaderMap, after: &After) -> Result<Option<i64>> {
    let Some(last) = headers.get("last-event-id") else {
        return Ok(after.after);
    };
    let last = last.to_str().ok().and_then(|text| text.trim().parse().ok());
    last.map(Some)
        .ok_or_else(|| Refusal::usage("Last-Event-ID is the number of an event"))
}
