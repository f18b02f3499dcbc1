//! Gemini CLI 0.61.0, the real one.

use rejoin_model::{Script, Step, ToolCall};
use rejoin_testkit::{GEMINI_061, Model, Talk, World};
use serde_json::Value;

mod busy;
mod failures;
mod kills;
mod permission;
mod sessions;
mod words;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");
const FLASH: [&str; 2] = ["-m", "gemini-2.5-flash"];
/// What its stream holds once an answer has begun.
const STREAMS: &str = "\"delta\":true";

fn world() -> Option<World> {
    World::of(REJOIN, &GEMINI_061)
}

fn scripted<const N: usize>(scripts: [(&str, Script); N]) -> Option<World> {
    World::with(REJOIN, &GEMINI_061, || Model::scripted(scripts))
}

/// A conversation with one turn behind it.
#[track_caller]
fn begun(world: World, flags: &[&str]) -> Talk {
    let mut talk = Talk::begin(world);
    talk.good("started", &[&FLASH, flags].concat());
    talk
}

/// A step that calls this tool.
fn calls(name: &str, input: Value) -> Step {
    Step {
        tools: vec![ToolCall {
            name: name.into(),
            input,
        }],
        ..Step::default()
    }
}

fn is_stuck(world: &World) -> bool {
    world
        .pid_of(|command| command == "tail -f /etc/hostname ")
        .is_some()
}

/// How often a tool's result is in the history the model was last shown.
fn results(world: &World) -> usize {
    let history = world.model.last().history().to_string();
    history.matches("\"functionResponse\"").count()
}
