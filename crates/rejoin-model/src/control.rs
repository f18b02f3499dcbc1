//! Paths with which a test in another process controls the server. They are not requests to the
//! model and are not logged.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, Uri, header},
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;

use crate::{route::Shared, script::Script};

const PREFIX: &str = "/_rejoin/";

/// Returns true for control paths and for paths with their prefix.
pub(crate) fn owns(path: &str) -> bool {
    path.starts_with(PREFIX)
}

pub(crate) fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/_rejoin/next", post(queue))
        .route("/_rejoin/requests", get(requests).delete(clear))
        .route_layer(from_fn(local_only))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Queued {
    steps: Script,
}

async fn queue(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    match serde_json::from_slice::<Queued>(&body) {
        Ok(queued) => {
            let mut queue = shared.queue();
            queue.extend(queued.steps);
            Json(json!({"queued": queue.len()})).into_response()
        }
        Err(error) => refusal(StatusCode::BAD_REQUEST, &error.to_string()),
    }
}

async fn requests(State(shared): State<Arc<Shared>>, uri: Uri) -> Response {
    let after = uri
        .query()
        .unwrap_or_default()
        .split('&')
        .find_map(|pair| pair.strip_prefix("after="));
    match after.map_or(Ok(0), str::parse) {
        Ok(seq) => Json(json!({"requests": shared.log.after(seq)})).into_response(),
        Err(_) => refusal(StatusCode::BAD_REQUEST, "`after` must be a number"),
    }
}

async fn clear(State(shared): State<Arc<Shared>>) -> StatusCode {
    shared.log.clear();
    StatusCode::NO_CONTENT
}

/// Refuses other host names: a web page must not read prompts by pointing its own name at this
/// machine. It cannot choose the host name that the browser sends.
async fn local_only(headers: HeaderMap, request: Request, next: Next) -> Response {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _port)| name);
    if matches!(name, "127.0.0.1" | "localhost") {
        next.run(request).await
    } else {
        refusal(
            StatusCode::FORBIDDEN,
            "the host must be 127.0.0.1 or localhost",
        )
    }
}

fn refusal(status: StatusCode, message: &str) -> Response {
    (status, Json(json!({"error": message}))).into_response()
}
