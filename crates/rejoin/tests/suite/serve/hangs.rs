//! Files that never end, or never begin: neither a turn nor a request waits for them.

use std::path::Path;
use std::process::Command;

use rejoin_testkit::{CLAUDE_NEW, Daemon, World, user, wait_for};
use serde_json::{Value, json};

use super::{REJOIN, demo, here};

fn fifo(at: &Path) {
    let made = Command::new("mkfifo").arg(at).status().unwrap();
    assert!(made.success());
}

fn say(daemon: &Daemon, world: &World, n: usize) -> Value {
    let text = format!("{} #s:a{n}", user(n));
    daemon.say("k", &text, &[here(world), ("agent", json!("claude"))])
}

/// A FIFO in the place of a session, and one among the notes of running processes.
#[test]
fn a_fifo_in_the_place_of_a_session_blocks_nothing() {
    let Some(world) = World::claude(REJOIN, CLAUDE_NEW) else {
        return;
    };
    let daemon = world.serve(&[]);
    let first = say(&daemon, &world, 1);
    assert_eq!(first["status"], "succeeded", "{first}");
    let session = world.sessions().pop().unwrap();
    let home = session.ancestors().nth(3).unwrap();
    std::fs::create_dir_all(home.join("sessions")).unwrap();
    fifo(&home.join("sessions/1.json"));
    std::fs::remove_file(&session).unwrap();
    fifo(&session);
    let second = say(&daemon, &world, 2);
    assert_eq!(second["status"], "succeeded", "{second}");
    assert!(
        ["restored", "reseeded"].contains(&second["verdict"].as_str().unwrap()),
        "{second}"
    );
    let other = daemon.say("other", "hello", &[here(&world), ("agent", json!("demo"))]);
    assert_eq!(other["status"], "succeeded", "{other}");
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}

/// The database file is deleted under a daemon: every request is refused, also one that waits.
#[test]
fn a_deleted_database_refuses_requests() {
    let world = demo();
    let daemon = world.serve(&[]);
    let (database, away) = (world.data().join("rejoin.db"), world.data().join("away.db"));
    let body = json!({"key": "k", "text": "wait 100s one", "workdir": world.work()});
    let waiting = daemon.post("/api/send", &body).ok();
    let id = waiting["turn_id"].as_str().unwrap().to_owned();
    std::thread::scope(|scope| {
        let body = json!({"key": "other", "text": "wait 100s two", "workdir": world.work()});
        let daemon = &daemon;
        let waits = scope.spawn(move || daemon.post("/api/send?wait=true", &body));
        wait_for("both turns", 30, || {
            let all = daemon.get("/api/conversations").ok();
            (all["conversations"].as_array()?.len() == 2).then_some(())
        });
        std::fs::rename(&database, &away).unwrap();
        for answer in [
            daemon.get("/readyz"),
            daemon.get(&format!("/api/turns/{id}")),
            daemon.post(&format!("/api/turns/{id}/cancel"), &json!({})),
            daemon.post("/api/send", &json!({"key": "new", "text": "three"})),
            waits.join().unwrap(),
        ] {
            assert_eq!(answer.status, 503, "{answer:?}");
        }
    });
    std::fs::rename(&away, &database).unwrap();
    assert_eq!(daemon.get("/readyz").status, 200);
    let cancelled = daemon.post(&format!("/api/turns/{id}/cancel"), &json!({}));
    assert_eq!(cancelled.ok()["status"], "cancelled");
}

/// Commands do not make a new store in the place of one that was deleted under a daemon, or replaced.
#[test]
fn a_deleted_database_is_noticed_by_commands() {
    let world = demo();
    let daemon = world.serve(&[]);
    let (database, away) = (world.data().join("rejoin.db"), world.data().join("away.db"));
    let send = || world.run(&["send", "--json", "-a", "demo", "-k", "k", "hello"]);
    let first = send().ok().json();
    std::fs::rename(&database, &away).unwrap();
    for done in [
        send(),
        world.run(&["list", "--json"]),
        world.run(&["show", "k", "--json"]),
    ] {
        assert_eq!(done.code, 6, "{done:?}");
        let message = done.json()["error"]["message"].to_string();
        assert!(message.contains("deleted"), "{message}");
        assert!(!database.exists(), "a new store was made");
    }
    // Another file in its place.
    std::fs::write(&database, "").unwrap();
    let done = send();
    assert_eq!(done.code, 6, "{done:?}");
    assert!(done.stdout.contains("deleted or replaced"), "{done:?}");
    std::fs::rename(&away, &database).unwrap();
    let second = send().ok().json();
    assert_eq!(second["conversation"], first["conversation"], "{second:#}");
    assert_eq!(daemon.stop(), 0);
    // Without a daemon a missing file is a new store, as ever.
    std::fs::remove_file(&database).unwrap();
    world.run(&["list"]).ok();
}
