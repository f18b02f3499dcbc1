//! What an agent asks a person: shown anywhere, answered once, and heard by the model once.

mod answers;
mod cancelled;
mod claude;
mod codex;
mod daemon;
pub(crate) mod deferred;
mod gemini;
mod gone;
pub(crate) mod killed;
mod opencode;
mod person;
mod piped;

use rejoin_testkit::{Done, World, wait_for};
use serde_json::Value;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// Turns wait, whether or not a person is here.
fn asking(mut world: World) -> World {
    world.set("REJOIN_QUESTIONS_ASK", "always");
    world.set("USER", "ada");
    world
}

fn demo() -> World {
    asking(World::new(REJOIN))
}

/// Sends a message to the conversation `k`; it comes back because somebody is needed.
#[track_caller]
fn asks(world: &World, text: &str, more: &[&str]) -> Value {
    let mut args = vec!["send", "--json", "-k", "k"];
    args.extend(more);
    args.push(text);
    let done = world.run(&args);
    assert_eq!(done.code, 7, "{done:?}");
    let turn = done.json();
    assert_eq!(turn["status"], "waiting", "{turn}");
    turn
}

/// The only question of a turn.
#[track_caller]
fn only(turn: &Value) -> &Value {
    let questions = turn["questions"].as_array().unwrap();
    assert_eq!(questions.len(), 1, "{turn}");
    &questions[0]
}

fn inbox(world: &World) -> Vec<Value> {
    let shown = world.run(&["inbox", "--json"]).ok().json();
    shown["inbox"].as_array().unwrap().clone()
}

fn answer(world: &World, words: &[&str]) -> Done {
    let mut args = vec!["answer", "--json"];
    args.extend(words);
    world.run(&args)
}

/// How the newest turn ended.
#[track_caller]
fn ended(world: &World) -> Value {
    wait_for("the turn to be settled", 30, || {
        let turn = world.last_turn();
        let status = turn["status"].as_str().unwrap();
        (!["queued", "running", "waiting"].contains(&status)).then_some(turn)
    })
}

/// Waits until nothing of the world runs.
#[track_caller]
fn quiet(world: &World) {
    wait_for("everything to be gone", 20, || {
        world.leftovers().is_empty().then_some(())
    });
    world.assert_quiet();
}
