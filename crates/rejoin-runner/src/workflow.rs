//! Runs workflows: steps that continue each other's conversations. The work of a step is a turn, so
//! this module only decides which turn comes next, and stores what came of it.
//!
//! `engine` is the loop, `advance` finds the steps that can begin, `begin` accepts the turn of a step,
//! `settle` turns the end of a turn into the end of a step.

mod advance;
mod begin;
mod engine;
mod limits;
mod rehearsal;
mod settle;
mod values;

use std::future::Future;
use std::path::Path;

use rejoin_core::{TurnId, WorkflowId};
use rejoin_hub::{Accepted, Hub, NewRun, RunOptions, RunStep, StepStatus};
use rejoin_store::StoredWorkflow;
use rejoin_workflow::{Mistake, Work, Workflow};
use serde_json::{Map, Value};
use tokio::sync::watch;

use crate::error::{Error, Result};
use crate::lease::is_held_workflow;
use crate::send::Defaults;
use crate::turn::Runner;
use engine::Engine;

/// Largest file that `prompt_file` may name, in bytes.
const PROMPT_FILE: u64 = 1 << 20;

/// Means by which a run has its turns run: in this process, or by the queue of a daemon.
pub trait Turns {
    /// Returns the holder that claims a turn when it is accepted. None: it waits in the queue.
    fn holder(&self) -> Option<String>;

    /// Ends a running turn, whose cancellation is stored.
    fn cancel(&self, turn: TurnId);

    /// Runs a turn until it has ended, or waits for a person without a process.
    fn run(&self, accepted: Accepted) -> impl Future<Output = Result<()>>;
}

/// End of the work of this process on a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    Ended(StepStatus),
    /// A person has to answer before anything can go on.
    Waits,
    /// Interrupted by the caller. The run can be continued.
    Interrupted,
}

/// A checked file, with the texts of the files that it names.
#[derive(Debug)]
pub struct WorkflowFile {
    pub workflow: Workflow,
    pub text: String,
    pub prompts: Map<String, Value>,
}

impl WorkflowFile {
    /// Checks the text of a file. `folder` is that of the files that it names; none: it may name
    /// none.
    pub fn check(text: &str, folder: Option<&Path>) -> Result<Self, Vec<Mistake>> {
        let read = std::cell::RefCell::new(Map::new());
        let workflow = rejoin_workflow::parse(text, &|name| {
            let folder = folder.ok_or("files can be named only by a file of this machine")?;
            let text = prompt_file(folder, name)?;
            read.borrow_mut()
                .insert(name.to_owned(), text.clone().into());
            Ok(text)
        })?;
        Ok(Self {
            workflow,
            text: text.to_owned(),
            prompts: read.into_inner(),
        })
    }

    /// Checks the text of a file whose files came with it.
    pub fn with_prompts(text: &str, prompts: &Map<String, Value>) -> Result<Self, Vec<Mistake>> {
        let known = |name: &str| {
            let text = prompts.get(name).and_then(Value::as_str);
            text.map(str::to_owned)
                .ok_or_else(|| "its text is not there".to_owned())
        };
        Ok(Self {
            workflow: rejoin_workflow::parse(text, &known)?,
            text: text.to_owned(),
            prompts: prompts.clone(),
        })
    }

    /// Checks the file of a stored run again.
    pub fn of_run(run: &StoredWorkflow) -> Result<Self> {
        let prompts: Map<String, Value> = serde_json::from_str(&run.prompts).unwrap_or_default();
        Self::with_prompts(&run.file, &prompts).map_err(|mistakes| {
            let first = mistakes
                .first()
                .map(ToString::to_string)
                .unwrap_or_default();
            Error::CannotGoOn(format!(
                "the file of the run cannot be read any more: {first}"
            ))
        })
    }

    /// Returns id and kind of each step, in the order of the file.
    pub fn steps(&self) -> Vec<(String, &'static str)> {
        let steps = self.workflow.steps.iter();
        steps
            .map(|step| (step.id.clone(), step.work.kind()))
            .collect()
    }
}

/// Reads a file beneath the folder of the workflow.
fn prompt_file(folder: &Path, name: &str) -> Result<String, String> {
    let path = folder.join(name);
    let beneath = |path: &Path| {
        let real = fs_err::canonicalize(path).map_err(|e| e.to_string())?;
        let folder = fs_err::canonicalize(folder).map_err(|e| e.to_string())?;
        Ok::<_, String>(real.starts_with(folder))
    };
    if !beneath(&path)? {
        return Err(format!("{name} is not beneath the folder of the workflow"));
    }
    let text = crate::foreign_file::read_regular(&path, PROMPT_FILE).map_err(|e| e.to_string())?;
    String::from_utf8(text).map_err(|_| format!("{name} is not UTF-8"))
}

/// Returns the number of the last time that a step ran. None if it never did.
fn last_round(known: &[RunStep], id: &str) -> Option<u32> {
    let own = known
        .iter()
        .filter(|step| step.stored.id.split('[').next() == Some(id));
    own.map(|step| step.state.round).max()
}

impl Runner {
    /// Creates a run, or returns the earlier one with the same key.
    pub async fn create_workflow(
        &self,
        hub: &Hub,
        file: &WorkflowFile,
        key: Option<&str>,
        inputs: &Map<String, Value>,
        options: &RunOptions,
    ) -> Result<(WorkflowId, bool)> {
        let new = NewRun {
            name: &file.workflow.name,
            key,
            file: &file.text,
            prompts: &file.prompts,
            inputs,
            options,
            steps: file.steps(),
        };
        Ok(hub.create_workflow(&new).await?)
    }

    /// Continues a run until it ends, waits for a person, or `stop` says so. Fails if another
    /// process runs it.
    pub async fn run_workflow(
        &self,
        id: WorkflowId,
        defaults: &Defaults,
        turns: &impl Turns,
        stop: watch::Receiver<bool>,
    ) -> Result<RunEnd> {
        let gone = || rejoin_hub::Error::NotFound("the run is gone".into());
        let run = self.hub.stored_workflow(id).await?.ok_or_else(gone)?;
        if StepStatus::of(&run.status).has_ended() {
            return Ok(RunEnd::Ended(StepStatus::of(&run.status)));
        }
        if is_held_workflow(&self.hub, self.here()?, &run).await? {
            let text = "another process runs the workflow";
            return Err(rejoin_hub::Error::Conflict(text.into()).into());
        }
        let holder = self.holder()?;
        self.hub
            .take_workflow(id, run.holder.as_deref(), &holder)
            .await?;
        let engine = Engine::load(self, run, defaults, turns, holder.clone()).await?;
        let ended = engine.run(stop).await;
        self.hub.let_go_workflow(id, &holder).await?;
        ended
    }

    /// Returns true if a live process runs the workflow.
    pub async fn is_workflow_held(&self, run: &StoredWorkflow) -> Result<bool> {
        is_held_workflow(&self.hub, self.here()?, run).await
    }

    /// Makes a run begin again at a step, with the file of the run or a new one. Steps before it that
    /// exist in both keep their results; conversations of the others are copied.
    pub async fn rewind_workflow(
        &self,
        run: &StoredWorkflow,
        from: Option<&str>,
        file: &WorkflowFile,
    ) -> Result<()> {
        let known = self.hub.workflow_steps(run.id).await?;
        let steps = file.steps();
        let first = match from {
            Some(id) => {
                let found = steps.iter().position(|(step, _)| step == id);
                found.ok_or_else(|| {
                    let names: Vec<&str> = steps.iter().map(|(id, _)| id.as_str()).collect();
                    let text = format!(
                        "there is no step `{id}`; the steps are {}",
                        names.join(", ")
                    );
                    rejoin_hub::Error::Usage(text)
                })?
            }
            None => steps.len(),
        };
        let again = advance::behind(&file.workflow, first);
        let mut kept = vec![];
        for (n, (id, kind)) in steps.iter().enumerate() {
            let whole = known
                .iter()
                .find(|step| step.stored.id == *id && step.status == StepStatus::Succeeded);
            let Some(whole) = whole.filter(|_| !again.contains(&n)) else {
                let mut step = RunStep::pending(n, None, id, kind);
                step.state.round = last_round(&known, id).map_or(0, |round| round + 1);
                let of = file
                    .workflow
                    .steps
                    .get(n)
                    .and_then(|step| match &step.work {
                        Work::Agent(work) => work.session.source(),
                        Work::Run(_) | Work::Shell(_) | Work::Approve(_) => None,
                    });
                step.state.forks = of.is_some_and(|of| !again.contains(&of));
                kept.push(step);
                continue;
            };
            let items = known
                .iter()
                .filter(|step| step.stored.item.is_some() && step.stored.n == whole.stored.n);
            for step in std::iter::once(whole).chain(items) {
                let mut step = step.clone();
                step.stored.n = n as i64;
                kept.push(step);
            }
        }
        self.hub
            .reopen_workflow(run.id, (&file.text, &file.prompts), &kept)
            .await?;
        Ok(())
    }
}
