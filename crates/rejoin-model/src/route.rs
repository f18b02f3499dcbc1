//! Turns a request into its response: finds the dialect and the step, and sends the answer.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    body::{Body, to_bytes},
    extract::{ConnectInfo, State},
    http::{HeaderValue, Method, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use serde_json::Value;

use crate::{
    answer::{Answer, Fault, Ids, Outcome, settle},
    connection::Switch,
    control,
    conversation::{Conversation, Wanted},
    delivery::{self, Arrival, Closing, Waited},
    dialects::{self, Dialect, Endpoint},
    log::{Reached, Request, RequestLog},
    options::Options,
    script::{Script, Step, choose},
};

/// Maximum length of a body. Images and long histories make requests of CLIs large.
const BODY_LIMIT: usize = 64 << 20;

/// State that all requests of one server share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) scripts: BTreeMap<String, Script>,
    pub(crate) log: RequestLog,
    pub(crate) queue: Mutex<VecDeque<Step>>,
    pub(crate) ids: Ids,
    pub(crate) closing: Closing,
}

impl Shared {
    pub(crate) fn queue(&self) -> MutexGuard<'_, VecDeque<Step>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers every path that is not a control path.
pub(crate) async fn route(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(switch): ConnectInfo<Switch>,
    request: axum::extract::Request,
) -> Response {
    let (parts, body) = request.into_parts();
    if control::owns(parts.uri.path()) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let bytes = match to_bytes(body, BODY_LIMIT).await {
        Ok(bytes) => bytes,
        Err(error) => return failed(&shared, None, &unreadable(&error)),
    };
    let speaker = dialects::speaking(parts.uri.path()).filter(|_| parts.method == Method::POST);
    match speaker {
        Some((dialect, Endpoint::Generate)) => {
            generate(&shared, dialect, &switch, &parts, &bytes).await
        }
        Some((dialect, Endpoint::CountTokens)) => {
            match note(&shared, &parts, &bytes, "count_tokens") {
                Ok(()) => json(&shared, StatusCode::OK, &dialect.token_count(bytes.len())),
                Err(fault) => failed(&shared, Some(dialect), &fault),
            }
        }
        None => match note(&shared, &parts, &bytes, "no model path") {
            Ok(()) if parts.method == Method::HEAD && parts.uri.path() == "/" => {
                StatusCode::OK.into_response()
            }
            Ok(()) => match looked_up(&parts) {
                Some(found) => json(&shared, StatusCode::OK, &found),
                None => failed(
                    &shared,
                    None,
                    &Fault::new(404, "there is nothing at this path"),
                ),
            },
            Err(fault) => failed(&shared, None, &fault),
        },
    }
}

fn looked_up(parts: &Parts) -> Option<Value> {
    let asked = parts.method == Method::GET;
    asked
        .then(|| dialects::looked_up(parts.uri.path()))
        .flatten()
}

async fn generate(
    shared: &Shared,
    dialect: &'static dyn Dialect,
    switch: &Switch,
    parts: &Parts,
    bytes: &Bytes,
) -> Response {
    let parsed = serde_json::from_slice::<Value>(bytes);
    let body = parsed.as_ref().map_or_else(|_| lossy(bytes), Value::clone);
    let mut request = Request::arrived(parts, bytes.len(), body);
    let read = parsed
        .map_err(|error| Fault::new(400, format!("the request body is not valid JSON: {error}")))
        .and_then(|body| dialect.read(parts.uri.path(), &body));
    let conversation = read.as_ref().cloned().unwrap_or_default();
    let step = read.and_then(|_| next_step(shared, dialect, &conversation, &mut request));
    let outcome = match step {
        Ok(step) => {
            let tools = step.tools.into_iter().map(|call| dialect.tool(call));
            let tools = tools.collect();
            let step = Step { tools, ..step };
            settle(step, &conversation, &shared.options.usage, &shared.ids)
        }
        Err(fault) => {
            request.note = format!("refused: {}", fault.message);
            Outcome::Failed(fault)
        }
    };
    if let Err(error) = shared.log.record(request, Reached::Model) {
        return failed(shared, Some(dialect), &unwritten(&error));
    }
    match outcome {
        Outcome::Refused => severed(switch),
        Outcome::Failed(fault) => {
            let streamed = conversation.delivery == Wanted::Streamed;
            match streamed.then(|| dialect.failure_frames(&fault)).flatten() {
                Some(frames) => {
                    let body: String = frames.into_iter().map(|frame| frame.bytes).collect();
                    respond(
                        shared,
                        StatusCode::OK,
                        "text/event-stream",
                        Body::from(body),
                    )
                }
                None => failed(shared, Some(dialect), &fault),
            }
        }
        Outcome::Answered(answer) => {
            answered(shared, dialect, switch, conversation.delivery, &answer).await
        }
    }
}

/// Returns the step for a request. Queued steps come before scripts and before the strict check:
/// they are for the next requests, regardless of their content. Only requests that a CLI makes for
/// itself are excluded: whether it makes them depends on its version and settings, so no test could
/// rely on them.
fn next_step(
    shared: &Shared,
    dialect: &dyn Dialect,
    conversation: &Conversation,
    request: &mut Request,
) -> Result<Step, Fault> {
    if let Some(answer) = &conversation.aside {
        request.note = String::from("aside");
        return Ok(Step::text(answer));
    }
    if let Some(step) = shared.queue().pop_front() {
        request.script = Some("queue".to_owned());
        request.note = String::from("script=queue step=0");
        return Ok(step);
    }
    if let Err(fault) = dialect.check(&request.body) {
        request.irregular = Some(fault.message.clone());
        if shared.options.strict {
            return Err(fault);
        }
    }
    let chosen = choose(conversation, &shared.scripts);
    let name = chosen.script.as_deref().unwrap_or("none");
    request.note = format!("script={name} step={}", chosen.index);
    request.script = chosen.script;
    request.step = chosen.index;
    let step = chosen.step.map_err(|message| Fault::new(400, message))?;
    Ok(step.unwrap_or_else(|| default_step(shared, conversation)))
}

fn default_step(shared: &Shared, conversation: &Conversation) -> Step {
    match &shared.options.default_reply {
        Some(reply) => Step::text(reply),
        None => Step::text(format!("ok: {}", conversation.echo()).trim_end()),
    }
}

async fn answered(
    shared: &Shared,
    dialect: &dyn Dialect,
    switch: &Switch,
    wanted: Wanted,
    answer: &Answer,
) -> Response {
    let mut closing = shared.closing.clone();
    match wanted {
        Wanted::Streamed => {
            let body = delivery::streamed(answer, dialect.frames(answer), closing);
            respond(shared, StatusCode::OK, "text/event-stream", body)
        }
        Wanted::Whole => {
            let (time, arrival) = delivery::whole(answer);
            match (closing.wait(time).await, arrival) {
                (Waited::Fully, Arrival::Arrives) => {
                    json(shared, StatusCode::OK, &dialect.whole(answer))
                }
                (Waited::ServerStops, _) | (_, Arrival::Breaks) => severed(switch),
            }
        }
    }
}

/// Logs a request that was not for the model.
fn note(shared: &Shared, parts: &Parts, bytes: &Bytes, note: &str) -> Result<(), Fault> {
    let body = match serde_json::from_slice(bytes) {
        Ok(body) => body,
        Err(_) if bytes.is_empty() => Value::Null,
        Err(_) => lossy(bytes),
    };
    let request = Request {
        note: note.to_owned(),
        ..Request::arrived(parts, bytes.len(), body)
    };
    shared
        .log
        .record(request, Reached::Server)
        .map(drop)
        .map_err(|error| unwritten(&error))
}

fn lossy(bytes: &Bytes) -> Value {
    Value::String(String::from_utf8_lossy(bytes).into_owned())
}

fn unreadable(error: &axum::Error) -> Fault {
    // Only after exceeding the length limit is the caller still there to receive an answer.
    Fault::new(413, format!("the request body cannot be read: {error}"))
}

/// An incomplete log would mislead, so the request fails instead.
fn unwritten(error: &std::io::Error) -> Fault {
    Fault::new(500, format!("the request log cannot be written: {error}"))
}

fn severed(switch: &Switch) -> Response {
    switch.sever();
    StatusCode::NO_CONTENT.into_response()
}

fn failed(shared: &Shared, dialect: Option<&dyn Dialect>, fault: &Fault) -> Response {
    let status = StatusCode::from_u16(fault.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = match dialect {
        Some(dialect) => dialect.failure(fault),
        None => dialects::stranger(fault),
    };
    let mut response = json(shared, status, &body);
    if let Some(seconds) = fault.retry_after {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn json(shared: &Shared, status: StatusCode, body: &Value) -> Response {
    respond(
        shared,
        status,
        "application/json",
        Body::from(body.to_string()),
    )
}

fn respond(shared: &Shared, status: StatusCode, kind: &'static str, body: Body) -> Response {
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(id) = HeaderValue::try_from(format!("req_{}", shared.ids.next())) {
        headers.insert("request-id", id);
    }
    response
}
