//! Send: one call that makes the conversation if it has to, and says what became of it.

use std::pin::pin;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rejoin_core::TurnId;
use rejoin_hub::{Accepted, Hub, Target, TurnRequest, TurnView};
use rejoin_runner::IfBusy;
use rejoin_runner::failure::{Failure, codes};
use rejoin_store::Conversation;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{events, find};
use crate::asked::{SendBody, Wishes, key};
use crate::extract::{Body, Params};
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

/// A turn that is waited for is looked at this often, if nothing is heard of it.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Send a message
///
/// Continues the conversation that is named by id or key, or begins one. With `wait=true` the answer comes
/// when the turn has ended; with `Accept: text/event-stream` what happens in it is streamed.
#[utoipa::path(
    post, path = "/api/send", operation_id = "send", tag = "conversations",
    params(Waiting, ("Idempotency-Key" = Option<String>, Header)),
    request_body = SendBody,
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
    Body(body): Body<SendBody>,
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
            let name = key(name)?;
            let mut read = hub.store.read().await?;
            let found = read.conversation_by_key(&hub.namespace, &name).await?;
            (Target::Key(name), found)
        }
        (None, None) => (Target::New, None),
    };
    let mut wishes = body.wishes();
    wishes.title.clone_from(&body.title);
    wishes.scope.clone_from(&body.scope);
    wishes.defaults = body.defaults.clone();
    let sending = Sending {
        app: &app,
        caller: &caller,
        hub: &hub,
        headers: &headers,
        waiting,
    };
    sending.send(wishes, target, known.as_ref()).await
}

/// A message on its way in.
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
        mut wishes: Wishes,
        target: Target,
        known: Option<&Conversation>,
    ) -> Result<Response> {
        wishes.client_key = one_key(self.headers, wishes.client_key)?;
        let place = self.place()?;
        let mut incoming = wishes
            .incoming(self.app, self.caller, self.hub, target, known)
            .await?;
        incoming.request.traceparent = traceparent(self.headers);
        // Without a place for its agent it waits in the queue.
        let may_run = self.app.queue.has_place();
        if !may_run && incoming.refuse_if_busy {
            return Err(Refusal(no_place()));
        }
        let holder = self.app.runner.holder()?;
        let holder = may_run.then_some(holder.as_str());
        // Listened to before, so that nothing of it is missed.
        let head = self.app.live.head();
        let before = *head.borrow();
        let accepted = self.hub.accept(&incoming, holder).await?;
        let if_busy = wishes.if_busy.for_runner();
        self.answer(accepted, place, before, if_busy).await
    }

    /// Takes a place for the stream that the request asks for. Without one nothing is accepted.
    pub(super) fn place(&self) -> Result<Option<WatcherPlace>> {
        let streams = wants_events(self.headers);
        let place = streams.then(|| events::place(self.app, self.caller));
        place.transpose()
    }

    /// Hands the turn to the queue, and answers as the request asks: with a stream if it has a place.
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
            return Ok(events::of_turn(app, caller, place, (c, turn), after));
        }
        if self.waiting.wait {
            let view = until_rest(self.app, self.caller, self.hub, turn).await?;
            // Nothing was run and nothing kept: whoever waited for it is told so.
            return match Failure::held_back(&view) {
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

fn no_place() -> Failure {
    let text = "as many agents run as the daemon allows; this message was not kept";
    Failure::new(codes::RATE_LIMITED, text).try_this(
        "the same later, or with --if-busy wait; [serve] max_running in the daemon's configuration",
    )
}

fn traceparent(headers: &HeaderMap) -> Option<String> {
    TurnRequest::well_formed_trace(headers.get("traceparent")?.to_str().ok()?)
}

/// Header, field and flag are one key.
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

/// The turn when it has ended, or waits for somebody.
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
            // A store that is gone tells nothing new: the caller gets its error.
            () = tokio::time::sleep(LOOK_AGAIN) => {}
            () = &mut void => return Err(Refusal::unauthorized(
                "the token was revoked or has expired while the turn was waited for; the turn continues",
            )),
            () = ends(&mut ending) => {
                return Err(Refusal(Failure::unavailable(
                    "the daemon is about to end; the turn goes on",
                )
                .try_this(format!("GET /api/turns/{turn}"))));
            }
        }
    }
}

pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>> {
    one_key(headers, None)?.as_deref().map(key).transpose()
}
