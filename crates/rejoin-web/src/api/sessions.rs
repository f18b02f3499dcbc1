//! Handlers for sessions of browsers: list, end, and the links that start them.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use rejoin_hub::{BrowserSessionView, LinkView};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::guard::Caller;
use crate::problem::{Refusal, Result};
use crate::state::App;

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Sessions {
    sessions: Vec<BrowserSessionView>,
}

/// List the browsers that are signed in with this token
#[utoipa::path(
    get, path = "/api/sessions", operation_id = "listSessions", tag = "sessions",
    responses(
        (status = 200, body = Sessions),
    )
)]
pub(super) async fn list(State(app): State<App>, caller: Caller) -> Result<Json<Sessions>> {
    let owner = caller.access.owner();
    let sessions = app.runner.hub.browser_session_views(&owner).await?;
    Ok(Json(Sessions { sessions }))
}

/// Sign out all browsers of this token, and void its sign-in links
#[utoipa::path(
    delete, path = "/api/sessions", operation_id = "endSessions", tag = "sessions",
    responses(
        (status = 204, description = "No browser is signed in any more"),
    )
)]
pub(super) async fn end_all(State(app): State<App>, caller: Caller) -> Result<StatusCode> {
    let owner = caller.access.owner();
    app.runner.hub.end_browser_sessions(&owner).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Sign out one browser
#[utoipa::path(
    delete, path = "/api/sessions/{id}", operation_id = "endSession", tag = "sessions",
    params(("id" = String, Path)),
    responses(
        (status = 204, description = "The browser is signed out"),
    )
)]
pub(super) async fn end(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    let id = Uuid::parse_str(&id).map_err(|_| Refusal::not_found("there is no such session"))?;
    let owner = caller.access.owner();
    app.runner.hub.end_browser_session(&owner, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Create a link that signs in one browser within ten minutes
///
/// The session has the rights of the caller, and ends with the caller's token.
#[utoipa::path(
    post, path = "/api/pair", operation_id = "pair", tag = "sessions",
    responses(
        (status = 201, description = "The link, shown once", body = LinkView),
    )
)]
pub(super) async fn pair(
    State(app): State<App>,
    caller: Caller,
) -> Result<(StatusCode, Json<LinkView>)> {
    let mut link = app.runner.hub.create_sign_in_link(&caller.access).await?;
    link.url = format!("{}{}", app.address(), link.path);
    Ok((StatusCode::CREATED, Json(link)))
}
