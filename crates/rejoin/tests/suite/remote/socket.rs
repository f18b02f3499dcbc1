//! The daemon on the same data folder: used where it is, and never missed where it is not.

use std::os::unix::net::UnixListener;

use rejoin_testkit::{Daemon, Done, World, kill, wait_for};
use serde_json::Value;

use super::demo;

/// Each process says which machine it thinks it is on: so does the turn that it ran.
const MACHINE: &str = "REJOIN_FAKE_MACHINE";

#[track_caller]
fn ran_by_daemon(done: &Done) -> bool {
    let turn = done.json();
    assert_eq!(turn["status"], "succeeded", "{turn}");
    turn["machine"] == "of-the-daemon"
}

/// A daemon, and commands that can be told from it.
fn with_daemon() -> (World, Daemon) {
    let mut world = demo();
    world.set(MACHINE, "of-the-daemon");
    let daemon = world.serve(&[]);
    world.set(MACHINE, "of-the-command");
    (world, daemon)
}

#[test]
fn runs_what_is_sent_while_it_is_there() {
    let (world, daemon) = with_daemon();
    let send = |more: &[&str]| world.run(&[&["send", "--json", "hello"], more].concat());
    assert!(ran_by_daemon(&send(&[])));
    assert!(!ran_by_daemon(&send(&["--hub", "none"])));
    // Whoever names a configuration wants that one.
    let own = world.root().join("own.toml");
    std::fs::write(&own, "").unwrap();
    assert!(!ran_by_daemon(&send(&["--config", own.to_str().unwrap()])));
    // Another store is not the daemon's business.
    let other = format!("sqlite:{}", world.root().join("other.db").display());
    let elsewhere = world
        .command(&["send", "--json", "hello"])
        .env("REJOIN_DATABASE_URL", &other)
        .output()
        .unwrap();
    let turn: Value = serde_json::from_slice(&elsewhere.stdout).unwrap();
    assert_eq!(turn["machine"], "of-the-command", "{turn}");
    assert_eq!(daemon.stop(), 0);
    assert!(!ran_by_daemon(&send(&[])));
    world.assert_quiet();
}

/// A socket that nobody is behind any more costs nothing.
#[test]
fn that_was_killed_is_not_waited_for() {
    let (world, daemon) = with_daemon();
    daemon.kill();
    assert!(world.data().join("hub.sock").exists());
    let done = world.run(&["send", "--json", "hello"]);
    assert!(!ran_by_daemon(&done) && done.stderr.is_empty(), "{done:?}");
    // Nor is one that is not ours.
    std::fs::remove_file(world.data().join("hub.sock")).unwrap();
    let stranger = UnixListener::bind(world.data().join("hub.sock")).unwrap();
    drop(stranger);
    assert!(!ran_by_daemon(&world.run(&["send", "--json", "hello"])));
    world.assert_quiet();
}

/// What the folder's own configuration says counts as ever: it comes along with the message.
#[test]
fn is_told_what_the_folder_wants() {
    let mut world = demo();
    world.set("REJOIN_DEFAULT_AGENT", "claude");
    let daemon = world.serve(&[]);
    world.unset("REJOIN_DEFAULT_AGENT");
    let text =
        "default_agent = \"demo\"\npermission = \"read-only\"\n[resume]\nscope = \"agent\"\n";
    std::fs::write(world.work().join("rejoin.toml"), text).unwrap();
    world.run(&["trust"]).ok();
    world.run(&["send", "-k", "k", "hello"]).ok();
    let made = &world.run(&["show", "k", "--json"]).ok().json()["conversation"];
    let said = |key: &str| made[key].as_str().unwrap_or_default().to_owned();
    assert_eq!(said("agent"), "demo");
    assert_eq!(said("permission"), "read-only");
    assert_eq!(said("scope"), "agent");
    assert_eq!(said("workdir"), world.work().to_str().unwrap());
    // And what it must not say is refused before anything is sent.
    std::fs::write(world.work().join("rejoin.toml"), "permission = \"full\"\n").unwrap();
    let refused = world.run(&["send", "-k", "k", "hello"]);
    assert_eq!(refused.code, 5, "{refused:?}");
    assert!(refused.stderr.contains("rejoin trust"), "{refused:?}");
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}

/// Ctrl-C cancels the turn in the daemon, and the exit code says so.
#[test]
fn stops_what_is_interrupted() {
    let world = demo();
    let daemon = world.serve(&[]);
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let sending = world.spawn(&["send", "-k", "k", "wait 60s"]);
        wait_for("the turn to run", 20, || {
            let list = world.run(&["list", "--json", "--state", "running"]).json();
            let running = list["conversations"].as_array().unwrap().len();
            let agent = world.pid_of(|command| command.contains("demo-agent"));
            agent.filter(|_| running == 1)
        });
        kill(sending.id() as i32, signal);
        let done = Done::of(sending);
        assert_eq!(done.code, code, "{done:?}");
        assert!(done.stderr.contains("cancelling…"), "{done:?}");
        assert_eq!(world.last_turn()["status"], "cancelled");
    }
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}

/// The same events in the same order, as JSON lines.
#[test]
fn streams_what_happens() {
    let kinds = |done: Done| -> Vec<String> {
        assert_eq!(done.code, 0, "{done:?}");
        let kind = |line: &str| {
            let event: Value = serde_json::from_str(line).unwrap();
            assert!(event["seq"].as_i64().unwrap() > 0 && event["at"].is_string());
            event["type"].as_str().unwrap().to_owned()
        };
        done.stdout.lines().map(kind).collect()
    };
    let world = demo();
    let here = kinds(world.run(&["send", "-k", "a", "--stream", "hello"]));
    let daemon = world.serve(&[]);
    let there = kinds(world.run(&["send", "-k", "b", "--stream", "hello"]));
    assert_eq!(here, there);
    assert_eq!(there.first().map(String::as_str), Some("turn.accepted"));
    assert_eq!(there.last().map(String::as_str), Some("turn.ended"));
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}
