//! Sessions that the CLIs made on their own become conversations, and go on.

use rejoin_testkit::{Cli, World, answer, assert_shown, said, user};
use serde_json::Value;

mod hand;
mod odd;
mod ours;
mod picker;
mod together;

/// Gemini deletes sessions that were resumed, with its own settings: not what is tested here.
fn keep_gemini(world: &World) {
    let file = world.home().join(".gemini/settings.json");
    if let Ok(text) = std::fs::read_to_string(&file) {
        let kept = r#""maxAttempts": 1, "sessionRetention": {"enabled": false}"#;
        std::fs::write(file, text.replace(r#""maxAttempts": 1"#, kept)).unwrap();
    }
}

/// What is said with a CLI alone: message N and its answer.
fn alone(world: &World, cli: &dyn Cli, session: Option<&str>, n: usize) {
    world.alone(cli, session, &format!("{} #s:a{n}", user(n)));
}

/// The sessions that are listed.
#[track_caller]
fn listed(world: &World, more: &[&str]) -> Vec<Value> {
    let args = [&["adopt", "--json"], more].concat();
    let done = world.run(&args).ok().json();
    assert_eq!(done["adopted"], serde_json::json!([]), "{done:#}");
    done["sessions"].as_array().unwrap().clone()
}

/// What was adopted.
#[track_caller]
fn adopted(world: &World, more: &[&str]) -> Vec<Value> {
    let args = [&["adopt", "--json"], more].concat();
    let done = world.run(&args).ok().json();
    done["adopted"].as_array().unwrap().clone()
}

/// Sends message N; the model is shown these turns and it, each once.
#[track_caller]
fn goes_on(world: &World, conversation: &Value, n: usize, before: &[usize]) -> Value {
    let text = format!("{} #s:a{n}", user(n));
    let handle = conversation["handle"].as_str().unwrap();
    let args = ["send", "--json", "-c", handle, &text];
    let turn = world.run(&args).ok().json();
    let mut words = said(before.iter().copied());
    words.push(user(n));
    assert_shown(&world.model.last(), &words);
    assert_eq!(turn["text"], answer(n));
    turn
}

#[track_caller]
fn messages(world: &World, conversation: &Value) -> Vec<Value> {
    let handle = conversation["handle"].as_str().unwrap();
    let shown = world.run(&["show", handle, "--json"]).ok().json();
    shown["messages"].as_array().unwrap().clone()
}
