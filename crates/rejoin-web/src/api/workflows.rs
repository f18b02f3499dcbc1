//! Handlers for runs of workflows.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use rejoin_core::PermissionMode;
use rejoin_errors::CommandError;
use rejoin_hub::{LimitedPart, RunOptions, StepStatus, WorkflowView, WorkflowsView};
use rejoin_runner::workflow::WorkflowFile;
use rejoin_store::TokenScope;
use rejoin_workflow::{Mistake, Work};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use crate::extract::{Body, Params};
use crate::folders;
use crate::guard::Caller;
use crate::problem::{Refusal, Result};
use crate::state::{App, Shared};

/// Largest file, in bytes.
const LARGEST: u64 = 1 << 20;

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Page {
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkflowRequest {
    /// Text of the file.
    file: Option<String>,
    /// Name of a file in `[workflows] dir`, without `.yaml`.
    name: Option<String>,
    /// Texts of the files that `prompt_file` names.
    #[serde(default)]
    #[schema(value_type = Object)]
    prompts: Map<String, Value>,
    /// Values of the inputs.
    #[serde(default)]
    #[schema(value_type = Object)]
    inputs: Map<String, Value>,
    /// Key of the run: a repeated key with the same file and inputs returns the same run.
    key: Option<String>,
    /// Folder of steps that name none; none: the daemon's.
    workdir: Option<String>,
    /// The demo agent answers in place of every agent, and commands are not run.
    #[serde(default)]
    rehearsal: bool,
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ResumeRequest {
    /// Step at which the run begins again.
    from: Option<String>,
    /// Text of the file to use from now on.
    file: Option<String>,
    /// Texts of the files that it names.
    #[schema(value_type = Option<Object>)]
    prompts: Option<Map<String, Value>>,
}

/// Run a workflow
#[utoipa::path(
    post, path = "/api/workflows", operation_id = "runWorkflow", tag = "workflows",
    request_body = WorkflowRequest,
    responses(
        (status = 202, description = "The run was accepted", body = WorkflowView),
    )
)]
pub(super) async fn create(
    State(app): State<App>,
    caller: Caller,
    Body(request): Body<WorkflowRequest>,
) -> Result<(StatusCode, Json<WorkflowView>)> {
    caller.must(TokenScope::Send)?;
    let file = file_of(&app, &request)?;
    let hub = app.hub(&caller);
    may_run(&hub, &file)?;
    let inputs = file.workflow.bind(&request.inputs);
    let inputs = inputs.map_err(|mistakes| Refusal::usage(mistakes.join("; ")))?;
    let here = || app.defaults.here.to_string_lossy().into_owned();
    let workdir = request.workdir.clone().unwrap_or_else(here);
    let options = RunOptions {
        workdir: folders::allowed(&app, &caller, &workdir)?,
        rehearsal: request.rehearsal,
        ceiling: caller.ceiling,
        roots: folders::roots(&app, &caller),
    };
    let key = request.key.as_deref().map(rejoin_hub::fields::key);
    let key = key.transpose()?;
    let (id, _) = app
        .runner
        .create_workflow(&hub, &file, key.as_deref(), &inputs, &options)
        .await?;
    app.workflows.notify_one();
    let run = hub.find_workflow(&id.to_string()).await?;
    Ok((StatusCode::ACCEPTED, Json(hub.workflow_view(&run).await?)))
}

/// List the runs of workflows, newest first
#[utoipa::path(
    get, path = "/api/workflows", operation_id = "listWorkflows", tag = "workflows",
    params(Page),
    responses(
        (status = 200, body = WorkflowsView),
    )
)]
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(page): Params<Page>,
) -> Result<Json<WorkflowsView>> {
    caller.must(TokenScope::Read)?;
    let hub = app.hub(&caller);
    Ok(Json(hub.workflows(page.cursor.as_deref()).await?))
}

/// Show a run and its steps
#[utoipa::path(
    get, path = "/api/workflows/{id}", operation_id = "showWorkflow", tag = "workflows",
    params(("id" = String, Path, description = "Id or key")),
    responses(
        (status = 200, body = WorkflowView),
    )
)]
pub(super) async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<WorkflowView>> {
    caller.must(TokenScope::Read)?;
    let hub = app.hub(&caller);
    let run = hub.find_workflow(&id).await?;
    Ok(Json(hub.workflow_view(&run).await?))
}

/// Continue a run, or begin it again at a step
#[utoipa::path(
    post, path = "/api/workflows/{id}/resume", operation_id = "resumeWorkflow", tag = "workflows",
    params(("id" = String, Path, description = "Id or key")),
    request_body = ResumeRequest,
    responses(
        (status = 202, description = "The run goes on", body = WorkflowView),
    )
)]
pub(super) async fn resume(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Body(request): Body<ResumeRequest>,
) -> Result<(StatusCode, Json<WorkflowView>)> {
    caller.must(TokenScope::Send)?;
    let hub = app.hub(&caller);
    let run = hub.find_workflow(&id).await?;
    let status = StepStatus::of(&run.status);
    let failed = status.has_ended() && status != StepStatus::Succeeded;
    if request.from.is_some() || failed {
        if !status.has_ended() {
            let text = "the run has not ended; cancel it first";
            return Err(Refusal(CommandError::conflict(text)));
        }
        let file = match &request.file {
            Some(text) => checked(text, request.prompts.as_ref())?,
            None => WorkflowFile::of_run(&run)?,
        };
        may_run(&hub, &file)?;
        app.runner
            .rewind_workflow(&run, request.from.as_deref(), &file)
            .await?;
    }
    app.workflows.notify_one();
    let run = hub.find_workflow(&id).await?;
    Ok((StatusCode::ACCEPTED, Json(hub.workflow_view(&run).await?)))
}

/// Cancel a run
#[utoipa::path(
    post, path = "/api/workflows/{id}/cancel", operation_id = "cancelWorkflow", tag = "workflows",
    params(("id" = String, Path, description = "Id or key")),
    responses(
        (status = 202, description = "Its steps are being ended", body = WorkflowView),
    )
)]
pub(super) async fn cancel(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<WorkflowView>)> {
    caller.must(TokenScope::Send)?;
    let hub = app.hub(&caller);
    let run = hub.find_workflow(&id).await?;
    if !hub.cancel_workflow(run.id).await? {
        return Err(Refusal(CommandError::conflict("the run has ended")));
    }
    app.workflows.notify_one();
    Ok((StatusCode::ACCEPTED, Json(hub.workflow_view(&run).await?)))
}

/// Returns the file of a request: its text, or a named one.
fn file_of(app: &Shared, request: &WorkflowRequest) -> Result<WorkflowFile> {
    match (&request.file, &request.name) {
        (Some(text), None) => checked(text, Some(&request.prompts)),
        (None, Some(name)) => named(app, name),
        (Some(_), Some(_)) | (None, None) => {
            Err(Refusal::usage("a run needs `file` or `name`, and not both"))
        }
    }
}

/// Reads a file of the configured folder.
fn named(app: &Shared, name: &str) -> Result<WorkflowFile> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let unknown = || Refusal::not_found("there is no workflow of this name");
    let folder = app.options.workflows.as_ref().ok_or_else(|| {
        Refusal::not_found("no folder of workflows is configured")
            .try_this("[workflows] dir = \"/etc/rejoin/workflows\" in the configuration")
    })?;
    if name.is_empty() || !name.chars().all(plain) {
        return Err(unknown());
    }
    let path = folder.join(format!("{name}.yaml"));
    let bytes = rejoin_runner::foreign_file::read_regular(&path, LARGEST).map_err(|_| unknown())?;
    let text = String::from_utf8(bytes).map_err(|_| Refusal::usage("the file is not UTF-8"))?;
    WorkflowFile::check(&text, Some(folder)).map_err(|mistakes| refused(&mistakes))
}

fn checked(text: &str, prompts: Option<&Map<String, Value>>) -> Result<WorkflowFile> {
    let empty = Map::new();
    WorkflowFile::with_prompts(text, prompts.unwrap_or(&empty))
        .map_err(|mistakes| refused(&mistakes))
}

fn refused(mistakes: &[Mistake]) -> Refusal {
    let all: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    Refusal::usage(all.join("\n"))
}

/// Refuses a file with commands to callers that may not have commands run.
fn may_run(hub: &rejoin_hub::Hub, file: &WorkflowFile) -> Result<()> {
    let commands = |work: &Work| matches!(work, Work::Run(_) | Work::Shell(_));
    if file.workflow.steps.iter().any(|step| commands(&step.work)) {
        hub.may(LimitedPart::Turn, PermissionMode::Full)?;
    }
    Ok(())
}
