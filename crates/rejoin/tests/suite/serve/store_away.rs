//! The store goes away while a daemon runs a turn, and returns: the turn ends, and is run once.

use std::time::{Duration, Instant};

use rejoin_testkit::{Daemon, Locked, PgServer, World, stop, wait_for};
use serde_json::{Value, json};

use super::super::crashes::disk::Small;
use super::demo;

const TROUBLE: &str = "is tried again";

fn send(daemon: &Daemon, world: &World, key: &str, text: &str) -> String {
    let body = json!({"key": key, "text": text, "workdir": world.work().to_str().unwrap()});
    let turn = daemon.post("/api/send", &body).ok();
    turn["turn_id"].as_str().unwrap().to_owned()
}

fn turn(daemon: &Daemon, id: &str) -> Option<Value> {
    let answer = daemon.get(&format!("/api/turns/{id}"));
    (answer.status == 200).then(|| answer.json())
}

/// The turn, once it has ended.
#[track_caller]
fn ended(daemon: &Daemon, id: &str) -> Value {
    let deadline = Instant::now() + Duration::from_secs(90);
    loop {
        let answer = daemon.get(&format!("/api/turns/{id}"));
        let turn = (answer.status == 200).then(|| answer.json());
        let status = turn.as_ref().and_then(|turn| turn["status"].as_str());
        if status.is_some_and(|status| !["queued", "running", "waiting"].contains(&status)) {
            return turn.unwrap();
        }
        let log = || daemon.log();
        assert!(
            Instant::now() < deadline,
            "the turn does not end: {answer:?}\n{}",
            log()
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[track_caller]
fn started(daemon: &Daemon, id: &str) {
    wait_for("the turn to start", 30, || {
        turn(daemon, id).filter(|turn| turn["verdict"].is_string())
    });
}

#[track_caller]
fn trouble(daemon: &Daemon) {
    wait_for("trouble in the log", 90, || {
        daemon.log().contains(TROUBLE).then_some(())
    });
}

/// The conversation holds each message once, each with one answer.
#[track_caller]
fn complete(daemon: &Daemon, key: &str, texts: &[&str]) {
    let shown = daemon.get(&format!("/api/conversations/{key}")).ok();
    let messages = shown["messages"].as_array().unwrap();
    let users = messages.iter().filter(|m| m["role"] == "user");
    let users: Vec<&str> = users.map(|m| m["text"].as_str().unwrap()).collect();
    assert_eq!(users, texts, "{shown}");
    assert_eq!(messages.len(), 2 * texts.len(), "{shown}");
}

/// Another process holds SQLite's write lock for longer than a transaction waits for it.
#[test]
fn a_turn_ends_after_the_database_was_locked() {
    let world = demo();
    let daemon = world.serve(&[]);
    let id = send(&daemon, &world, "k", "wait 1s one");
    started(&daemon, &id);
    let locked = Locked::of(&world.data().join("rejoin.db"));
    trouble(&daemon);
    assert_eq!(turn(&daemon, &id).unwrap()["status"], "running");
    drop(locked);
    let turn = ended(&daemon, &id);
    assert_eq!(turn["status"], "succeeded", "{turn}");
    daemon.say("k", "two", &[]);
    complete(&daemon, "k", &["wait 1s one", "two"]);
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}

/// A request to stop that arrives after the store was away is carried out.
#[test]
fn a_turn_can_be_cancelled_after_the_database_was_locked() {
    let world = demo();
    let daemon = world.serve(&[]);
    let id = send(&daemon, &world, "k", "wait 100s one");
    started(&daemon, &id);
    let locked = Locked::of(&world.data().join("rejoin.db"));
    let cancel = format!("/api/turns/{id}/cancel");
    let refused = daemon.post(&cancel, &json!({}));
    assert_eq!(refused.status, 503, "{refused:?}");
    drop(locked);
    let cancelled = daemon.post(&cancel, &json!({})).ok();
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}

/// A request to stop that has no effect is not reported as success.
#[test]
fn a_cancel_without_effect_is_refused() {
    let mut world = demo();
    world.set("REJOIN_FAKE_STOPS", "500");
    let daemon = world.serve(&[]);
    let id = send(&daemon, &world, "k", "wait 100s one");
    started(&daemon, &id);
    // It does not hear that it is to end, and is killed after its grace period.
    let agent = |command: &str| command.contains("demo-agent");
    stop(wait_for("the agent", 30, || world.pid_of(agent)));
    let refused = daemon.post(&format!("/api/turns/{id}/cancel"), &json!({}));
    assert_eq!(refused.status, 503, "{refused:?}");
    let turn = ended(&daemon, &id);
    assert_eq!(turn["status"], "cancelled", "{turn}");
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}

/// The server stops for as long as a command waits for one, and starts again.
#[test]
fn a_turn_ends_after_postgresql_was_restarted() {
    for stop in [PgServer::stop, PgServer::crash] {
        let Some(server) = PgServer::start() else {
            return;
        };
        let mut world = demo();
        world.set("REJOIN_DATABASE_URL", &server.url());
        let daemon = world.serve(&[]);
        let id = send(&daemon, &world, "k", "wait 2s one");
        started(&daemon, &id);
        stop(&server);
        trouble(&daemon);
        server.start_again();
        let turn = ended(&daemon, &id);
        assert_eq!(turn["status"], "succeeded", "{turn}");
        daemon.say("k", "two", &[]);
        complete(&daemon, "k", &["wait 2s one", "two"]);
        assert_eq!(daemon.stop(), 0);
        world.assert_quiet();
    }
}

/// The disk is full for a while: the running turn ends as `disk_full`, the next one works.
#[test]
fn a_full_disk_ends_a_turn_of_a_daemon_as_disk_full() {
    let world = demo();
    let Some(small) = Small::over(&world.data(), "40m") else {
        return;
    };
    let daemon = world.serve(&[]);
    daemon.say("k", "one", &[super::here(&world)]);
    let id = send(&daemon, &world, "k", "wait 100s two");
    started(&daemon, &id);
    small.fill(0);
    let body = json!({"key": "other", "text": "no room", "workdir": world.work()});
    let refused = daemon.post("/api/send", &body);
    assert_eq!(refused.status, 503, "{refused:?}");
    // The disk stays full for longer than the shim takes to stop the agent.
    let full = Instant::now();
    wait_for("the shim", 30, || {
        let over = full.elapsed() > Duration::from_secs(5);
        (over || world.shim().is_none()).then_some(())
    });
    small.empty();
    let turn = ended(&daemon, &id);
    assert_eq!(turn["status"], "failed", "{turn}");
    assert_eq!(turn["error"]["class"], "disk_full", "{turn}");
    daemon.say("k", "three", &[]);
    let shown = daemon.get("/api/conversations/k").ok();
    assert_eq!(shown["messages"].as_array().unwrap().len(), 5, "{shown}");
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}
