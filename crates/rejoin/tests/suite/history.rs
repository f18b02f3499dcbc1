//! Histories that are changed, and what that means for the agents' sessions.

mod agents;
mod alternate;
mod changes;
mod looks;
mod merge;
mod pages;
mod queued;
mod refusals;
mod scenarios;

use rejoin_testkit::World;
use serde_json::Value;

/// A world whose conversation `k` is with the demo agent.
fn demo(messages: &[&str]) -> World {
    let world = World::new(env!("CARGO_BIN_EXE_rejoin"));
    for text in messages {
        say(&world, text);
    }
    world
}

#[track_caller]
fn say(world: &World, text: &str) -> Value {
    let args = ["send", "--json", "-k", "k", "-a", "demo", text];
    world.run(&args).ok().json()
}

/// `rejoin COMMAND … --json`
#[track_caller]
fn did(world: &World, args: &[&str]) -> Value {
    let mut all = args.to_vec();
    all.push("--json");
    world.run(&all).ok().json()
}

/// The texts of `k`, in order.
#[track_caller]
fn texts(world: &World) -> Vec<String> {
    let messages = world.messages();
    messages.into_iter().map(|(_, _, text)| text).collect()
}

/// The id of message N of `k`.
#[track_caller]
fn id_of(world: &World, n: usize) -> String {
    let id = world.show()["messages"][n - 1]["id"].clone();
    id.as_str().unwrap().to_owned()
}

/// The epoch of an agent's newest session.
#[track_caller]
fn epoch(world: &World, agent: &str) -> i64 {
    let shown = world.show();
    let sessions = shown["sessions"].as_array().unwrap();
    let own = sessions.iter().find(|s| s["agent"] == agent).unwrap();
    own["epoch"].as_i64().unwrap()
}
