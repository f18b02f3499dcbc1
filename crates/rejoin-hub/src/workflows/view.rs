//! Views of runs and their steps.

use rejoin_core::{ConversationId, EventBody, Micros, TurnId, WorkflowId};
use rejoin_store::StoredWorkflow;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{PAGE, RunStep, StepStatus};
use crate::Hub;
use crate::clock::rfc3339;
use crate::error::{Error, Result};
use crate::view::ErrorView;

/// A run of a workflow with its steps.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkflowView {
    #[serde(flatten)]
    pub run: WorkflowRowView,
    pub steps: Vec<WorkflowStepView>,
}

/// A run of a workflow.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkflowRowView {
    pub workflow_id: WorkflowId,
    pub name: String,
    pub key: Option<String>,
    pub status: StepStatus,
    /// Sum of the known costs; none if no cost is known.
    pub cost_usd: Option<f64>,
    /// False if the cost of a turn is unknown: the sum is then a lower bound.
    pub cost_complete: bool,
    pub started_at: String,
    pub duration_ms: u64,
    /// Reason why the run failed, if it is not that of a step.
    pub error: Option<String>,
}

/// A step of a run, or one item of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkflowStepView {
    /// Id of the step in the file; `ID[N]` for an item.
    pub id: String,
    /// `agent`, `run` or `approve`.
    pub kind: String,
    pub status: StepStatus,
    pub conversation_id: Option<ConversationId>,
    pub turn_id: Option<TurnId>,
    pub session_id: Option<String>,
    /// Step whose conversation it continues or copies.
    pub continued_from: Option<String>,
    pub verdict: Option<String>,
    pub reason: Option<String>,
    pub text: Option<String>,
    /// Answer that matches the step's schema.
    pub output: Value,
    pub exit_code: Option<i64>,
    /// Number of turns that the step has begun.
    pub attempts: u32,
    pub cost_usd: Option<f64>,
    pub duration_ms: u64,
    pub error: Option<ErrorView>,
}

/// A page of runs, newest first.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WorkflowsView {
    pub workflows: Vec<WorkflowRowView>,
    pub next_cursor: Option<String>,
}

impl Hub {
    /// Returns a run with its steps, and with the texts of their answers.
    pub async fn workflow_view(&self, run: &StoredWorkflow) -> Result<WorkflowView> {
        let steps = self.workflow_steps(run.id).await?;
        let mut view = self.workflow_progress(run, &steps);
        for (shown, step) in view.steps.iter_mut().zip(&steps) {
            shown.text = self.step_text(step).await?;
        }
        Ok(view)
    }

    /// Returns a run with its steps, without texts: what a live view needs.
    pub fn workflow_progress(&self, run: &StoredWorkflow, steps: &[RunStep]) -> WorkflowView {
        let now = self.clock.now();
        WorkflowView {
            run: row(run, steps, now),
            steps: steps.iter().map(|step| step_view(step, now)).collect(),
        }
    }

    /// Returns the answer of a step. None if it has none, or if its conversation was deleted.
    pub async fn step_text(&self, step: &RunStep) -> Result<Option<String>> {
        let Some(turn) = step.stored.turn.filter(|_| step.status.has_ended()) else {
            return Ok(None);
        };
        let mut read = self.store.read().await?;
        let reply = read.turns().get(turn).await?.and_then(|turn| turn.reply);
        let Some(reply) = reply else {
            return Ok(None);
        };
        let message = read.messages().get_ever(reply).await?;
        Ok(message.map(|m| m.message.text))
    }

    /// Returns the tool that a running turn uses, with its subject. None while it uses none.
    pub async fn current_tool(&self, turn: TurnId) -> Result<Option<String>> {
        let mut read = self.store.read().await?;
        let newest = read.events().newest_of_turn(turn, 1).await?;
        let Some(row) = newest.into_iter().next() else {
            return Ok(None);
        };
        let EventBody::ToolCall { tool, subject, .. } = row.body.described() else {
            return Ok(None);
        };
        Ok(Some(match subject {
            Some(subject) => format!("{tool} {subject}"),
            None => tool,
        }))
    }

    /// Returns a page of runs, newest first.
    pub async fn workflows(&self, cursor: Option<&str>) -> Result<WorkflowsView> {
        let before = cursor.map(str::parse::<WorkflowId>);
        let before = before.transpose().map_err(|_| Error::Cursor)?;
        let mut read = self.store.read().await?;
        let mut runs = read
            .workflows()
            .list(&self.namespace, before, PAGE + 1)
            .await?;
        drop(read);
        let more = runs.len() as i64 > PAGE;
        runs.truncate(PAGE as usize);
        let mut workflows = vec![];
        for run in &runs {
            let steps = self.workflow_steps(run.id).await?;
            workflows.push(row(run, &steps, self.clock.now()));
        }
        let last = runs.last().filter(|_| more);
        Ok(WorkflowsView {
            workflows,
            next_cursor: last.map(|run| run.id.to_string()),
        })
    }
}

fn row(run: &StoredWorkflow, steps: &[RunStep], now: i64) -> WorkflowRowView {
    let known: Vec<i64> = steps.iter().filter_map(|step| step.state.cost).collect();
    WorkflowRowView {
        workflow_id: run.id,
        name: run.name.clone(),
        key: run.key.clone(),
        status: StepStatus::of(&run.status),
        cost_usd: (!known.is_empty()).then(|| Micros(known.iter().sum()).dollars()),
        cost_complete: !steps.iter().any(|step| step.state.cost_unknown),
        started_at: rfc3339(run.started_at),
        duration_ms: span(Some(run.started_at), run.ended_at, now),
        error: run.error.clone(),
    }
}

fn step_view(step: &RunStep, now: i64) -> WorkflowStepView {
    let (stored, state) = (&step.stored, &step.state);
    WorkflowStepView {
        id: stored.id.clone(),
        kind: stored.kind.clone(),
        status: step.status,
        conversation_id: stored.conversation,
        turn_id: stored.turn,
        session_id: state.session_id.clone(),
        continued_from: state.continued_from.clone(),
        verdict: state.verdict.clone(),
        reason: state.reason.clone(),
        text: None,
        output: state.output.clone(),
        exit_code: state.exit_code,
        attempts: u32::try_from(stored.attempts).unwrap_or(u32::MAX),
        cost_usd: state.cost.map(|cost| Micros(cost).dollars()),
        duration_ms: span(stored.started_at, stored.ended_at, now),
        error: state.error.clone(),
    }
}

/// Returns the milliseconds between two times, or until now.
fn span(from: Option<i64>, until: Option<i64>, now: i64) -> u64 {
    let Some(from) = from else { return 0 };
    u64::try_from((until.unwrap_or(now) - from) / 1000).unwrap_or(0)
}
