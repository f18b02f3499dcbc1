//! A tool whose approval never came did not run: neither the turn nor the next agent is told that it did.

#![allow(
    clippy::needless_pass_by_value,
    reason = "a test owns its world and ends it"
)]

use rejoin_model::Step;
use rejoin_testkit::{
    CLAUDE_197, CLAUDE_325, CODEX_166, Cli, GEMINI_061, Model, OPENCODE, World, runs, user,
};
use serde_json::Value;

use super::{REJOIN, asking, asks, ended, quiet};

const ASK: [&str; 2] = ["--permission", "ask"];

/// A world in which `#s:touch` asks to run a command.
fn world(cli: &'static dyn Cli) -> Option<World> {
    let script = vec![runs("touch never-ran"), Step::text("done")];
    let model = || Model::scripted([("touch", script)]);
    World::with(REJOIN, cli, model).map(asking)
}

/// What the conversation keeps of tools, in any message.
fn trails(world: &World) -> Vec<Value> {
    let shown = world.run(&["show", "k", "--json"]).ok().json();
    let messages = shown["messages"].as_array().unwrap();
    let notes = messages.iter().filter_map(|m| m["tools"].as_array());
    notes.flatten().cloned().collect()
}

#[track_caller]
fn cancelled_approval_is_no_run(cli: &'static dyn Cli) {
    let Some(world) = world(cli) else { return };
    asks(&world, &format!("{} #s:touch", user(1)), &ASK);
    world.run(&["cancel", "k"]).ok();
    let turn = ended(&world);
    assert_eq!(turn["status"], "cancelled", "{turn:#}");
    let summary = turn["summary"].as_str().unwrap();
    assert!(summary.contains("no tool ran"), "{summary}");
    assert_eq!(trails(&world), Vec::<Value>::new());
    assert!(!world.work().join("never-ran").exists());
    quiet(&world);
    let fresh = ["-a", "demo", "--fresh-session"];
    let told = world.send(2, "what was done?", &fresh).ok().json();
    let text = told["text"].as_str().unwrap();
    assert!(text.contains(&user(1)), "{text}");
    assert!(!text.contains("never-ran"), "{text}");
}

#[test]
fn claude_2_1_197() {
    cancelled_approval_is_no_run(&CLAUDE_197);
}

#[test]
fn claude_2_1_325() {
    cancelled_approval_is_no_run(&CLAUDE_325);
}

#[test]
fn codex_0_166_0() {
    cancelled_approval_is_no_run(&CODEX_166);
}

#[test]
fn gemini_0_61_0() {
    cancelled_approval_is_no_run(&GEMINI_061);
}

#[test]
fn opencode() {
    cancelled_approval_is_no_run(&OPENCODE);
}
