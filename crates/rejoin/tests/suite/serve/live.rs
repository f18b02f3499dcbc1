//! What is told live is what is kept, each once, in order, whoever wrote it.

use std::time::Duration;

use rejoin_testkit::{Daemon, Streamed, World};
use serde_json::json;

use super::{demo, here};

fn ended(event: &Streamed) -> bool {
    event.kind == "turn.ended"
}

fn in_order(events: &[Streamed]) -> bool {
    events.windows(2).all(|two| two[0].id < two[1].id)
}

/// Reads all of it from the beginning, to the event with that number.
fn from_the_beginning(daemon: &Daemon, path: &str, to: i64) -> Vec<Streamed> {
    daemon.watch(path, Some(0)).until(|event| event.id == to)
}

/// A reader that comes back with the last number it saw misses nothing and sees nothing twice.
#[test]
fn a_reader_comes_back() {
    let world = demo();
    let daemon = world.serve(&[]);
    let all = daemon.watch("/api/events", None);
    daemon.say("k", "one", &[here(&world)]);
    let first = all.until(ended);
    drop(all);
    daemon.say("k", "two", &[]);
    daemon.say("k", "three", &[]);
    let again = daemon.watch("/api/events", Some(first.last().unwrap().id));
    let mut seen = first;
    seen.extend(again.until(ended));
    seen.extend(again.until(ended));
    assert!(in_order(&seen));
    let last = seen.last().unwrap().id;
    assert_eq!(from_the_beginning(&daemon, "/api/events", last), seen);
    let of_it = from_the_beginning(&daemon, "/api/conversations/k/events", last);
    assert_eq!(of_it, seen);
    for event in &seen {
        assert_eq!(event.data["seq"], event.id);
        assert_eq!(event.data["type"], event.kind.as_str());
    }
    // Also over a restart of the daemon.
    daemon.kill();
    let daemon = world.serve(&[]);
    assert_eq!(from_the_beginning(&daemon, "/api/events", last), seen);
}

/// Rows that another process writes on the same store are seen too; a change of the history has no turn.
#[test]
fn commands_beside_the_daemon() {
    let world = demo();
    let daemon = world.serve(&[]);
    let all = daemon.watch("/api/events", None);
    world.run(&["send", "-a", "demo", "-k", "k", "hello"]).ok();
    let seen = all.until(ended);
    let first: Vec<&str> = seen[..2].iter().map(|e| e.kind.as_str()).collect();
    assert_eq!(first, ["conversation.created", "turn.accepted"]);
    world.run(&["reset", "k"]).ok();
    let changed = all.next();
    assert_eq!(
        (changed.kind.as_str(), &changed.data["turn_id"]),
        ("history.changed", &json!(null))
    );
}

/// `POST /api/send` with `Accept: text/event-stream`: that turn alone, to its end.
#[test]
fn one_turn_is_streamed() {
    let world = demo();
    let daemon = world.serve(&[]);
    daemon.say("other", "one", &[here(&world)]);
    let body = json!({"key": "k", "text": "hello", "workdir": world.work().to_str().unwrap()});
    let streamed = daemon.call(
        "POST",
        "/api/send",
        &["Accept: text/event-stream"],
        Some(&body),
    );
    assert_eq!(streamed.status, 200);
    let kinds: Vec<&str> = streamed
        .body
        .lines()
        .filter_map(|l| l.strip_prefix("event: "))
        .collect();
    assert_eq!(kinds.first(), Some(&"turn.accepted"));
    assert_eq!(kinds.last(), Some(&"turn.ended"));
    assert_eq!(kinds.iter().filter(|k| **k == "turn.accepted").count(), 1);
}

/// One namespace never sees another's conversations, nor learns that they are there.
#[test]
fn namespaces_do_not_see_each_other() {
    let world = demo();
    let daemon = world.serve(&[]);
    let made = daemon
        .post(
            "/api/tokens",
            &json!({"name": "acme", "scope": "send", "namespace": "acme"}),
        )
        .ok();
    let theirs = format!("Authorization: Bearer {}", made["token"].as_str().unwrap());
    let them = |method: &str, path: &str, body: Option<&serde_json::Value>| {
        daemon.call(method, path, &[&theirs], body)
    };
    let ours = daemon.say("k", "our secret", &[here(&world)]);
    let (c, turn) = (
        ours["conversation_id"].as_str().unwrap(),
        ours["turn_id"].as_str().unwrap(),
    );
    let message = ours["message_id"].as_str().unwrap();
    let handle = ours["handle"].as_str().unwrap().split(':').next().unwrap();
    let away = [
        ("GET", format!("/api/conversations/{c}")),
        ("GET", format!("/api/conversations/{handle}")),
        ("GET", "/api/conversations/k".to_owned()),
        ("GET", format!("/api/conversations/{c}/next")),
        ("GET", format!("/api/conversations/{c}/events")),
        ("GET", format!("/api/conversations/{c}/export")),
        ("GET", format!("/api/conversations/{c}/shares")),
        ("POST", format!("/api/conversations/{c}/shares")),
        ("DELETE", format!("/api/conversations/{c}")),
        ("POST", format!("/api/conversations/{c}/fork")),
        ("POST", format!("/api/conversations/{c}/undo")),
        ("GET", format!("/api/turns/{turn}")),
        ("POST", format!("/api/turns/{turn}/cancel")),
        ("GET", format!("/api/turns/{turn}/log")),
        ("GET", format!("/api/turns/{turn}/changes")),
        ("DELETE", format!("/api/messages/{message}")),
        ("POST", format!("/api/messages/{message}/retry")),
    ];
    for (method, path) in &away {
        let answer = them(method, path, None);
        assert_eq!(answer.status, 404, "{method} {path}: {answer:?}");
        let nobody = path.replace(c, "01a1e1b4-0000-7000-8000-000000000000");
        let nobody = nobody.replace(turn, "01a1e1b4-0000-7000-8000-000000000000");
        let nobody = nobody.replace(message, "01a1e1b4-0000-7000-8000-000000000000");
        let unknown = them(method, &nobody, None);
        let said = |a: &rejoin_testkit::Answer| {
            a.json()["detail"]
                .to_string()
                .replace(c, "X")
                .replace(turn, "X")
                .replace(message, "X")
        };
        if nobody != *path {
            let as_unknown = said(&unknown).replace("01a1e1b4-0000-7000-8000-000000000000", "X");
            assert_eq!(said(&answer), as_unknown, "{method} {path}");
        }
    }
    assert_eq!(
        them("GET", "/api/conversations", None).ok()["conversations"],
        json!([])
    );
    assert_eq!(
        them("GET", "/api/conversations?q=secret", None).ok()["conversations"],
        json!([])
    );
    assert_eq!(them("GET", "/api/inbox", None).ok()["turns"], json!([]));
    assert_eq!(them("GET", "/api/tokens", None).status, 403);
    assert_eq!(them("GET", "/metrics", None).status, 403);
    // The same key is another conversation there.
    let body = json!({"key": "k", "text": "theirs", "workdir": world.work().to_str().unwrap()});
    let there = them("POST", "/api/send?wait=true", Some(&body)).ok();
    assert_ne!(there["conversation_id"], c);
    assert_eq!(there["verdict"], "started");
    let seen = daemon
        .watch("/api/events", Some(0))
        .rest(Duration::from_secs(1));
    assert!(
        !seen.is_empty() && seen.iter().all(|event| event.data["conversation_id"] == c),
        "{seen:?}"
    );
    assert_eq!(shown_here(&world), 1);
}

fn shown_here(world: &World) -> usize {
    let list = world.run(&["list", "--json"]).ok().json();
    list["conversations"].as_array().unwrap().len()
}
