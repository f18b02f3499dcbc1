//! Many at once: 64 conversations and 100 watchers, none of whom misses anything.

use rejoin_testkit::{Streamed, Watching, World, wait_for};
use serde_json::json;

use super::demo;

const CONVERSATIONS: usize = 64;
const WATCHERS: usize = 100;
const MESSAGES: usize = 2;

/// Issue 7, point 3.
#[test]
fn watched_by_a_hundred() {
    hundred(&demo());
}

/// Where numbers are given out before they are committed.
#[test]
fn watched_by_a_hundred_on_postgresql() {
    if let Some(world) = demo().on_server() {
        hundred(&world);
    }
}

fn hundred(world: &World) {
    let daemon = world.serve(&[]);
    let watchers: Vec<Watching> = (0..WATCHERS)
        .map(|_| daemon.watch("/api/events", Some(0)))
        .collect();
    for n in 0..MESSAGES {
        for c in 0..CONVERSATIONS {
            let body = json!({
                "key": format!("c{c}"), "text": format!("message {n}"), "workdir": world.work().to_str().unwrap(),
            });
            let accepted = daemon.post("/api/send", &body);
            assert!(matches!(accepted.status, 200 | 202), "{accepted:?}");
        }
    }
    wait_for("all to be answered", 300, || {
        let busy = ["queued", "running"].iter().any(|state| {
            let list = daemon
                .get(&format!("/api/conversations?state={state}"))
                .ok();
            list["conversations"] != json!([])
        });
        (!busy).then_some(())
    });
    let over = |seen: &[Streamed]| seen.iter().filter(|e| e.kind == "turn.ended").count();
    let all = CONVERSATIONS * MESSAGES;
    let mut first: Option<Vec<Streamed>> = None;
    for watcher in &watchers {
        let mut seen = vec![];
        while over(&seen) < all {
            seen.push(watcher.next());
        }
        assert!(
            seen.windows(2).all(|two| two[0].id < two[1].id),
            "out of order"
        );
        // Every one of them saw the same.
        match &first {
            None => first = Some(seen),
            Some(first) => assert_eq!(first.len(), seen.len()),
        }
    }
    let first = first.unwrap();
    let kept = daemon.watch("/api/events", Some(0));
    for event in &first {
        assert_eq!(&kept.next(), event);
    }
    let resident = resident_mib(daemon.pid());
    assert!(resident < 256, "{resident} MiB");
    for c in 0..CONVERSATIONS {
        let shown = daemon.get(&format!("/api/conversations/c{c}")).ok();
        assert_eq!(
            shown["messages"].as_array().unwrap().len(),
            2 * MESSAGES,
            "{shown}"
        );
        assert_eq!(shown["turns"][1]["verdict"], "resumed");
    }
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}

fn resident_mib(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib / 1024
}
