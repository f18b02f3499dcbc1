//! Values that templates and expressions of a run see.

use std::collections::BTreeMap;

use rejoin_core::Micros;
use rejoin_hub::{Hub, RunStep};
use rejoin_workflow::{Scope, StepValues};
use serde_json::{Map, Value};

use crate::error::Result;

/// Returns the values at the beginning of a run: no step has begun.
pub(super) fn scope(run_id: String, inputs: Map<String, Value>, steps: &[String]) -> Scope {
    let pending = StepValues {
        status: "pending".into(),
        ..StepValues::default()
    };
    let steps: BTreeMap<_, _> = steps
        .iter()
        .map(|id| (id.clone(), pending.clone()))
        .collect();
    Scope {
        inputs,
        steps,
        item: None,
        index: None,
        run_id,
    }
}

/// Returns the values of a step, with those of its items.
pub(super) async fn of_step(hub: &Hub, step: &RunStep, items: &[RunStep]) -> Result<StepValues> {
    let mut values = of_one(hub, step).await?;
    if !items.is_empty() {
        let mut all = vec![];
        for item in items {
            all.push(of_one(hub, item).await?);
        }
        values.items = Some(all);
    }
    Ok(values)
}

async fn of_one(hub: &Hub, step: &RunStep) -> Result<StepValues> {
    let state = &step.state;
    Ok(StepValues {
        status: step.status.as_str().into(),
        text: hub.step_text(step).await?.unwrap_or_default(),
        output: state.output.clone(),
        verdict: state.verdict.clone(),
        cost_usd: state.cost.map(|cost| Micros(cost).dollars()),
        exit_code: state.exit_code,
        items: None,
    })
}
