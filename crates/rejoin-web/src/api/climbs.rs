//! Handlers for climbs: escalate a conversation, stop and allow climbs.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rejoin_hub::{EscalateRequest, EscalateView};
use rejoin_store::TokenScope;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::find;
use crate::extract::Body;
use crate::folders;
use crate::guard::Caller;
use crate::problem::Result;
use crate::state::App;

/// Climb to a higher tier
///
/// The next turn of the conversation runs with the tier. With `dry_run` nothing runs.
#[utoipa::path(
    post, path = "/api/conversations/{id}/escalate", operation_id = "escalate", tag = "conversations",
    params(("id" = String, Path, description = "Id, handle or key")),
    request_body = EscalateRequest,
    responses(
        (status = 200, description = "The decision of a dry run", body = EscalateView),
        (status = 202, description = "The turn was accepted", body = EscalateView),
    )
)]
pub(super) async fn escalate(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Body(asked): Body<EscalateRequest>,
) -> Result<Response> {
    let hub = app.hub(&caller);
    let found = find::conversation(&hub, &id).await?;
    folders::allowed(&app, &caller, &found.workdir)?;
    let mut base = app.defaults.request.clone();
    base.roots = folders::roots(&app, &caller);
    caller.may_define(asked.tiers.as_ref())?;
    let tiers = asked.tiers.as_ref().unwrap_or(&app.defaults.tiers);
    let view = hub.escalate(found.id, &asked, tiers, &base).await?;
    let status = match view.turn_id {
        Some(_) => {
            app.queue.take(found.id);
            StatusCode::ACCEPTED
        }
        None => StatusCode::OK,
    };
    Ok((status, Json(view)).into_response())
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Hold {
    /// No climb is allowed in the namespace.
    hold: bool,
}

/// Stop or allow the climbs of the namespace
#[utoipa::path(
    put, path = "/api/hold", operation_id = "setHold", tag = "status",
    request_body = Hold,
    responses(
        (status = 200, body = Hold),
    )
)]
pub(super) async fn hold(
    State(app): State<App>,
    caller: Caller,
    Body(hold): Body<Hold>,
) -> Result<Json<Hold>> {
    caller.must(TokenScope::Admin)?;
    app.hub(&caller).set_hold(hold.hold).await?;
    Ok(Json(hold))
}
