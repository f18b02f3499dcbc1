//! Handler for costs.

use axum::Json;
use axum::extract::State;
use rejoin_hub::{CostsBy, CostsQuery, CostsView};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::extract::Params;
use crate::guard::Caller;
use crate::problem::{Refusal, Result};
use crate::state::App;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Period {
    /// `day`, `agent`, `folder` or `model`; `day` if nothing is said.
    #[param(inline)]
    by: Option<CostsBy>,
    /// Begin of the period, RFC 3339; a week ago if nothing is said.
    since: Option<String>,
    /// End of the period, RFC 3339; now if nothing is said.
    until: Option<String>,
    /// The time zone of days, such as `Europe/Berlin`; UTC if nothing is said.
    zone: Option<String>,
}

/// Sum the costs of the turns of a period
#[utoipa::path(
    get, path = "/api/costs", operation_id = "costs", tag = "status",
    params(Period),
    responses(
        (status = 200, body = CostsView),
    )
)]
pub(super) async fn costs(
    State(app): State<App>,
    caller: Caller,
    Params(period): Params<Period>,
) -> Result<Json<CostsView>> {
    let time = |name: &str, text: Option<String>| {
        let Some(text) = text else { return Ok(None) };
        let unread = || Refusal::usage(format!("`{name}` is a time in RFC 3339, not `{text}`"));
        rejoin_hub::micros_of(&text).ok_or_else(unread).map(Some)
    };
    let query = CostsQuery {
        by: period.by.unwrap_or_default(),
        since: time("since", period.since)?,
        until: time("until", period.until)?,
        zone: period.zone,
    };
    Ok(Json(app.hub(&caller).costs(&query).await?))
}
