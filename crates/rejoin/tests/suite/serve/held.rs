//! A session that takes long to read: other conversations, and requests, do not wait for it.

use std::path::PathBuf;

use rejoin_testkit::{CLAUDE_NEW, Daemon, Streamed, World, on_cli, user, wait_for};
use serde_json::{Value, json};

use super::{REJOIN, here};

/// While this file exists no large file of another program can be read.
struct Hold(PathBuf);

impl Hold {
    fn place(world: &mut World) -> Self {
        let at = world.root().join("hold");
        world.set("REJOIN_SERVE_WARM", "0");
        world.set("REJOIN_FAKE_HOLD", at.to_str().unwrap());
        Self(at)
    }

    fn begin(&self) {
        std::fs::write(&self.0, "").unwrap();
    }

    fn end(&self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}

fn body(world: &World, n: usize, more: &str) -> Value {
    let text = format!("{} #s:a{n} {more}", user(n));
    json!({"key": "k", "text": text, "agent": world.cli.agent(), "workdir": world.work()})
}

fn send(daemon: &Daemon, body: &Value) -> String {
    let turn = daemon.post("/api/send", body).ok();
    turn["turn_id"].as_str().unwrap().to_owned()
}

/// Another conversation is run to its end, and everything can be read.
#[track_caller]
fn others_go_on(daemon: &Daemon, world: &World, held: &str) {
    let other = daemon.say("other", "hello", &[here(world), ("agent", json!("demo"))]);
    assert_eq!(other["status"], "succeeded", "{other}");
    for path in [
        "/api/conversations",
        "/api/conversations/k",
        "/readyz",
        "/metrics",
    ] {
        assert_eq!(daemon.get(path).status, 200, "{path}");
    }
    let next = daemon.get("/api/conversations/other/next");
    assert_eq!(next.status, 200, "{next:?}");
    let turn = daemon.get(&format!("/api/turns/{held}")).ok();
    assert_eq!(turn["status"], "running", "{turn}");
}

#[track_caller]
fn ended(daemon: &Daemon, id: &str) -> Value {
    let turn = wait_for("the turn to end", 90, || {
        let turn = daemon.get(&format!("/api/turns/{id}")).ok();
        let over = !["queued", "running"].contains(&turn["status"].as_str().unwrap());
        over.then_some(turn)
    });
    assert_eq!(turn["status"], "succeeded", "{turn}");
    turn
}

/// The numbers of the events of a kind, by conversation.
fn seq(events: &[Streamed], turn: &str, kind: &str) -> i64 {
    let it = |e: &&Streamed| e.data["turn_id"] == turn && e.kind == kind;
    events.iter().find(it).unwrap().id
}

/// Before the turn, when somebody went on with the session; after it, when it is read and saved; and when it
/// is put back.
fn a_session_that_cannot_be_read_holds_up_nobody_else(mut world: World) {
    let hold = Hold::place(&mut world);
    let daemon = world.serve(&[]);
    let large = "word ".repeat(250_000);
    ended(&daemon, &send(&daemon, &body(&world, 1, &large)));
    let session = world.sessions().pop().unwrap();
    let changed = std::fs::File::options()
        .append(true)
        .open(&session)
        .unwrap();
    // Untouched it would not be read.
    changed.set_modified(std::time::SystemTime::now()).unwrap();
    hold.begin();
    let before = send(&daemon, &body(&world, 2, ""));
    others_go_on(&daemon, &world, &before);
    let next = std::thread::scope(|scope| {
        let asked = scope.spawn(|| daemon.get("/api/conversations/k/next"));
        others_go_on(&daemon, &world, &before);
        hold.end();
        asked.join().unwrap()
    });
    assert_eq!(next.status, 200, "{next:?}");
    assert_eq!(ended(&daemon, &before)["verdict"], "resumed");
    let after = send(&daemon, &body(&world, 3, "#s:slow"));
    wait_for("the agent to answer", 60, || {
        let events = daemon.get(&format!("/api/turns/{after}"));
        events.ok()["verdict"].is_string().then_some(())
    });
    hold.begin();
    wait_for("the agent to end", 60, || {
        world.shim().is_none().then_some(())
    });
    others_go_on(&daemon, &world, &after);
    hold.end();
    ended(&daemon, &after);
    std::fs::remove_file(&session).unwrap();
    hold.begin();
    let restored = send(&daemon, &body(&world, 4, ""));
    others_go_on(&daemon, &world, &restored);
    hold.end();
    assert_eq!(ended(&daemon, &restored)["verdict"], "restored");
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}

on_cli!(
    claude,
    CLAUDE_325,
    a_session_that_cannot_be_read_holds_up_nobody_else
);
on_cli!(
    opencode,
    OPENCODE,
    a_session_that_cannot_be_read_holds_up_nobody_else
);

/// Hundreds of megabytes that somebody added by hand: a turn that was sent later has ended before they are read.
#[test]
fn a_very_large_session_is_read_beside_other_turns() {
    let Some(world) = World::claude(REJOIN, CLAUDE_NEW) else {
        return;
    };
    let daemon = world.serve(&[]);
    ended(&daemon, &send(&daemon, &body(&world, 1, "")));
    let session = world.sessions().pop().unwrap();
    let small = std::fs::metadata(&session).unwrap().len();
    let mut grown = std::fs::File::options()
        .append(true)
        .open(&session)
        .unwrap();
    let line = format!(
        "{{\"type\":\"progress\",\"data\":\"{}\"}}\n",
        "x".repeat(1000)
    );
    let piece = line.repeat(4096);
    for _ in 0..64 {
        std::io::Write::write_all(&mut grown, piece.as_bytes()).unwrap();
    }
    let events = daemon.watch("/api/events", None);
    let read = std::thread::scope(|scope| {
        let reading = scope.spawn(|| daemon.get("/api/conversations/k/next"));
        let other = daemon.post(
            "/api/send",
            &json!({"key": "o", "text": "hi", "agent": "demo", "workdir": world.work()}),
        );
        let other = other.ok()["turn_id"].as_str().unwrap().to_owned();
        let seen = events.until(|e| e.kind == "turn.ended");
        assert!(seq(&seen, &other, "turn.accepted") < seq(&seen, &other, "turn.ended"));
        assert_eq!(daemon.get("/api/conversations").status, 200);
        assert!(
            !reading.is_finished(),
            "it was read before the other turn had ended"
        );
        reading.join().unwrap()
    });
    assert_eq!(read.status, 200, "{read:?}");
    assert!(std::fs::metadata(&session).unwrap().len() > small);
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}
