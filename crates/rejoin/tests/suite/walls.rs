//! Folders, sockets and processes that an agent cannot reach: the store, the daemon, other turns.

mod landlock;
mod namespace;
mod reach;
mod socket;
mod version;

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

/// The row about the wall among a turn's checks.
#[track_caller]
fn wall_check(turn: &Value) -> Value {
    let checks = turn["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["check"] == "wall");
    found.unwrap_or_else(|| panic!("{turn:#}")).clone()
}

/// Set to 1 where this machine can have no walls: then their tests are left out, and say so.
const WITHOUT: &str = "REJOIN_TEST_WITHOUT_WALLS";

/// Fails the test for want of something, unless [`WITHOUT`] is set.
#[track_caller]
#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
pub(super) fn left_out_without(missing: &str) {
    let allowed = std::env::var(WITHOUT).is_ok_and(|value| value == "1");
    assert!(
        allowed,
        "{missing}; set {WITHOUT}=1 to leave such tests out"
    );
    eprintln!("left out: {missing}");
}

/// The mechanism that `doctor` names for this world.
fn mechanism(world: &World) -> Option<String> {
    let report = world.run(&["doctor", "--json"]).json();
    let name = report["machine"]["wall"]["mechanism"].as_str();
    name.map(str::to_owned)
}

/// A command that an agent ran, with its exit code and output.
#[derive(Debug)]
#[expect(dead_code, reason = "shown when an assertion fails")]
struct Tried {
    command: String,
    code: i32,
    printed: String,
}

/// A script that runs each of these, whatever became of the others.
fn script(commands: &[String]) -> String {
    let one = |command: &String| format!("( {command} ) 2>&1; echo \"<exit $?>\"\n");
    commands.iter().map(one).collect()
}

#[track_caller]
fn tried(commands: &[String], printed: &str) -> Vec<Tried> {
    let mut parts = printed.split("<exit ");
    let mut output = parts.next().unwrap();
    let mut found = vec![];
    for (command, part) in commands.iter().zip(parts) {
        let (code, after) = part.split_once('>').unwrap();
        found.push(Tried {
            command: command.clone(),
            code: code.parse().unwrap(),
            printed: output.to_owned(),
        });
        output = after;
    }
    assert_eq!(found.len(), commands.len(), "{printed}");
    found
}

/// Reads with Python's own SQLite.
fn query(world: &World) -> String {
    let file = world.data().join("rejoin.db");
    let read = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('select count(*) from turns').fetchall())";
    format!("python3 -c \"{read}\" {}", file.display())
}

/// Ways to read or change rejoin's folders, each of which must fail.
fn attacks(world: &World) -> Vec<String> {
    let (data, config) = (world.data(), world.home().join(".config/rejoin"));
    let (data, config, work) = (data.display(), config.display(), world.work());
    let work = work.display();
    vec![
        format!("cat {data}/rejoin.db"),
        format!("head -c 16 {data}/rejoin.db-wal"),
        query(world),
        format!("cp {data}/rejoin.db {work}/copy"),
        format!("ln {data}/rejoin.db {work}/link"),
        format!("ln -s {data} {work}/way && cat {work}/way/rejoin.db"),
        format!("echo x > {data}/planted"),
        format!("echo x >> {data}/rejoin.db"),
        format!("mkdir -p {data}/turns/planted"),
        format!("rm {data}/rejoin.db"),
        format!("mv {data}/rejoin.db {data}/moved"),
        format!("mv {data} {data}.moved"),
        format!("cat {config}/config.toml"),
        format!("echo x >> {config}/config.toml"),
        format!("echo x > {config}/planted"),
        format!("mv {config} {config}.moved"),
    ]
}
