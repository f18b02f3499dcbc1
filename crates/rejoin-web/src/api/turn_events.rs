//! Handlers for the events of a turn as pages, and for its changes to files.

use axum::Json;
use axum::extract::{Path, State};
use rejoin_hub::{TurnChangesView, TurnEventsQuery, TurnEventsView};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{events, find};
use crate::extract::Params;
use crate::guard::Caller;
use crate::problem::Result;
use crate::state::App;

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Paging {
    /// Only events after this number.
    #[serde(default)]
    after: i64,
    /// Maximum number of events; 200 by default, 2000 at most. Fewer if they are long.
    limit: Option<i64>,
    /// Only events of these types, separated by commas: `tool.*,text`.
    types: Option<String>,
    /// Only events of this tool call: its `id`.
    tool_id: Option<String>,
    /// Do not cut long texts.
    #[serde(default)]
    whole: bool,
}

/// List the events of a turn, page by page, with long texts cut
#[utoipa::path(
    get, path = "/api/turns/{id}/log", operation_id = "turnLog", tag = "turns",
    params(("id" = String, Path), Paging),
    responses(
        (status = 200, body = TurnEventsView),
    )
)]
pub(super) async fn log(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Params(paging): Params<Paging>,
) -> Result<Json<TurnEventsView>> {
    let hub = app.hub(&caller);
    let turn = find::turn(&hub, &id).await?;
    let types = events::types(paging.types.as_deref())?;
    let query = TurnEventsQuery {
        after: paging.after,
        limit: paging.limit,
        types: types.map(|types| types.to_vec()),
        tool_id: paging.tool_id,
        whole: paging.whole,
    };
    Ok(Json(hub.turn_events(turn.id, &query).await?))
}

/// Show the changes of a turn to files, as the agent's tool calls describe them
#[utoipa::path(
    get, path = "/api/turns/{id}/changes", operation_id = "turnChanges", tag = "turns",
    params(("id" = String, Path)),
    responses(
        (status = 200, body = TurnChangesView),
    )
)]
pub(super) async fn changes(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<TurnChangesView>> {
    let hub = app.hub(&caller);
    let turn = find::turn(&hub, &id).await?;
    Ok(Json(hub.turn_changes(turn.id).await?))
}
