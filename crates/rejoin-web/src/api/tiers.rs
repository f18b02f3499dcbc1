//! Handler for the tiers of the daemon's configuration.

use axum::Json;
use axum::extract::State;
use rejoin_runner::tiers::{TiersView, as_root};
use rejoin_store::TokenScope;
use serde_json::Value;

use crate::guard::Caller;
use crate::problem::Result;
use crate::state::App;

/// List the tiers, with the parts that each agent enforces
#[utoipa::path(
    get, path = "/api/tiers", operation_id = "listTiers", tag = "status",
    responses(
        (status = 200, body = Object),
    )
)]
pub(super) async fn list(State(app): State<App>, caller: Caller) -> Result<Json<Value>> {
    caller.must(TokenScope::Read)?;
    let defaults = &app.defaults;
    let adapters: Vec<_> = app.runner.config.adapters().collect();
    let mode = defaults.permission.unwrap_or_default();
    let view = TiersView::new(&defaults.tiers, &adapters, mode, as_root());
    Ok(Json(serde_json::to_value(view).unwrap_or_default()))
}
