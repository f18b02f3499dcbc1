//! How many agents run, and how many messages wait for one.

use rejoin_testkit::{Daemon, World, wait_for};
use serde_json::{Value, json};

use super::demo;

fn limited(running: &str, queued: &str) -> World {
    let mut world = demo();
    world.set("REJOIN_SERVE_MAX_RUNNING", running);
    world.set("REJOIN_SERVE_MAX_QUEUED", queued);
    world
}

fn body(world: &World, key: &str, text: &str) -> Value {
    json!({"key": key, "text": text, "workdir": world.work().to_str().unwrap()})
}

#[track_caller]
fn send(daemon: &Daemon, world: &World, key: &str, text: &str) -> String {
    let turn = daemon.post("/api/send", &body(world, key, text)).ok();
    turn["turn_id"].as_str().unwrap().to_owned()
}

fn status(daemon: &Daemon, id: &str) -> String {
    let turn = daemon.get(&format!("/api/turns/{id}")).ok();
    turn["status"].as_str().unwrap().to_owned()
}

#[track_caller]
fn becomes(daemon: &Daemon, id: &str, wanted: &str) {
    wait_for(wanted, 60, || (status(daemon, id) == wanted).then_some(()));
}

#[track_caller]
fn cancel(daemon: &Daemon, id: &str) {
    let cancelled = daemon.post(&format!("/api/turns/{id}/cancel"), &json!({}));
    assert_eq!(cancelled.ok()["status"], "cancelled");
}

/// The most turns that were running at one time, as the events tell it.
fn most_at_once(daemon: &Daemon, ended: usize) -> i64 {
    let events = daemon.watch("/api/events", Some(0));
    let (mut now, mut most, mut over) = (0, 0, 0);
    while over < ended {
        match events.next().kind.as_str() {
            "turn.decided" => now += 1,
            "turn.ended" => (now, over) = (now - 1, over + 1),
            _ => {}
        }
        most = most.max(now);
    }
    most
}

/// Further messages wait in the queue, where they can be cancelled.
#[test]
fn no_more_agents_run_than_allowed() {
    let world = limited("1", "100");
    let daemon = world.serve(&[]);
    let first = send(&daemon, &world, "a", "wait 100s");
    let second = send(&daemon, &world, "b", "two");
    let third = send(&daemon, &world, "c", "three");
    becomes(&daemon, &first, "running");
    assert_eq!(status(&daemon, &second), "queued");
    assert_eq!(status(&daemon, &third), "queued");
    cancel(&daemon, &second);
    assert_eq!(status(&daemon, &third), "queued");
    let busy = json!({"key": "d", "text": "four", "if_busy": "fail", "workdir": world.work()});
    let refused = daemon.post("/api/send", &busy);
    assert_eq!(refused.status, 429, "{refused:?}");
    cancel(&daemon, &first);
    becomes(&daemon, &third, "succeeded");
    let again = daemon.get("/api/conversations/a").ok();
    let message = again["messages"][0]["id"].as_str().unwrap();
    let fifth = send(&daemon, &world, "e", "wait 100s");
    becomes(&daemon, &fifth, "running");
    let retry = format!("/api/messages/{message}/retry");
    let retried = daemon.post(&retry, &json!({})).ok();
    let retried = retried["turn_id"].as_str().unwrap();
    becomes(&daemon, retried, "queued");
    cancel(&daemon, retried);
    cancel(&daemon, &fifth);
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}

/// Turns are run in the order in which they came, never more of them than allowed.
#[test]
fn places_are_given_back() {
    let world = limited("2", "100");
    let daemon = world.serve(&[]);
    let turns: Vec<String> = (0..6)
        .map(|n| send(&daemon, &world, &format!("c{n}"), "wait 200ms"))
        .collect();
    let more = send(&daemon, &world, "c0", "once more");
    for turn in turns.iter().chain([&more]) {
        becomes(&daemon, turn, "succeeded");
    }
    assert_eq!(most_at_once(&daemon, 7), 2);
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}

/// A daemon that takes over more turns than it may run follows them all, and starts no other.
#[test]
fn turns_of_a_killed_daemon_are_followed_beyond_the_limit() {
    let world = demo();
    let daemon = world.serve(&[]);
    let keys = ["a", "b", "c"];
    let turns = keys.map(|key| send(&daemon, &world, key, "wait 3s"));
    for turn in &turns {
        wait_for("the turn to start", 30, || {
            let turn = daemon.get(&format!("/api/turns/{turn}")).ok();
            turn["verdict"].is_string().then_some(())
        });
    }
    let waits = send(&daemon, &world, "a", "after");
    daemon.kill();
    let mut world = world;
    world.set("REJOIN_SERVE_MAX_RUNNING", "1");
    let daemon = world.serve(&[]);
    for turn in turns.iter().chain([&waits]) {
        becomes(&daemon, turn, "succeeded");
    }
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}

/// Nothing is kept of a message for which the queue has no room.
#[test]
fn a_full_queue_refuses_messages() {
    let world = limited("1", "2");
    let daemon = world.serve(&[]);
    let first = send(&daemon, &world, "a", "wait 100s");
    becomes(&daemon, &first, "running");
    let mut kept = body(&world, "b", "two");
    kept["client_key"] = json!("once");
    let second = daemon.post("/api/send", &kept).ok();
    let third = send(&daemon, &world, "a", "three");
    let refused = daemon.post("/api/send", &body(&world, "d", "four"));
    let problem = refused.json();
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(refused.head.to_lowercase().contains("retry-after"));
    assert_eq!(problem["code"], "rate_limited");
    assert_eq!(
        problem["detail"],
        "the queue is full: 2 messages wait already; this message was not kept"
    );
    assert_eq!(daemon.get("/api/conversations/d").status, 404);
    let done = world.run(&["send", "-k", "d", "four"]);
    assert_eq!(done.code, 9, "{done:?}");
    assert!(done.stderr.contains("  try: the same later"), "{done:?}");
    // A message that is in the queue already is no new one.
    let replayed = daemon.post("/api/send", &kept).ok();
    assert_eq!(replayed["turn_id"], second["turn_id"]);
    cancel(&daemon, &third);
    let fourth = send(&daemon, &world, "d", "four");
    cancel(&daemon, &first);
    becomes(&daemon, &fourth, "succeeded");
    becomes(&daemon, second["turn_id"].as_str().unwrap(), "succeeded");
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}

/// A retry that would wait counts as a message that waits, and changes nothing if it is refused.
#[test]
fn a_full_queue_refuses_retries() {
    let world = limited("1", "1");
    let daemon = world.serve(&[]);
    let answered = send(&daemon, &world, "r", "hello");
    becomes(&daemon, &answered, "succeeded");
    let turn = daemon.get(&format!("/api/turns/{answered}")).ok();
    let message = turn["message_id"].as_str().unwrap();
    let first = send(&daemon, &world, "a", "wait 100s");
    becomes(&daemon, &first, "running");
    let waits = send(&daemon, &world, "b", "two");
    let retry = || daemon.post(&format!("/api/messages/{message}/retry"), &json!({}));
    let refused = retry();
    assert_eq!(refused.status, 429, "{refused:?}");
    assert_eq!(refused.json()["code"], "rate_limited");
    let done = world.run(&["retry", "r"]);
    assert_eq!(done.code, 9, "{done:?}");
    let shown = daemon.get("/api/conversations/r").ok();
    assert_eq!(shown["messages"].as_array().unwrap().len(), 2, "{shown:#}");
    // With room in the queue it waits for its turn.
    cancel(&daemon, &waits);
    let again = retry().ok();
    let again = again["turn_id"].as_str().unwrap();
    becomes(&daemon, again, "queued");
    cancel(&daemon, &first);
    becomes(&daemon, again, "succeeded");
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}
