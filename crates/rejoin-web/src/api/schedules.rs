//! Handlers for the schedules of the daemon's configuration.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use rejoin_hub::{Schedule, ScheduleView, SchedulesView, TurnView};
use rejoin_store::TokenScope;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::extract::{Body, Params};
use crate::guard::Caller;
use crate::problem::{Refusal, Result};
use crate::state::{App, Shared};

/// Number of occurrences of each schedule if the request has no limit, and at most.
const DEFAULT: i64 = 10;
const MOST: i64 = 1_000;

#[derive(Debug, Clone, Copy, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Shown {
    /// Number of occurrences of each schedule: 10, at most 1000.
    limit: Option<i64>,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ScheduleChange {
    /// Occurrences of a paused schedule are skipped.
    paused: bool,
}

/// List the schedules, with their newest occurrences
#[utoipa::path(
    get, path = "/api/schedules", operation_id = "listSchedules", tag = "status",
    params(Shown),
    responses(
        (status = 200, body = SchedulesView),
    )
)]
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(shown): Params<Shown>,
) -> Result<Json<SchedulesView>> {
    caller.must(TokenScope::Read)?;
    let limit = shown.limit.unwrap_or(DEFAULT).clamp(0, MOST);
    let schedules = of(&app, &caller);
    Ok(Json(app.hub(&caller).schedules(schedules, limit).await?))
}

/// Pause or resume a schedule
#[utoipa::path(
    put, path = "/api/schedules/{name}", operation_id = "changeSchedule", tag = "status",
    params(("name" = String, Path)),
    request_body = ScheduleChange,
    responses(
        (status = 200, body = ScheduleView),
    )
)]
pub(super) async fn change(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Body(change): Body<ScheduleChange>,
) -> Result<Json<ScheduleView>> {
    caller.must(TokenScope::Admin)?;
    let schedule = find(&app, &caller, &name)?;
    let hub = app.hub(&caller);
    hub.pause_schedule(schedule, change.paused).await?;
    let view = hub
        .schedules(std::slice::from_ref(schedule), DEFAULT)
        .await?;
    let view = view.schedules.into_iter().next();
    view.map(Json).ok_or_else(|| unknown(&name))
}

/// Run a schedule now
#[utoipa::path(
    post, path = "/api/schedules/{name}/run", operation_id = "runSchedule", tag = "status",
    params(("name" = String, Path)),
    responses(
        (status = 202, description = "The turn was accepted", body = TurnView),
    )
)]
pub(super) async fn run(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<(StatusCode, Json<TurnView>)> {
    caller.must(TokenScope::Admin)?;
    let schedule = find(&app, &caller, &name)?;
    let hub = app.hub(&caller);
    let due = hub.occurrence_now(schedule).await?;
    let turn = app.run_occurrence(schedule, due).await?;
    Ok((StatusCode::ACCEPTED, Json(hub.turn_view(turn).await?)))
}

/// Returns the schedules that a caller may see: they run in the daemon's own namespace.
fn of<'a>(app: &'a Shared, caller: &Caller) -> &'a [Schedule] {
    if *caller.namespace == *app.runner.hub.namespace {
        &app.options.schedules
    } else {
        &[]
    }
}

fn find<'a>(app: &'a Shared, caller: &Caller, name: &str) -> Result<&'a Schedule> {
    let mut all = of(app, caller).iter();
    all.find(|schedule| schedule.name == name)
        .ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Refusal {
    let name: String = name.chars().filter(|c| !c.is_control()).take(100).collect();
    Refusal::not_found(format!("there is no schedule `{name}`")).try_this("rejoin schedule list")
}
