//! The list of routes. A new one is a file and a line.

mod conversations;
mod deliveries;
mod events;
mod find;
mod history;
mod inbox;
mod messages;
mod named;
mod send;
mod settings;
mod status;
mod tokens;
mod turns;

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::HeaderValue;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::{Json, Router, routing};
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi as Document;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::guard;
use crate::metrics::Metrics;
use crate::openapi::{Described, may_be_refused};
use crate::problem::Refusal;
use crate::state::App;

/// All that is described, without what describes it.
pub(crate) fn described() -> (Router<App>, Document) {
    let (router, mut document) = OpenApiRouter::with_openapi(Described::openapi())
        .routes(routes!(send::send))
        .routes(routes!(conversations::create, conversations::list))
        .routes(routes!(
            conversations::show,
            settings::change,
            conversations::delete
        ))
        .routes(routes!(conversations::next))
        .routes(routes!(messages::accept))
        .routes(routes!(messages::edit, messages::remove))
        .routes(routes!(messages::retry))
        .routes(routes!(history::fork))
        .routes(routes!(history::merge))
        .routes(routes!(history::undo))
        .routes(routes!(history::reset))
        .routes(routes!(history::reload))
        .routes(routes!(turns::show))
        .routes(routes!(turns::explain))
        .routes(routes!(turns::events))
        .routes(routes!(turns::chain))
        .routes(routes!(turns::cancel))
        .routes(routes!(inbox::list))
        .routes(routes!(inbox::answer))
        .routes(routes!(events::of_conversation))
        .routes(routes!(events::of_all))
        .routes(routes!(named::find))
        .routes(routes!(named::search))
        .routes(routes!(named::hub))
        .routes(routes!(deliveries::list))
        .routes(routes!(tokens::create, tokens::list))
        .routes(routes!(tokens::revoke))
        .routes(routes!(status::healthy))
        .routes(routes!(status::ready))
        .routes(routes!(status::metrics))
        .split_for_parts();
    may_be_refused(&mut document);
    (router, document)
}

pub(crate) fn router(app: &App) -> Router {
    let (router, document) = described();
    let document = Arc::new(document);
    let description = move || {
        let document = Arc::clone(&document);
        async move { Json((*document).clone()) }
    };
    router
        .route("/openapi.json", routing::get(description))
        .fallback(unknown)
        .method_not_allowed_fallback(not_so)
        .layer(middleware::from_fn_with_state(
            Arc::clone(app),
            guard::guard,
        ))
        .layer(middleware::from_fn_with_state(Arc::clone(app), counted))
        .with_state(Arc::clone(app))
}

async fn unknown() -> Refusal {
    Refusal::not_found("there is nothing under this address").try_this("GET /openapi.json")
}

async fn not_so() -> Response {
    Refusal::usage("this address does not take requests of that kind")
        .answer(axum::http::StatusCode::METHOD_NOT_ALLOWED)
}

/// Every answer has a number, by which it can be asked about, and is counted.
async fn counted(State(app): State<App>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("other", MatchedPath::as_str).to_owned();
    let given = request.headers().get("x-request-id").cloned();
    let id = given.filter(|id| id.len() <= 100).or_else(|| {
        let made = app.runner.hub.clock.turn_id().ok()?;
        HeaderValue::from_str(&made.to_string()).ok()
    });
    let (method, began) = (request.method().clone(), Instant::now());
    let mut response = next.run(request).await;
    tracing::debug!(
        %method,
        route,
        status = response.status().as_u16(),
        ms = began.elapsed().as_millis() as u64,
        request = id.as_ref().and_then(|id| id.to_str().ok()),
        "answered"
    );
    let headers = response.headers_mut();
    if let Some(id) = id {
        headers.insert("x-request-id", id);
    }
    headers.insert("cache-control", HeaderValue::from_static("no-store"));
    headers.insert(
        "x-content-type-options",
        HeaderValue::from_static("nosniff"),
    );
    Metrics::answered(&route, response.status().as_u16());
    response
}
