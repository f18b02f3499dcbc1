//! Handlers for links that show a conversation without a token.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use rejoin_hub::{PageRequest, ShareRequest, ShareView, SharedView, SharesView};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::find;
use crate::extract::{MaybeBody, Params};
use crate::guard::Caller;
use crate::problem::{Refusal, Result};
use crate::state::App;

/// Options of a link.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ShareBody {
    /// In seconds from now, a year at most; none: open until it is closed.
    expires_in_s: Option<u32>,
    /// Show messages that are added later too.
    #[serde(default)]
    follow: bool,
}

/// Create a link that shows the conversation, without its secrets, to readers without a token
///
/// The link is in the answer, and only there.
#[utoipa::path(
    post, path = "/api/conversations/{id}/shares", operation_id = "createShare", tag = "shares",
    params(("id" = String, Path, description = "Id, handle or key")),
    request_body(content = Option<ShareBody>),
    responses(
        (status = 201, description = "It was made", body = ShareView),
    )
)]
pub(super) async fn create(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    MaybeBody(body): MaybeBody<ShareBody>,
) -> Result<(StatusCode, Json<ShareView>)> {
    let hub = app.hub(&caller);
    let found = find::conversation(&hub, &id).await?;
    let request = ShareRequest {
        expires_in: body.expires_in_s.map(|s| i64::from(s) * 1_000_000),
        follow: body.follow,
        by: caller.name.to_string(),
    };
    let made = hub.share(found.id, &request).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// List the links of a conversation, with the number of their views
#[utoipa::path(
    get, path = "/api/conversations/{id}/shares", operation_id = "listShares", tag = "shares",
    params(("id" = String, Path, description = "Id, handle or key")),
    responses(
        (status = 200, body = SharesView),
    )
)]
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<SharesView>> {
    let hub = app.hub(&caller);
    let found = find::conversation(&hub, &id).await?;
    Ok(Json(hub.shares(found.id).await?))
}

/// Close a link
#[utoipa::path(
    delete, path = "/api/shares/{id}", operation_id = "closeShare", tag = "shares",
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "It is closed", body = ShareView),
    )
)]
pub(super) async fn close(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<ShareView>> {
    let none = || Refusal::not_found("there is no such link");
    let id = id.parse().map_err(|_| none())?;
    Ok(Json(app.hub(&caller).close_share(id).await?))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Showing {
    /// Messages before this number.
    before: Option<i64>,
    /// Messages after this number.
    after: Option<i64>,
    /// Maximum number of messages; 100 by default, 1000 at most.
    limit: Option<i64>,
}

/// Show a shared conversation; no token is needed
#[utoipa::path(
    get, path = "/api/shared/{secret}", operation_id = "showShared", tag = "shares", security(()),
    params(("secret" = String, Path, description = "The part of the link behind `/s/`"), Showing),
    responses(
        (status = 200, body = SharedView),
    )
)]
pub(super) async fn show(
    State(app): State<App>,
    Path(secret): Path<String>,
    Params(showing): Params<Showing>,
) -> Result<Json<SharedView>> {
    let page = PageRequest {
        before: showing.before,
        after: showing.after,
        limit: showing.limit,
        ..PageRequest::default()
    };
    Ok(Json(app.runner.hub.shared(&secret, &page).await?))
}
