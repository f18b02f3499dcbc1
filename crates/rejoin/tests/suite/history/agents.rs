//! The agent that answers again, and the agent of a fork.

use rejoin_testkit::{CLAUDE_197, CODEX_166, Model, World, user};
use serde_json::{Value, json};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// The conversation `k`: two messages to Codex, one to Claude.
fn world() -> Option<World> {
    let world = World::of_all(REJOIN, &[&CODEX_166, &CLAUDE_197], Model::start())?;
    world.say(1, &["-a", "codex"]);
    world.say(2, &["-a", "claude"]);
    Some(world)
}

fn agent(turn: &Value) -> &str {
    turn["agent"].as_str().unwrap()
}

/// B8: as the message was sent.
#[test]
fn a_retry_goes_to_the_agent_that_answered() {
    let Some(world) = world() else { return };
    let turn = world.run(&["retry", "k:1", "--json"]).ok().json();
    assert_eq!(agent(&turn), "codex", "{turn:#}");
    let turn = world
        .run(&["retry", "k:1", "-a", "claude", "--json"])
        .ok()
        .json();
    assert_eq!(agent(&turn), "claude", "{turn:#}");
}

/// B9: the next message goes to the agent in the copied history, whose session is copied too.
#[test]
fn a_fork_at_a_message_has_the_agent_of_its_history() {
    let Some(world) = world() else { return };
    let fork = world.run(&["fork", "k", "--at", "2", "--json"]).ok().json();
    let id = fork["conversation_id"].as_str().unwrap();
    let text = format!("{} #s:a3", user(3));
    let turn = world.run(&["send", "-c", id, "--json", &text]).ok().json();
    assert_eq!(
        (agent(&turn), &turn["verdict"]),
        ("codex", &json!("resumed")),
        "{turn:#}"
    );
    // The whole history: as the parent goes on.
    let fork = world.run(&["fork", "k", "--json"]).ok().json();
    let id = fork["conversation_id"].as_str().unwrap();
    let text = format!("{} #s:a4", user(4));
    let turn = world.run(&["send", "-c", id, "--json", &text]).ok().json();
    assert_eq!(agent(&turn), "claude", "{turn:#}");
}
