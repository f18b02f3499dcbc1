//! JSON Schema of the file format.

use serde_json::{Map, Value, json};

use crate::keys::{
    DEFAULT_PARALLEL, DEFAULTS, ID, MAX_PARALLEL, MAX_ROUNDS, MAX_STEPS, RETRY_CAUSES, STEP, TOP,
};
use crate::workflow::InputKind;

/// Returns the JSON Schema (draft 2020-12) of the file format.
pub fn json_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "rejoin workflow",
        "type": "object",
        "additionalProperties": false,
        "required": ["name", "steps"],
        "properties": properties(TOP.iter().copied()),
        "$defs": {
            "id": { "type": "string", "pattern": ID, "maxLength": 64 },
            "time": { "type": "string", "pattern": "^[0-9.]+(ms|s|m|min|h|d)$" },
            "texts": { "type": "array", "items": { "type": "string" } },
            "expression": { "type": ["string", "boolean", "number"] },
            "input": input(),
            "retry": retry(),
            "loop": repeat(),
            "step": step(),
        }
    })
}

fn properties<'k>(keys: impl Iterator<Item = &'k str>) -> Value {
    keys.map(|key| (key.to_owned(), property(key)))
        .collect::<Map<_, _>>()
        .into()
}

fn step() -> Value {
    let one_of: Vec<Value> = (crate::keys::DECIDING.iter())
        .map(|key| json!({ "required": [key] }))
        .collect();
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": properties(STEP.iter().map(|(key, _)| *key)),
        "oneOf": one_of,
    })
}

fn input() -> Value {
    let kinds: Vec<&str> = InputKind::NAMES.iter().map(|(name, _)| *name).collect();
    json!({
        "type": ["object", "null"],
        "additionalProperties": false,
        "properties": {
            "type": { "enum": kinds, "default": "string" },
            "required": { "type": "boolean", "default": false },
            "default": {},
            "description": { "type": "string" },
        }
    })
}

fn retry() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["max"],
        "properties": {
            "max": { "type": "integer", "minimum": 0, "maximum": MAX_ROUNDS },
            "on": { "type": "array", "items": { "enum": RETRY_CAUSES } },
            "wait": { "$ref": "#/$defs/time" },
        }
    })
}

fn repeat() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["back_to", "while", "max"],
        "properties": {
            "back_to": { "$ref": "#/$defs/id" },
            "while": { "$ref": "#/$defs/expression" },
            "max": { "type": "integer", "minimum": 1, "maximum": MAX_ROUNDS },
        }
    })
}

fn defaults() -> Value {
    json!({
        "type": ["object", "null"],
        "additionalProperties": false,
        "properties": properties(DEFAULTS.iter().copied()),
    })
}

/// Returns the schema of a key. A key means the same wherever it appears.
fn property(key: &str) -> Value {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let of = |name: &str, description: &str| json!({ "$ref": format!("#/$defs/{name}"), "description": description });
    match key {
        "name" => {
            json!({ "type": "string", "minLength": 1, "maxLength": 200, "description": "Name of the workflow" })
        }
        "description" => text("Description for people"),
        "inputs" => json!({
            "type": ["object", "null"],
            "propertyNames": { "$ref": "#/$defs/id" },
            "additionalProperties": { "$ref": "#/$defs/input" },
            "description": "Values that a run passes in",
        }),
        "defaults" => defaults(),
        "max_parallel" => json!({
            "type": "integer", "minimum": 1, "maximum": MAX_PARALLEL, "default": DEFAULT_PARALLEL,
            "description": "Most steps that run at the same time",
        }),
        "steps" => json!({
            "type": "object",
            "minProperties": 1,
            "maxProperties": MAX_STEPS,
            "propertyNames": { "$ref": "#/$defs/id" },
            "additionalProperties": { "$ref": "#/$defs/step" },
            "description": "Steps by id",
        }),
        "agent" => text("Agent of the step"),
        "model" => text("Model of the agent"),
        "tier" => text("Tier of the step"),
        "prompt" => text("Prompt of the agent; a template"),
        "prompt_file" => text("File with the prompt, relative to the workflow"),
        "continue_from" => of(
            "id",
            "Step whose conversation and session this step continues",
        ),
        "fork_from" => of(
            "id",
            "Step whose conversation this step continues as a copy",
        ),
        "needs" => json!({
            "type": "array", "items": { "$ref": "#/$defs/id" }, "uniqueItems": true,
            "description": "Steps that must succeed before this one",
        }),
        "when" => of("expression", "Condition of the step"),
        "retry" => of("retry", "Retries of a failed step"),
        "timeout" => of("time", "Longest time, such as 20m"),
        "permission" => {
            json!({ "enum": ["read-only", "edit", "full", "ask"], "description": "Permission mode of the agent" })
        }
        "tools" => of("texts", "Tools that the agent may use"),
        "deny_tools" => of("texts", "Tools that the agent may not use"),
        "continuity" => {
            json!({ "enum": ["required", "best"], "default": "required", "description": "best: accept a new session with the transcript" })
        }
        "output" => {
            json!({ "type": "object", "required": ["type"], "description": "JSON Schema of the answer" })
        }
        "for_each" => of("expression", "List with an item for each copy of the step"),
        "loop" => of("loop", "Repeats the steps from `back_to` to this one"),
        "run" => json!({
            "type": "array", "minItems": 1, "items": { "type": "string" },
            "description": "Program and arguments, without a shell; templates",
        }),
        "shell" => text("Shell script, never a template; values reach it through `env`"),
        "env" => json!({
            "type": ["object", "null"],
            "additionalProperties": { "type": ["string", "number", "boolean"] },
            "description": "Environment variables; templates",
        }),
        "approve" => text("Question that waits for a person; a template"),
        "workdir" => text("Working folder; a template"),
        "max_cost_usd" => {
            json!({ "type": "number", "exclusiveMinimum": 0, "description": "Limit of the cost" })
        }
        _ => json!({}),
    }
}

#[cfg(test)]
mod tests;
