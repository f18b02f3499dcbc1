//! What an agent cannot reach: the store, the daemon's socket, other turns.

mod socket;

use rejoin_testkit::World;
use serde_json::Value;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// An agent that runs its prompt as a shell command, and answers with what that printed.
const SHELL: &str = r#"#!/usr/bin/env python3
import json, subprocess, sys
if sys.argv[1:2] == ["--version"]: print("shellcli version 1.2.3"); sys.exit()
done = subprocess.run(["sh", "-c", sys.stdin.read()], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
print(json.dumps({"type": "said", "text": done.stdout.decode()}))
print(json.dumps({"type": "bye"}))
"#;

const SECTION: &str = r#"
default_agent = "shell"
[agents.shell]
kind = "command"
bin = "BIN"
start_args = ["run"]
permission.read-only = ["--read"]
permission.edit = ["--edit"]
permission.full = ["--all"]
text_from = ["said /text"]
done_on = "bye"
"#;

/// A world whose agent is that shell.
fn shell() -> World {
    let world = World::new(REJOIN);
    let bin = world.root().join("shellcli");
    world.script(&bin, SHELL);
    let config = world.home().join(".config/rejoin/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, SECTION.replace("BIN", bin.to_str().unwrap())).unwrap();
    world
}

/// One turn in a conversation of its own.
#[track_caller]
fn turn(world: &World, command: &str, more: &[&str]) -> Value {
    let done = world.run(&[&["send", "--json", command], more].concat());
    let turn = done.json();
    assert_eq!(turn["status"], "succeeded", "{turn:#}");
    turn
}

/// What a command of an agent printed.
#[track_caller]
fn printed(world: &World, command: &str) -> String {
    turn(world, command, &[])["text"]
        .as_str()
        .unwrap()
        .to_owned()
}
