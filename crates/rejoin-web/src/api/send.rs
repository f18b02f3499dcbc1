//! Handler for `send`: one call that creates the conversation if necessary and returns the result.

use std::pin::pin;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rejoin_core::TurnId;
use rejoin_errors::{CommandError, codes};
use rejoin_hub::{
    Accepted, Hub, IfBusy, Incoming, MessageRequest, Target, TurnRequest, TurnView, fields,
};
use rejoin_runner::send::Draft;
use rejoin_store::Conversation;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{events, find};
use crate::extract::{Body, Params};
use crate::folders;
use crate::gate::WatcherPlace;
use crate::guard::Caller;
use crate::problem::{Refusal, Result};
use crate::state::{App, ends};

#[derive(Debug, Clone, Copy, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Waiting {
    /// Answer when the turn has ended, or waits for somebody.
    #[serde(default)]
    wait: bool,
}

/// Interval between two checks of a turn that a request waits for, if no event arrives.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Send a message
///
/// Continues the conversation that is named by id or key, or begins one. With `wait=true` the answer comes
/// when the turn has ended; with `Accept: text/event-stream` what happens in it is streamed.
#[utoipa::path(
    post, path = "/api/send", operation_id = "send", tag = "conversations",
    params(Waiting, ("Idempotency-Key" = Option<String>, Header)),
    request_body = MessageRequest,
    responses(
        (status = 200, description = "The turn has ended, or waits for somebody", body = TurnView),
        (status = 202, description = "It was accepted", body = TurnView),
    )
)]
pub(super) async fn send(
    State(app): State<App>,
    caller: Caller,
    Params(waiting): Params<Waiting>,
    headers: HeaderMap,
    Body(body): Body<MessageRequest>,
) -> Result<Response> {
    let hub = app.hub(&caller);
    let (target, known) = match (&body.conversation_id, &body.key) {
        (Some(_), Some(_)) => {
            return Err(Refusal::usage("name conversation_id or key, not both"));
        }
        (Some(id), None) => {
            let found = find::conversation(&hub, id).await?;
            (Target::Conversation(found.id), Some(found))
        }
        (None, Some(name)) => {
            let name = fields::key(name)?;
            let mut read = hub.store.read().await?;
            let found = read.conversations().by_key(&hub.namespace, &name).await?;
            (Target::Key(name), found)
        }
        (None, None) => (Target::New, None),
    };
    let sending = Sending {
        app: &app,
        caller: &caller,
        hub: &hub,
        headers: &headers,
        waiting,
    };
    sending.send(body, target, known.as_ref()).await
}

/// Message that is about to be accepted.
pub(super) struct Sending<'a> {
    pub(super) app: &'a App,
    pub(super) caller: &'a Caller,
    pub(super) hub: &'a Hub,
    pub(super) headers: &'a HeaderMap,
    pub(super) waiting: Waiting,
}

impl Sending<'_> {
    pub(super) async fn send(
        &self,
        mut request: MessageRequest,
        target: Target,
        known: Option<&Conversation>,
    ) -> Result<Response> {
        request.client_key = one_key(self.headers, request.client_key)?;
        let place = self.place()?;
        let mut incoming = self.incoming(&request, target, known).await?;
        incoming.request.traceparent = traceparent(self.headers);
        // If no agent can be started now, the turn waits in the queue.
        let may_run = self.app.queue.has_place();
        if !may_run && incoming.if_busy == IfBusy::Fail {
            return Err(Refusal(no_place()));
        }
        let holder = self.app.runner.holder()?;
        let holder = may_run.then_some(holder.as_str());
        // Read before the message is accepted, so that no event of the turn is missed.
        let head = self.app.live.head();
        let before = *head.borrow();
        let accepted = self.hub.accept(&incoming, holder).await?;
        self.answer(accepted, place, before, request.if_busy).await
    }

    /// Checks the request with the caller's rights and limits.
    async fn incoming(
        &self,
        request: &MessageRequest,
        target: Target,
        known: Option<&Conversation>,
    ) -> Result<Incoming> {
        let (app, caller) = (self.app, self.caller);
        if let Some(url) = &request.notify_url
            && !app.options.notify.allows(url)
        {
            return Err(Refusal::forbidden(
                "notify_url is not at or below an address that this daemon allows",
            )
            .try_this("[notify] urls in the configuration"));
        }
        caller.may_define(request.defaults.tiers.as_ref())?;
        let draft = Draft::new(request, &app.defaults, known)?;
        // The folder of a conversation may have been replaced since it was stored.
        let folder = folders::allowed(app, caller, &draft.folder())?;
        let config = &app.runner.config;
        let mut incoming = draft.incoming(self.hub, config, target, folder).await?;
        incoming.request.roots = folders::roots(app, caller);
        incoming.queue_limit = Some(app.options.max_queued);
        Ok(incoming)
    }

    /// Takes a place for the stream that the request wants. If there is none, the message is not
    /// accepted.
    pub(super) fn place(&self) -> Result<Option<WatcherPlace>> {
        let streams = wants_events(self.headers);
        let place = streams.then(|| events::place(self.app, self.caller));
        place.transpose()
    }

    /// Hands the turn to the queue, and answers as the request wants: with a stream if it has a
    /// place.
    pub(super) async fn answer(
        &self,
        accepted: Accepted,
        place: Option<WatcherPlace>,
        before: i64,
        if_busy: IfBusy,
    ) -> Result<Response> {
        let (c, turn, replayed) = (accepted.conversation, accepted.turn, accepted.replayed);
        if !replayed {
            self.app.queue.take_accepted(accepted, if_busy);
        }
        if let Some(place) = place {
            let after = if replayed { 0 } else { before };
            let (app, caller) = (self.app, self.caller);
            return Ok(events::of_turn(app, caller, place, (c, turn), after, None));
        }
        if self.waiting.wait {
            let view = until_rest(self.app, self.caller, self.hub, turn).await?;
            // Nothing ran and nothing was kept: the waiting caller gets the reason.
            return match CommandError::held_back(&view) {
                Some(failure) if failure.code != codes::CANCELLED.word => Err(Refusal(failure)),
                Some(_) | None => Ok(Json(view).into_response()),
            };
        }
        let view = self.hub.turn_view(turn).await?;
        let status = if view.ended() {
            StatusCode::OK
        } else {
            StatusCode::ACCEPTED
        };
        Ok((status, Json(view)).into_response())
    }
}

fn no_place() -> CommandError {
    let text = "as many agents run as the daemon allows; this message was not kept";
    CommandError::new(codes::RATE_LIMITED, text).try_this(
        "the same later, or with --if-busy wait; [serve] max_running in the daemon's configuration",
    )
}

fn traceparent(headers: &HeaderMap) -> Option<String> {
    TurnRequest::well_formed_trace(headers.get("traceparent")?.to_str().ok()?)
}

/// Returns the idempotency key of a request. Header, field and flag mean the same key.
fn one_key(headers: &HeaderMap, field: Option<String>) -> Result<Option<String>> {
    let header = headers.get("idempotency-key");
    let header = header.map(|value| {
        let text = value.to_str();
        text.map_err(|_| Refusal::usage("the Idempotency-Key is not plain text"))
    });
    match (header.transpose()?, field) {
        (Some(header), Some(field)) if header != field => Err(Refusal::usage(
            "Idempotency-Key and client_key are one key, and differ here",
        )),
        (Some(header), _) => Ok(Some(header.to_owned())),
        (None, field) => Ok(field),
    }
}

fn wants_events(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|a| a.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/event-stream"))
}

/// Waits until the turn has ended, or waits for a person.
pub(super) async fn until_rest(
    app: &App,
    caller: &Caller,
    hub: &Hub,
    turn: TurnId,
) -> Result<TurnView> {
    let (mut head, mut ending) = (app.live.head(), app.ending.clone());
    let mut void = pin!(app.tokens.until_void(caller.token));
    loop {
        head.borrow_and_update();
        let view = hub.turn_view(turn).await?;
        if view.ended() || view.status == "waiting" {
            return Ok(view);
        }
        tokio::select! {
            changed = head.changed() => if changed.is_err() { return Ok(view) },
            // A store that is gone sends no news: the caller gets its error.
            () = tokio::time::sleep(LOOK_AGAIN) => {}
            () = &mut void => return Err(Refusal::unauthorized(
                "the token was revoked or has expired while the turn was waited for; the turn continues",
            )),
            () = ends(&mut ending) => {
                return Err(Refusal(CommandError::unavailable(
                    "the daemon is about to end; the turn goes on",
                )
                .try_this(format!("GET /api/turns/{turn}"))));
            }
        }
    }
}

pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>> {
    let key = one_key(headers, None)?;
    Ok(key.as_deref().map(fields::key).transpose()?)
}
