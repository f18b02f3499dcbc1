//! Handlers for health, readiness and metrics.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::guard::Caller;
use crate::problem::{Refusal, Result};
use crate::state::App;

/// Report that the process runs
#[utoipa::path(get, path = "/healthz", operation_id = "healthy", tag = "status", security(()), responses((status = 200, body = String)))]
pub(super) async fn healthy() -> &'static str {
    "ok\n"
}

/// Report that the store can be read and written, or the reason
#[utoipa::path(
    get, path = "/readyz", operation_id = "ready", tag = "status", security(()),
    responses((status = 200, body = String), (status = 503, body = String))
)]
pub(super) async fn ready(State(app): State<App>) -> (StatusCode, String) {
    let not_ready = |why: &str| {
        let text = format!("not ready: {why}\n");
        (StatusCode::SERVICE_UNAVAILABLE, text)
    };
    if *app.ending.borrow() {
        return not_ready("the daemon is about to end");
    }
    match app.readiness.of(&app.runner.hub.store).await {
        Ok(()) => (StatusCode::OK, "ready\n".into()),
        Err(why) => not_ready(&why),
    }
}

/// Export metrics for Prometheus
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "status",
    responses((status = 200, content_type = "text/plain", body = String))
)]
pub(super) async fn metrics(State(app): State<App>, caller: Caller) -> Result<Response> {
    // The figures cover the conversations of all namespaces.
    if !caller.namespace.is_empty() {
        return Err(Refusal::forbidden(
            "figures are for tokens of the namespace without a name",
        ));
    }
    let hub = &app.runner.hub;
    let stats = hub.store.read().await?.stats(hub.clock.now()).await?;
    let page = (app.metrics).page(&stats, app.gate.watching(), app.queue.working());
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], page).into_response())
}
