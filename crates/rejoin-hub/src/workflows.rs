//! Runs of workflows: stored with every change, held by one process at a time. The work of a step is
//! a turn; what it answered is read from there.

mod approval;
mod view;

use rejoin_core::{PermissionMode, TurnId, WorkflowId};
use rejoin_store::{NewWorkflow, StoredStep, StoredWorkflow, WorkflowChange};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Hub;
use crate::error::{Error, Result};
use crate::view::ErrorView;

pub(crate) use approval::is_about_step;

pub use approval::WORKFLOW_TOOL;
pub use view::{WorkflowRowView, WorkflowStepView, WorkflowView, WorkflowsView};

/// Number of runs on a page.
const PAGE: i64 = 20;

/// Status of a run or a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum StepStatus {
    Pending,
    Running,
    /// A person has to answer.
    Waiting,
    Succeeded,
    Failed,
    Skipped,
    Cancelled,
}

impl StepStatus {
    /// Returns the word that is stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns the status of this name. An unknown one counts as pending.
    pub fn of(text: &str) -> Self {
        let all = [
            Self::Running,
            Self::Waiting,
            Self::Succeeded,
            Self::Failed,
            Self::Skipped,
            Self::Cancelled,
        ];
        let found = all.into_iter().find(|status| status.as_str() == text);
        found.unwrap_or(Self::Pending)
    }

    /// Returns true if a step of this status does not run any more.
    pub fn has_ended(self) -> bool {
        !matches!(self, Self::Pending | Self::Running | Self::Waiting)
    }
}

/// For whom a run works, and with which limits.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RunOptions {
    /// Folder of steps that name none.
    pub workdir: String,
    /// True if the demo agent answers in place of every agent, and commands are not run.
    #[serde(default)]
    pub rehearsal: bool,
    /// Widest permission of a turn.
    #[serde(default)]
    pub ceiling: Option<PermissionMode>,
    /// Folders that a turn must stay beneath; empty: any folder.
    #[serde(default)]
    pub roots: Vec<String>,
}

/// A run to be created.
#[derive(Debug, Clone)]
pub struct NewRun<'a> {
    pub name: &'a str,
    pub key: Option<&'a str>,
    /// Text of the file.
    pub file: &'a str,
    /// Texts of the files that the file names.
    pub prompts: &'a Map<String, Value>,
    pub inputs: &'a Map<String, Value>,
    pub options: &'a RunOptions,
    /// Id and kind of each step, in the order of the file.
    pub steps: Vec<(String, &'static str)>,
}

/// Facts about a step beside those that have a column.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepState {
    /// Step whose conversation it continues or copies.
    pub continued_from: Option<String>,
    pub session_id: Option<String>,
    pub verdict: Option<String>,
    pub reason: Option<String>,
    /// Answer that matches the step's schema.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub output: Value,
    pub exit_code: Option<i64>,
    pub error: Option<ErrorView>,
    /// Sum of the known costs, in millionths of a dollar. None while none is known.
    pub cost: Option<i64>,
    /// True if the cost of a turn is unknown.
    pub cost_unknown: bool,
    /// Number of the time that the step runs, in a loop.
    pub round: u32,
    /// Number of the try within this time.
    pub attempt: u32,
    /// Answers that did not match the schema.
    pub invalid: Vec<String>,
    /// Message of the next turn, if it is not the step's prompt.
    pub follow_up: Option<String>,
    /// Time before which the next try does not begin.
    pub wake_at: Option<i64>,
    /// Value of `item`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<Value>,
    /// True if it copies the conversation that it would continue: an earlier run of the step went on
    /// in it.
    pub forks: bool,
    /// Number of times that the loop of this step went back.
    pub loops: u32,
    /// Turns whose cost is counted.
    pub counted: Vec<TurnId>,
}

/// A step of a run, or one item of it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunStep {
    pub stored: StoredStep,
    pub status: StepStatus,
    pub state: StepState,
}

impl RunStep {
    fn read(stored: StoredStep) -> Result<Self> {
        let state = serde_json::from_str(&stored.state)
            .map_err(|e| Error::Internal(format!("a step of a workflow cannot be read: {e}")))?;
        let status = StepStatus::of(&stored.status);
        Ok(Self {
            stored,
            status,
            state,
        })
    }

    /// Returns a step, or one item of it, that has not begun.
    pub fn pending(n: usize, item: Option<usize>, id: &str, kind: &str) -> Self {
        Self {
            stored: StoredStep {
                n: n as i64,
                item: item.map(|item| item as i64),
                id: id.to_owned(),
                kind: kind.to_owned(),
                status: StepStatus::Pending.as_str().into(),
                attempts: 0,
                conversation: None,
                turn: None,
                state: String::new(),
                started_at: None,
                ended_at: None,
            },
            status: StepStatus::Pending,
            state: StepState::default(),
        }
    }

    fn to_store(&self) -> Result<StoredStep> {
        let state = serde_json::to_string(&self.state)
            .map_err(|e| Error::Internal(format!("a step of a workflow cannot be kept: {e}")))?;
        Ok(StoredStep {
            status: self.status.as_str().into(),
            state,
            ..self.stored.clone()
        })
    }
}

impl Hub {
    /// Creates a run with its steps. Returns an earlier run with the same key, which is then not
    /// created again.
    pub async fn create_workflow(&self, new: &NewRun<'_>) -> Result<(WorkflowId, bool)> {
        let mut tx = self.store.begin().await?;
        if let Some(key) = new.key
            && let Some(before) = tx.workflows().by_key(&self.namespace, key).await?
        {
            if before.file != new.file || before.inputs != to_text(new.inputs)? {
                let text = format!(
                    "the key `{key}` belongs to a run of another file or with other inputs"
                );
                return Err(Error::Conflict(text));
            }
            return Ok((before.id, false));
        }
        let id = self.clock.workflow_id()?;
        let row = NewWorkflow {
            id,
            namespace: &self.namespace,
            key: new.key,
            name: new.name,
            file: new.file,
            prompts: &to_text(new.prompts)?,
            inputs: &to_text(new.inputs)?,
            options: &to_text(new.options)?,
            now: self.clock.now(),
        };
        tx.workflows().add(&row).await?;
        for (n, (step, kind)) in new.steps.iter().enumerate() {
            let step = RunStep::pending(n, None, step, kind).to_store()?;
            tx.workflows().set_step(id, &step).await?;
        }
        tx.commit().await?;
        Ok((id, true))
    }

    /// Returns a run of this namespace, by its id or key.
    pub async fn find_workflow(&self, name: &str) -> Result<StoredWorkflow> {
        let mut read = self.store.read().await?;
        let found = match name.parse::<WorkflowId>() {
            Ok(id) => read.workflows().get(id).await?,
            Err(_) => read.workflows().by_key(&self.namespace, name).await?,
        };
        let own = found.filter(|run| *run.namespace == *self.namespace);
        own.ok_or_else(|| Error::NotFound(format!("there is no run `{name}` of a workflow")))
    }

    /// Returns a run. None if it does not exist.
    pub async fn stored_workflow(&self, id: WorkflowId) -> Result<Option<StoredWorkflow>> {
        Ok(self.store.read().await?.workflows().get(id).await?)
    }

    /// Returns the runs that have not ended, of all namespaces.
    pub async fn running_workflows(&self) -> Result<Vec<StoredWorkflow>> {
        Ok(self.store.read().await?.workflows().running().await?)
    }

    /// Returns the steps of a run, with their items.
    pub async fn workflow_steps(&self, id: WorkflowId) -> Result<Vec<RunStep>> {
        let stored = self.store.read().await?.workflows().steps(id).await?;
        stored.into_iter().map(RunStep::read).collect()
    }

    /// Returns the position of a turn's answer, or of its message while it has none. None if the
    /// message is gone.
    pub async fn last_message_of(&self, turn: TurnId) -> Result<Option<i64>> {
        let mut read = self.store.read().await?;
        let Some(turn) = read.turns().get(turn).await? else {
            return Ok(None);
        };
        let id = turn.reply.unwrap_or(turn.message);
        let message = read.messages().get(id).await?;
        Ok(message.map(|m| m.message.seq).filter(|seq| *seq > 0))
    }

    /// Takes a run for this process. `before` is the holder that was found to be gone.
    pub async fn take_workflow(
        &self,
        id: WorkflowId,
        before: Option<&str>,
        holder: &str,
    ) -> Result<()> {
        let mut tx = self.store.begin().await?;
        let (_, until) = self.lease(&mut tx).await?;
        tx.workflows().take(id, before, holder, until).await?;
        Ok(tx.commit().await?)
    }

    /// Extends the hold on a run. Returns false if another process has it.
    pub async fn renew_workflow(&self, id: WorkflowId, holder: &str) -> Result<bool> {
        let mut tx = self.store.begin().await?;
        let (_, until) = self.lease(&mut tx).await?;
        let renewed = tx.workflows().renew(id, holder, until).await?;
        tx.commit().await?;
        Ok(renewed)
    }

    /// Lets go of a run, so that any process can continue it.
    pub async fn let_go_workflow(&self, id: WorkflowId, holder: &str) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.workflows().let_go(id, holder).await?;
        Ok(tx.commit().await?)
    }

    /// Stores the state of steps, all or none. Fails if another process has taken the run.
    pub async fn save_steps(&self, id: WorkflowId, holder: &str, steps: &[&RunStep]) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.workflows().check_holder(id, holder).await?;
        for step in steps {
            tx.workflows().set_step(id, &step.to_store()?).await?;
        }
        Ok(tx.commit().await?)
    }

    /// Stores the state of a step that runs once per item, with items that are new.
    pub async fn replace_items(
        &self,
        id: WorkflowId,
        holder: &str,
        step: &RunStep,
        items: &[RunStep],
    ) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.workflows().check_holder(id, holder).await?;
        tx.workflows().remove_items(id, step.stored.n).await?;
        for step in std::iter::once(step).chain(items) {
            tx.workflows().set_step(id, &step.to_store()?).await?;
        }
        Ok(tx.commit().await?)
    }

    /// Stores the status of a run.
    pub async fn set_workflow_status(
        &self,
        id: WorkflowId,
        holder: &str,
        status: StepStatus,
        error: Option<&str>,
    ) -> Result<()> {
        let mut tx = self.store.begin().await?;
        let ended_at = status.has_ended().then(|| self.clock.now());
        let change = WorkflowChange {
            status: status.as_str(),
            error,
            ended_at,
        };
        tx.workflows().change(id, holder, change).await?;
        Ok(tx.commit().await?)
    }

    /// Asks the process that runs it to cancel a run. Returns false if the run has ended.
    pub async fn cancel_workflow(&self, id: WorkflowId) -> Result<bool> {
        let mut tx = self.store.begin().await?;
        let asked = tx.workflows().ask_cancel(id).await?;
        tx.commit().await?;
        Ok(asked)
    }

    /// Makes a run that has ended run again, with these steps from now on.
    pub async fn reopen_workflow(
        &self,
        id: WorkflowId,
        (file, prompts): (&str, &Map<String, Value>),
        steps: &[RunStep],
    ) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.workflows().reopen(id, file, &to_text(prompts)?).await?;
        tx.workflows().remove_steps(id, 0).await?;
        for step in steps {
            tx.workflows().set_step(id, &step.to_store()?).await?;
        }
        Ok(tx.commit().await?)
    }
}

fn to_text(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|e| Error::Internal(format!("a workflow cannot be kept: {e}")))
}
