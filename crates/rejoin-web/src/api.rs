//! The list of routes. A new one is a file and a line.

mod climbs;
mod conversations;
mod costs;
mod deliveries;
mod events;
mod find;
mod history;
mod inbox;
mod messages;
mod named;
mod next;
mod portable;
mod schedules;
mod seen;
mod send;
mod sessions;
mod settings;
mod share;
mod status;
mod tiers;
mod tokens;
mod turn_events;
mod turns;
mod workflows;

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router, routing};
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi as Document;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::guard;
use crate::metrics::Metrics;
use crate::openapi::{Described, may_be_refused};
use crate::pages;
use crate::problem::Refusal;
use crate::state::App;

/// Returns all routes, and the document that describes them. The route of the document itself is
/// not included.
pub(crate) fn described() -> (Router<App>, Document) {
    let (router, mut document) = OpenApiRouter::with_openapi(Described::openapi())
        .routes(routes!(send::send))
        .routes(routes!(conversations::create, conversations::list))
        .routes(routes!(
            conversations::show,
            settings::change,
            conversations::delete
        ))
        .routes(routes!(next::next))
        .routes(routes!(seen::mark))
        .routes(routes!(messages::accept))
        .routes(routes!(messages::edit, messages::remove))
        .routes(routes!(messages::retry))
        .routes(routes!(history::fork))
        .routes(routes!(history::merge))
        .routes(routes!(history::undo))
        .routes(routes!(history::reset))
        .routes(routes!(history::reload))
        .routes(routes!(portable::export))
        .routes(routes!(portable::import))
        .routes(routes!(share::create, share::list))
        .routes(routes!(share::close))
        .routes(routes!(share::show))
        .routes(routes!(turns::show))
        .routes(routes!(turns::explain))
        .routes(routes!(turns::events))
        .routes(routes!(turn_events::log))
        .routes(routes!(turn_events::changes))
        .routes(routes!(turns::chain))
        .routes(routes!(turns::handoff))
        .routes(routes!(turns::prompt))
        .routes(routes!(turns::chains))
        .routes(routes!(turns::cancel))
        .routes(routes!(inbox::list))
        .routes(routes!(inbox::answer))
        .routes(routes!(events::of_conversation))
        .routes(routes!(events::of_all))
        .routes(routes!(named::find))
        .routes(routes!(named::search))
        .routes(routes!(named::hub))
        .routes(routes!(costs::costs))
        .routes(routes!(deliveries::list))
        .routes(routes!(tokens::create, tokens::list))
        .routes(routes!(tokens::revoke))
        .routes(routes!(tiers::list))
        .routes(routes!(sessions::list, sessions::end_all))
        .routes(routes!(sessions::end))
        .routes(routes!(sessions::pair))
        .routes(routes!(climbs::escalate))
        .routes(routes!(climbs::hold))
        .routes(routes!(schedules::list))
        .routes(routes!(schedules::change))
        .routes(routes!(schedules::run))
        .routes(routes!(workflows::create, workflows::list))
        .routes(routes!(workflows::show))
        .routes(routes!(workflows::resume))
        .routes(routes!(workflows::cancel))
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
    let api = router
        .route("/openapi.json", routing::get(description))
        .with_state(Arc::clone(app));
    pages::mount(app, api)
        .layer(middleware::from_fn_with_state(
            Arc::clone(app),
            guard::guard,
        ))
        .layer(middleware::from_fn_with_state(Arc::clone(app), counted))
}

pub(crate) async fn unknown(headers: HeaderMap, uri: Uri) -> Response {
    if pages::wants_page(&headers, &uri) {
        return pages::unknown();
    }
    Refusal::not_found("there is nothing under this address")
        .try_this("GET /openapi.json")
        .into_response()
}

pub(crate) async fn not_so() -> Response {
    Refusal::usage("this address does not take requests of that kind")
        .answer(axum::http::StatusCode::METHOD_NOT_ALLOWED)
}

/// Middleware that gives every answer a request id, logs it and counts it.
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
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    headers.insert(
        "x-content-type-options",
        HeaderValue::from_static("nosniff"),
    );
    Metrics::answered(&route, response.status().as_u16());
    response
}
