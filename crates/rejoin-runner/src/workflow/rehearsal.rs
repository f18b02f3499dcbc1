//! `workflow test`: steps that are not for a model are not run, and answers match their schema.

use rejoin_hub::StepStatus;
use rejoin_workflow::Work;
use serde_json::{Map, Value, json};

use super::Turns;
use super::engine::{Engine, Slot};
use crate::error::Result;

impl<T: Turns> Engine<'_, T> {
    /// Ends a step as if its command had succeeded, or as if a person had approved it.
    pub(super) async fn rehearse(&mut self, slot: Slot) -> Result<()> {
        let scope = self.scope_of(slot);
        let texts: Vec<String> = match &self.step(slot.n).work {
            Work::Run(work) => work.argv.iter().map(|arg| arg.render(&scope)).collect(),
            Work::Shell(work) => Ok(vec![work.script.clone()]),
            Work::Approve(question) => question.render(&scope).map(|text| vec![text]),
            Work::Agent(_) => Ok(vec![]),
        }
        .unwrap_or_else(|why: String| vec![why]);
        let command = !matches!(self.step(slot.n).work, Work::Approve(_));
        drop(scope);
        let now = self.hub.clock.now();
        let step = self.get_mut(slot);
        step.stored.started_at = Some(now);
        step.state.exit_code = command.then_some(0);
        step.state.output = json!({"not_run": texts});
        self.finish(slot, StepStatus::Succeeded).await
    }
}

/// Returns a value that matches the main parts of a JSON Schema.
pub(super) fn sample(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|all| all.first()) {
        return first.clone();
    }
    if let Some(value) = schema.get("const").or_else(|| schema.get("default")) {
        return value.clone();
    }
    let kinds = &schema["type"];
    let kind = kinds.as_str().or_else(|| kinds[0].as_str());
    match kind {
        Some("object") => {
            let properties = schema["properties"]
                .as_object()
                .cloned()
                .unwrap_or_default();
            let sampled = properties
                .iter()
                .map(|(name, one)| (name.clone(), sample(one)));
            Value::Object(sampled.collect::<Map<_, _>>())
        }
        Some("array") => match schema.get("items") {
            Some(items) => json!([sample(items)]),
            None => json!([]),
        },
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(0)),
        Some("boolean") => json!(false),
        Some("null") => Value::Null,
        Some(_) | None => json!("example"),
    }
}
