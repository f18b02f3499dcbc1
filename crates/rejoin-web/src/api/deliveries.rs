//! The log of notifications.

use axum::Json;
use axum::extract::State;
use rejoin_hub::DeliveryView;
use serde::Serialize;
use utoipa::ToSchema;

use crate::guard::Caller;
use crate::problem::Result;
use crate::state::App;

const NEWEST: i64 = 200;

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Deliveries {
    deliveries: Vec<DeliveryView>,
}

/// List notifications and their results, newest first
#[utoipa::path(
    get, path = "/api/deliveries", operation_id = "listDeliveries", tag = "status",
    responses((status = 200, body = Deliveries))
)]
pub(super) async fn list(State(app): State<App>, caller: Caller) -> Result<Json<Deliveries>> {
    let deliveries = app.hub(&caller).delivery_views(NEWEST).await?;
    Ok(Json(Deliveries { deliveries }))
}
