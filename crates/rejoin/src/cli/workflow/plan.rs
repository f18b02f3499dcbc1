//! `rejoin workflow plan`: the steps in order, before anything runs.

use std::collections::BTreeMap;

use rejoin_errors::Result;
use rejoin_runner::workflow::WorkflowFile;
use rejoin_workflow::{Session, Step, Work, Workflow};
use serde::Serialize;
use serde_json::json;

use super::PlanArgs;
use super::files::{inputs, load};
use crate::app::App;
use crate::output::{Line, Tone, format::money, table};

/// Facts about a step before it runs.
#[derive(Debug, Serialize)]
struct Planned {
    id: String,
    kind: &'static str,
    needs: Vec<String>,
    agent: Option<String>,
    model: Option<String>,
    /// Step whose conversation and session it continues.
    continues: Option<String>,
    /// Step whose conversation it copies.
    forks: Option<String>,
    /// Verdict to expect.
    verdict: Option<&'static str>,
    /// Cost in the newest run that succeeded.
    cost_usd: Option<f64>,
    when: Option<String>,
    for_each: Option<String>,
    loops_to: Option<String>,
}

pub(super) async fn plan(app: &App, args: &PlanArgs) -> Result<u8> {
    let file = load(&args.file)?;
    let values = inputs(&file.workflow, &args.inputs)?;
    let costs = last_costs(app, &file).await?;
    let order = file.workflow.order();
    let default = &app.config.default_agent;
    let planned: Vec<Planned> = (order.iter())
        .filter_map(|n| Some((*n, file.workflow.steps.get(*n)?)))
        .map(|(n, step)| planned(&file.workflow, (n, step), default, &costs))
        .collect();
    if app.out.json {
        app.out
            .json(&json!({"name": file.workflow.name, "inputs": values, "steps": planned}));
        return Ok(0);
    }
    let rows: Vec<Vec<Line>> = planned.iter().map(row).collect();
    app.out.lines(&table(&rows, None));
    let known: Vec<f64> = planned.iter().filter_map(|step| step.cost_usd).collect();
    if !known.is_empty() {
        let sum = known.iter().sum();
        app.out
            .text(&format!("\nthe newest run cost {}", money(Some(sum))));
    }
    Ok(0)
}

/// Returns what the steps cost in the newest run of the name that succeeded.
async fn last_costs(app: &App, file: &WorkflowFile) -> Result<BTreeMap<String, f64>> {
    let hub = app.hub();
    let runs = hub.workflows(None).await?.workflows;
    let last = runs.into_iter().find(|run| {
        run.name == file.workflow.name && run.status == rejoin_hub::StepStatus::Succeeded
    });
    let Some(last) = last else {
        return Ok(BTreeMap::new());
    };
    let steps = hub.workflow_steps(last.workflow_id).await?;
    let cost = |step: rejoin_hub::RunStep| {
        let cost = rejoin_core::Micros(step.state.cost?).dollars();
        Some((step.stored.id, cost))
    };
    Ok(steps.into_iter().filter_map(cost).collect())
}

fn planned(
    workflow: &Workflow,
    (n, step): (usize, &Step),
    default: &str,
    costs: &BTreeMap<String, f64>,
) -> Planned {
    let id = |n: usize| workflow.steps.get(n).map(|step| step.id.clone());
    let mut planned = Planned {
        id: step.id.clone(),
        kind: step.work.kind(),
        needs: step.needs.iter().filter_map(|need| id(*need)).collect(),
        agent: None,
        model: None,
        continues: None,
        forks: None,
        verdict: None,
        cost_usd: costs.get(&step.id).copied(),
        when: step.when.as_ref().map(|when| when.source().to_owned()),
        for_each: step.for_each.as_ref().map(|each| each.source().to_owned()),
        loops_to: step.repeat.as_ref().and_then(|repeat| id(repeat.back_to)),
    };
    let Work::Agent(work) = &step.work else {
        return planned;
    };
    planned.model.clone_from(&work.model);
    let agent_of = |n| workflow.agent_of(n).unwrap_or(default).to_owned();
    planned.agent = Some(agent_of(n));
    match work.session {
        Session::New => {}
        Session::Continue(of) => planned.continues = id(of),
        Session::Fork { of, .. } => planned.forks = id(of),
    }
    let parent = work.session.source();
    let same = parent.map(|parent| agent_of(parent) == agent_of(n));
    planned.verdict = Some(match (work.session, same) {
        (Session::New, _) => "started",
        (Session::Continue(_) | Session::Fork { .. }, Some(true)) => "resumed",
        (Session::Continue(_) | Session::Fork { .. }, _) => "joined",
    });
    planned
}

fn row(step: &Planned) -> Vec<Line> {
    let who = match (&step.agent, &step.model) {
        (Some(agent), Some(model)) => format!("{agent} {model}"),
        (Some(agent), None) => agent.clone(),
        (None, _) => step.kind.to_owned(),
    };
    let session = match (&step.continues, &step.forks, step.verdict) {
        (Some(of), _, Some(verdict)) => format!("continues {of} ({verdict})"),
        (_, Some(of), Some(verdict)) => format!("forks {of} ({verdict})"),
        (_, _, Some(verdict)) => verdict.to_owned(),
        (_, _, None) => String::new(),
    };
    let mut notes = vec![];
    if !step.needs.is_empty() {
        notes.push(format!("after {}", step.needs.join(", ")));
    }
    if step.when.is_some() {
        notes.push("if its condition holds".into());
    }
    if step.for_each.is_some() {
        notes.push("once per item".into());
    }
    if let Some(to) = &step.loops_to {
        notes.push(format!("may go back to {to}"));
    }
    if let Some(cost) = step.cost_usd {
        notes.push(money(Some(cost)));
    }
    vec![
        Line::new().with(Tone::Name, &step.id),
        Line::plain(&who),
        Line::plain(&session),
        Line::faint(&notes.join("; ")),
    ]
}
