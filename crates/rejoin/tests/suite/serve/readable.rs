//! A store that cannot be written: conversations can be read, and `/readyz` names the reason.

use rejoin_testkit::{Daemon, Locked, World, wait_for};
use serde_json::json;

use super::super::crashes::disk::Small;
use super::{demo, here};

/// Every read over HTTP and by a new command.
#[track_caller]
fn reads(world: &World, daemon: Option<&Daemon>) {
    if let Some(daemon) = daemon {
        let healthy = daemon.get("/healthz");
        assert_eq!(healthy.status, 200, "{healthy:?}");
        for path in [
            "/api/conversations",
            "/api/conversations/k",
            "/api/search?q=userword",
            "/api/find?name=k&want=conversation",
            "/api/inbox",
            "/api/hub",
            "/metrics",
        ] {
            let answer = daemon.get(path);
            assert_eq!(answer.status, 200, "{path}: {answer:?}");
        }
        let events = daemon.watch("/api/conversations/k/events", Some(0));
        let ended = events.until(|event| event.kind == "turn.ended");
        assert_eq!(ended[0].kind, "conversation.created");
    }
    for args in [
        &["list"][..],
        &["show", "k"],
        &["search", "userword"],
        &["explain", "k"],
        &["inbox"],
        &["snapshot", "list", "k"],
        &["token", "list"],
    ] {
        let done = world.run(args);
        assert_eq!(done.code, 0, "{args:?}: {done:?}");
    }
}

#[track_caller]
fn not_ready(daemon: &Daemon, why: &str) {
    let answer = daemon.get("/readyz");
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(answer.body, format!("not ready: {why}\n"));
}

#[track_caller]
fn ready_again(daemon: &Daemon) {
    wait_for("the daemon to be ready", 30, || {
        (daemon.get("/readyz").status == 200).then_some(())
    });
}

fn said(daemon: &Daemon, world: &World) {
    let turn = daemon.say("k", "userword-1", &[here(world)]);
    assert_eq!(turn["status"], "succeeded", "{turn}");
}

/// Another process holds SQLite's write lock.
#[test]
fn a_locked_store_is_read() {
    let world = demo();
    let first = world.serve(&[]);
    said(&first, &world);
    assert_eq!(first.stop(), 0);
    // The first use of a token is noted; that waits for the lock too.
    let token = world.data().join("test-token");
    std::fs::remove_file(token).unwrap();
    world.run(&["token", "revoke", "test"]).ok();
    let daemon = world.serve(&[]);
    ready_again(&daemon);
    let locked = Locked::of(&world.data().join("rejoin.db"));
    wait_for("the lock to be noticed", 30, || {
        (daemon.get("/readyz").status == 503).then_some(())
    });
    not_ready(&daemon, "another process is writing to the store");
    reads(&world, Some(&daemon));
    drop(daemon);
    let begun = world.serve(&[]);
    reads(&world, Some(&begun));
    not_ready(&begun, "another process is writing to the store");
    drop(locked);
    ready_again(&begun);
    said(&begun, &world);
    drop(begun);
    world.assert_quiet();
}

/// Not one byte is free.
#[test]
fn a_store_on_a_full_disk_is_read() {
    let world = demo();
    let Some(small) = Small::over(&world.data(), "40m") else {
        return;
    };
    let daemon = world.serve(&[]);
    said(&daemon, &world);
    ready_again(&daemon);
    small.fill(0);
    wait_for("the full disk to be noticed", 30, || {
        (daemon.get("/readyz").status == 503).then_some(())
    });
    not_ready(&daemon, "the disk is full");
    reads(&world, Some(&daemon));
    let body = json!({"key": "k", "text": "no room"});
    let refused = daemon.post("/api/send", &body);
    assert_eq!(refused.status, 503, "{refused:?}");
    drop(daemon);
    let begun = world.serve(&[]);
    reads(&world, Some(&begun));
    not_ready(&begun, "the disk is full");
    small.empty();
    ready_again(&begun);
    said(&begun, &world);
    drop(begun);
    world.assert_quiet();
}

/// A file system that cannot be written, with and without a log that was not written back.
#[test]
fn a_store_on_a_read_only_file_system_is_read() {
    for written_back in [false, true] {
        let world = demo();
        let Some(small) = Small::over(&world.data(), "40m") else {
            return;
        };
        let daemon = world.serve(&[]);
        said(&daemon, &world);
        assert_eq!(daemon.stop(), 0);
        world.assert_quiet();
        if written_back {
            rejoin_testkit::sql(&world.data().join("rejoin.db"), "select 1");
        } else {
            world.run(&["token", "create", "second"]).ok();
        }
        let log = world.data().join("rejoin.db-wal");
        assert_eq!(log.exists(), !written_back);
        let logs = world.root().join("log");
        small.writable(false);
        reads(&world, None);
        let daemon = world.serve_logging(&logs, &[]);
        reads(&world, Some(&daemon));
        not_ready(&daemon, "the store cannot be written");
        let refused = world.run(&["send", "-k", "k", "no"]);
        assert_eq!(refused.code, 6, "{refused:?}");
        drop(daemon);
        small.writable(true);
        let daemon = world.serve(&[]);
        said(&daemon, &world);
    }
}
