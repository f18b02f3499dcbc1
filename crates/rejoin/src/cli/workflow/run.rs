//! `rejoin workflow run`, `test`, `resume` and `cancel`, here or through a daemon.

use std::collections::BTreeMap;
use std::time::Duration;

use rejoin_core::{TurnId, WorkflowId};
use rejoin_errors::{CommandError, Result};
use rejoin_hub::{Accepted, IfBusy, RunOptions, StepStatus, WorkflowView};
use rejoin_runner::Runner;
use rejoin_runner::workflow::{RunEnd, Turns, WorkflowFile};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::files::{inputs, load};
use super::live::LiveView;
use super::show::whole;
use super::{PlanArgs, ResumeArgs, RunArgs};
use crate::app::App;
use crate::cli::folder_text;
use crate::cli::report::interrupted;
use crate::hub_client::HubClient;
use crate::remote::{Ask, Remote};

/// Interval between two pictures of the tree, and between two looks at a daemon.
const TICK: Duration = Duration::from_millis(120);
const LOOK: Duration = Duration::from_millis(400);
/// Exit code of a run that waits for a person.
const WAITS: u8 = 7;

/// A run to be started.
struct Start<'a> {
    file: WorkflowFile,
    inputs: Map<String, Value>,
    key: Option<&'a str>,
    workdir: Option<String>,
    rehearsal: bool,
}

pub(super) async fn run(hub: HubClient<'_>, args: &RunArgs) -> Result<u8> {
    let file = load(&args.file)?;
    let workdir = args.workdir.as_deref().map(folder_text).transpose()?;
    let start = Start {
        inputs: inputs(&file.workflow, &args.inputs)?,
        file,
        key: args.key.as_deref(),
        workdir,
        rehearsal: false,
    };
    begin(hub, start, args.detach, args.stream).await
}

pub(super) async fn test(hub: HubClient<'_>, args: &PlanArgs) -> Result<u8> {
    let file = load(&args.file)?;
    let start = Start {
        inputs: inputs(&file.workflow, &args.inputs)?,
        file,
        key: None,
        workdir: None,
        rehearsal: true,
    };
    begin(hub, start, false, false).await
}

async fn begin(hub: HubClient<'_>, start: Start<'_>, detach: bool, stream: bool) -> Result<u8> {
    let id = match hub {
        HubClient::Local(_) if detach => {
            let text = "without a daemon nothing would run the workflow after this command";
            return Err(
                CommandError::usage(text).try_this("rejoin serve, or the same without --detach")
            );
        }
        HubClient::Local(app) => {
            let here = app.here.to_string_lossy().into_owned();
            let options = RunOptions {
                workdir: start.workdir.unwrap_or(here),
                rehearsal: start.rehearsal,
                ..RunOptions::default()
            };
            let created = app
                .runner
                .create_workflow(app.hub(), &start.file, start.key, &start.inputs, &options)
                .await?;
            created.0
        }
        HubClient::Remote(remote) => {
            let here = remote
                .same_machine()
                .then(|| remote.here.to_string_lossy().into_owned());
            let body = json!({
                "file": start.file.text, "prompts": start.file.prompts, "inputs": start.inputs,
                "key": start.key, "workdir": start.workdir.or(here), "rehearsal": start.rehearsal,
            });
            let view: WorkflowView = remote
                .ask(Ask::post(&["api", "workflows"]).body(body))
                .await?;
            view.run.workflow_id
        }
    };
    if detach {
        let view = whole(hub, &id.to_string()).await?;
        let out = hub.out();
        if out.json {
            out.json(&view);
        } else {
            let name = view.run.key.unwrap_or_else(|| id.to_string());
            out.text(&format!(
                "running in the background; look: rejoin workflow show {name}"
            ));
        }
        return Ok(0);
    }
    follow(hub, id, stream).await
}

pub(super) async fn resume(hub: HubClient<'_>, args: &ResumeArgs) -> Result<u8> {
    let id = match hub {
        HubClient::Local(app) => {
            let run = app.hub().find_workflow(&args.run).await?;
            let ended = StepStatus::of(&run.status).has_ended();
            if args.from.is_some() || (ended && run.status != "succeeded") {
                if app.runner.is_workflow_held(&run).await? {
                    let text = "another process runs the workflow; cancel it first";
                    return Err(CommandError::conflict(text)
                        .try_this(format!("rejoin workflow cancel {}", args.run)));
                }
                let file = match &args.file {
                    Some(path) => load(path)?,
                    None => WorkflowFile::of_run(&run)?,
                };
                app.runner
                    .rewind_workflow(&run, args.from.as_deref(), &file)
                    .await?;
            }
            run.id
        }
        HubClient::Remote(remote) => {
            let file = args.file.as_deref().map(load).transpose()?;
            let body = json!({
                "from": args.from,
                "file": file.as_ref().map(|file| &file.text),
                "prompts": file.as_ref().map(|file| &file.prompts),
            });
            let ask = Ask::post(&["api", "workflows", &args.run, "resume"]).body(body);
            let view: WorkflowView = remote.ask(ask).await?;
            view.run.workflow_id
        }
    };
    follow(hub, id, args.stream).await
}

pub(super) async fn cancel(hub: HubClient<'_>, name: &String) -> Result<u8> {
    match hub {
        HubClient::Local(app) => {
            let run = app.hub().find_workflow(name).await?;
            if !app.hub().cancel_workflow(run.id).await? {
                return Err(ended(name));
            }
            // Without a process that runs it, the end has to be recorded here.
            if !app.runner.is_workflow_held(&run).await? {
                drive(app, run.id, &mut |_, _| ()).await?;
            }
        }
        HubClient::Remote(remote) => {
            let ask = Ask::post(&["api", "workflows", name, "cancel"]);
            let _view: WorkflowView = remote.ask(ask).await?;
        }
    }
    let out = hub.out();
    if out.json {
        out.json(&whole(hub, name).await?);
    } else {
        out.text(&format!("{name} is being cancelled"));
    }
    Ok(0)
}

fn ended(name: &str) -> CommandError {
    CommandError::conflict(format!("the run `{name}` has ended"))
        .try_this(format!("rejoin workflow show {name}"))
}

/// Runs or follows a run, shows it, and returns the exit code.
async fn follow(hub: HubClient<'_>, id: WorkflowId, stream: bool) -> Result<u8> {
    let out = hub.out();
    let mut live = LiveView::new(out, stream);
    let signal = match hub {
        HubClient::Local(app) => drive(app, id, &mut |view, tools| live.show(view, tools)).await?,
        HubClient::Remote(remote) => {
            watch_remote(remote, id, &mut |view, tools| live.show(view, tools)).await?
        }
    };
    let view = whole(hub, &id.to_string()).await?;
    live.end(&view);
    if out.json && !stream {
        out.json(&view);
    }
    if let Some(signal) = signal {
        out.note("interrupted; its running turns go on");
        return Ok(signal);
    }
    Ok(match view.run.status {
        StepStatus::Succeeded => 0,
        StepStatus::Waiting => WAITS,
        StepStatus::Cancelled => 130,
        StepStatus::Pending | StepStatus::Running | StepStatus::Failed | StepStatus::Skipped => 1,
    })
}

type Show<'a> = &'a mut dyn FnMut(&WorkflowView, &BTreeMap<String, String>);

/// Runs a workflow in this process. Returns the exit code of a signal that came.
async fn drive(app: &App, id: WorkflowId, show: Show<'_>) -> Result<Option<u8>> {
    let (stop, stopped) = watch::channel(false);
    let (_cancel, cancelled) = watch::channel(false);
    let turns = Here {
        runner: &app.runner,
        cancelled,
    };
    let defaults = app.defaults()?;
    let run = app.runner.run_workflow(id, &defaults, &turns, stopped);
    tokio::pin!(run);
    let signal = interrupted();
    tokio::pin!(signal);
    let mut came = None;
    let ended = {
        // Beside the run, which must not stand still while the store is read for a picture.
        let paint = async {
            let mut tick = tokio::time::interval(TICK);
            loop {
                tick.tick().await;
                if let Err(error) = picture(app, id, show).await {
                    return error;
                }
            }
        };
        tokio::pin!(paint);
        loop {
            tokio::select! {
                biased;
                ended = &mut run => break ended,
                code = &mut signal, if came.is_none() => {
                    came = Some(code);
                    stop.send_replace(true);
                }
                error = &mut paint => return Err(error),
            }
        }
    };
    match ended {
        Ok(ended) => Ok(came.filter(|_| ended == RunEnd::Interrupted)),
        Err(error) if is_elsewhere(&error) => watch_local(app, id, show).await,
        Err(error) => Err(error.into()),
    }
}

/// Returns true if another process runs the workflow.
fn is_elsewhere(error: &rejoin_runner::Error) -> bool {
    matches!(
        error,
        rejoin_runner::Error::Hub(rejoin_hub::Error::Conflict(_))
    )
}

/// Follows a run that another process on this store carries out.
async fn watch_local(app: &App, id: WorkflowId, show: Show<'_>) -> Result<Option<u8>> {
    let signal = interrupted();
    tokio::pin!(signal);
    loop {
        picture(app, id, show).await?;
        let run = app.hub().stored_workflow(id).await?;
        let status = run.as_ref().map(|run| StepStatus::of(&run.status));
        if status.is_none_or(|status| status.has_ended() || status == StepStatus::Waiting) {
            return Ok(None);
        }
        tokio::select! {
            code = &mut signal => return Ok(Some(code)),
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// Shows the run as it is now.
async fn picture(app: &App, id: WorkflowId, show: Show<'_>) -> Result<()> {
    let hub = app.hub();
    let Some(run) = hub.stored_workflow(id).await? else {
        return Ok(());
    };
    let steps = hub.workflow_steps(id).await?;
    let mut tools = BTreeMap::new();
    for step in &steps {
        if let (StepStatus::Running, Some(turn)) = (step.status, step.stored.turn)
            && let Some(tool) = hub.current_tool(turn).await?
        {
            tools.insert(step.stored.id.clone(), tool);
        }
    }
    show(&hub.workflow_progress(&run, &steps), &tools);
    Ok(())
}

/// Follows a run that a daemon carries out. An interruption leaves it running.
async fn watch_remote(remote: &Remote, id: WorkflowId, show: Show<'_>) -> Result<Option<u8>> {
    let signal = interrupted();
    tokio::pin!(signal);
    let id = id.to_string();
    loop {
        let ask = Ask::get(&["api", "workflows", &id]);
        let view: WorkflowView = remote.ask(ask).await?;
        show(&view, &BTreeMap::new());
        let status = view.run.status;
        if status.has_ended() || status == StepStatus::Waiting {
            return Ok(None);
        }
        tokio::select! {
            code = &mut signal => return Ok(Some(code)),
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// Runs turns in this process.
struct Here<'a> {
    runner: &'a Runner,
    cancelled: watch::Receiver<bool>,
}

impl Turns for Here<'_> {
    fn holder(&self) -> Option<String> {
        self.runner.holder().ok()
    }

    /// The turn's own task reads the stored wish.
    fn cancel(&self, _turn: TurnId) {}

    async fn run(&self, accepted: Accepted) -> rejoin_runner::Result<()> {
        let (c, turn) = (accepted.conversation, accepted.turn);
        self.runner
            .run_in_hand(&accepted, IfBusy::Wait, &self.cancelled)
            .await?;
        self.runner
            .run_to_rest(c, turn, IfBusy::Wait, &self.cancelled)
            .await
    }
}
