//! Conversations that travel: as an archive, as a bundle, and a session in an envelope.

mod beside;
mod bundle;
mod elsewhere;
mod envelope;
mod forks;
pub(super) mod hostile;
pub(super) mod killed;
mod narrowed;
mod recipes;
mod refused;
mod round;

use std::path::PathBuf;

use rejoin_testkit::{Done, World};
use serde_json::Value;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// A conversation `k` with the demo agent, of so many turns.
fn demo(turns: usize) -> World {
    let world = World::new(REJOIN);
    for n in 1..=turns {
        let agent: &[&str] = if n == 1 { &["-a", "demo"] } else { &[] };
        let _turn = world.say(n, agent);
    }
    world
}

#[track_caller]
fn export(world: &World) -> PathBuf {
    let file = world.root().join("k.rejoin");
    world.run(&["export", "k", "-o", path(&file)]).ok();
    file
}

/// Into a world, with its own folder as the conversation's.
fn import(world: &World, file: &std::path::Path, more: &[&str]) -> Done {
    let work = world.work();
    let args = ["import", path(file), "-w", path(&work), "--json"];
    world.run(&[&args, more].concat())
}

fn path(path: &std::path::Path) -> &str {
    path.to_str().unwrap()
}

/// Everything that a person sees of the store.
fn seen(world: &World) -> Vec<Value> {
    let listed = world.run(&["list", "--json", "-n", "100"]).ok().json();
    let all = listed["conversations"].as_array().unwrap();
    let show = |c: &Value| {
        let id = c["id"].as_str().unwrap();
        world.run(&["show", id, "--all", "--json"]).ok().json()
    };
    all.iter().map(show).collect()
}

#[track_caller]
fn code(done: &Done) -> (i32, String) {
    let error = done.json()["error"]["code"].clone();
    (done.code, error.as_str().unwrap_or_default().to_owned())
}
