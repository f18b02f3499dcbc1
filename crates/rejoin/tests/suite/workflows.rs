//! `rejoin workflow`: steps that continue each other's conversations, checked by the words that the
//! model was shown.

use std::fmt::Write as _;

use rejoin_testkit::World;
use serde_json::Value;

mod commands;
mod daemon;
mod killed;
mod linked;
mod outputs;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// Writes a workflow with these steps, each a name and its lines.
fn write(world: &World, head: &str, steps: &[(&str, &str)]) {
    let mut text = format!("name: t\n{head}steps:\n");
    for (id, lines) in steps {
        writeln!(text, "  {id}:").unwrap();
        for line in lines.lines() {
            writeln!(text, "    {line}").unwrap();
        }
    }
    std::fs::write(world.work().join("t.yaml"), text).unwrap();
}

/// Runs the workflow under the key `w` and returns it as JSON with its exit code.
#[track_caller]
fn run(world: &World, more: &[&str]) -> (Value, i32) {
    let mut args = vec!["workflow", "run", "t.yaml", "-k", "w", "--json"];
    args.extend(more);
    let done = world.run(&args);
    (done.json(), done.code)
}

/// Runs the workflow, which succeeds.
#[track_caller]
fn succeed(world: &World, more: &[&str]) -> Value {
    let (view, code) = run(world, more);
    assert_eq!(
        (code, &view["status"]),
        (0, &"succeeded".into()),
        "{view:#}"
    );
    view
}

/// Returns a step of a run.
#[track_caller]
fn step<'a>(view: &'a Value, id: &str) -> &'a Value {
    let steps = view["steps"].as_array().unwrap();
    let found = steps.iter().find(|step| step["id"] == id);
    found.unwrap_or_else(|| panic!("no step {id} in {view:#}"))
}
