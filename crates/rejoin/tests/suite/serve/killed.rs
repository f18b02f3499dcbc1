//! kill -9 of the daemon, at any instant, under load: nothing accepted is lost, nothing shown goes away,
//! nothing runs twice, and nothing is left running.

use std::collections::BTreeMap;
use std::time::Duration;

use rejoin_testkit::{
    Daemon, Streamed, World, assert_shown, on_every_quick_cli, said, user, wait_for,
};
use serde_json::{Value, json};

use super::super::walks::Dice;
use super::{REJOIN, demo};

on_every_quick_cli!(with_a_real_agent);

const CONVERSATIONS: usize = 20;

fn times() -> u64 {
    let long = std::env::var_os("REJOIN_WALK_STEPS").is_some();
    if long { 1000 } else { 60 }
}

/// 60 times in CI, 1,000 in the long run.
#[test]
fn at_random_instants_under_load() {
    let world = demo();
    let mut dice = Dice(20_261_115);
    let mut sent: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut shown: BTreeMap<i64, Value> = BTreeMap::new();
    let mut daemon = world.serve(&[]);
    for round in 0..times() {
        let all = daemon.watch(
            "/api/events",
            Some(shown.keys().last().copied().unwrap_or(0)),
        );
        for _ in 0..=dice.roll(6) {
            // Others after a while: what was said must fit into what a new session is told.
            let key = format!("k{}-{}", round / 100, dice.roll(CONVERSATIONS));
            let words = sent.entry(key.clone()).or_default();
            let text = format!("wait 0.{}s word-{key}-{}-end", dice.roll(3), words.len());
            let body = json!({"key": key, "text": text, "workdir": world.work().to_str().unwrap()});
            let accepted = daemon.post("/api/send", &body);
            assert_eq!(accepted.status, 202, "{accepted:?}");
            words.push(text);
        }
        std::thread::sleep(Duration::from_millis(dice.roll(250) as u64));
        keep(&mut shown, all.rest(Duration::from_millis(1)));
        daemon.kill();
        keep(&mut shown, all.rest(Duration::from_millis(200)));
        daemon = world.serve(&[]);
        // On a busy machine the write that it tries may take too long, and it says so.
        wait_for(&format!("readiness in round {round}"), 60, || {
            (daemon.get("/readyz").status == 200).then_some(())
        });
    }
    settled(&world, &daemon, &sent);
    // Everything that anybody was shown is still there, under the same number.
    let last = *shown.keys().last().unwrap();
    let kept = daemon
        .watch("/api/events", Some(0))
        .until(|event| event.id >= last);
    let kept: BTreeMap<i64, Value> = kept.into_iter().map(|e| (e.id, e.data)).collect();
    for (id, data) in &shown {
        assert_eq!(kept.get(id), Some(data), "event {id}");
    }
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}

fn keep(shown: &mut BTreeMap<i64, Value>, events: Vec<Streamed>) {
    for event in events {
        let before = shown.insert(event.id, event.data.clone());
        assert!(
            before.is_none_or(|before| before == event.data),
            "{event:?}"
        );
    }
}

/// Every accepted message is there once, was answered once, and in its order.
fn settled(world: &World, daemon: &Daemon, sent: &BTreeMap<String, Vec<String>>) {
    for (key, words) in sent {
        let shown = wait_for("all to be answered", 120, || {
            let shown = daemon.get(&format!("/api/conversations/{key}")).ok();
            (shown["conversation"]["state"] == "idle").then_some(shown)
        });
        let users = |m: &&Value| m["role"] == "user";
        let messages = shown["messages"].as_array().unwrap();
        let texts: Vec<&str> = messages
            .iter()
            .filter(users)
            .map(|m| m["text"].as_str().unwrap())
            .collect();
        assert_eq!(&texts, words, "{key}");
        let turns = shown["turns"].as_array().unwrap();
        assert_eq!(turns.len(), words.len(), "{key}");
        for turn in turns {
            assert_eq!(turn["status"], "succeeded", "{turn}");
        }
        // What the agent knows at the end is each of them, once.
        let answer = messages.last().unwrap()["text"].as_str().unwrap();
        for word in words {
            assert_eq!(
                answer.matches(word.as_str()).count(),
                1,
                "{word} in {answer}"
            );
        }
    }
    wait_for("the folders of the turns to be gone", 60, || {
        world.turn_folders().is_empty().then_some(())
    });
}

/// Each turn is asked of the model once, is shown everything once, and is complete after re-attaching.
#[expect(clippy::needless_pass_by_value, reason = "as every test on a world")]
fn with_a_real_agent(world: World) {
    let mut dice = Dice(7);
    let mut daemon = world.serve(&[]);
    for n in 1..=5 {
        let text = format!("{} #s:a{n}", user(n));
        let body = json!({"key": "k", "text": text, "workdir": world.work().to_str().unwrap()});
        let turn = daemon.post("/api/send", &body).ok();
        std::thread::sleep(Duration::from_millis(dice.roll(1200) as u64));
        daemon.kill();
        daemon = world.serve(&[]);
        let path = format!("/api/turns/{}", turn["turn_id"].as_str().unwrap());
        let turn = wait_for("the turn", 120, || {
            let turn = daemon.get(&path).ok();
            let status = turn["status"].as_str().unwrap();
            (!["queued", "running", "waiting"].contains(&status)).then_some(turn)
        });
        assert_eq!(turn["status"], "succeeded", "{turn}");
        let script = format!("a{n}");
        let asked = world.model.requests();
        let asked: Vec<_> = asked
            .iter()
            .filter(|r| r.script.as_deref() == Some(&script))
            .collect();
        assert_eq!(asked.len(), 1, "run twice");
        let mut words = said(1..n);
        words.push(user(n));
        assert_shown(asked[0], &words);
    }
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}

/// Replacing the binary drops no turn and no event; what it started goes on.
#[test]
fn another_build_takes_over() {
    let place = tempfile::tempdir().unwrap();
    let binary = place.path().join("rejoin");
    std::fs::copy(REJOIN, &binary).unwrap();
    let mut world = World::new(binary.to_str().unwrap());
    world.set("REJOIN_DEFAULT_AGENT", "demo");
    let daemon = world.serve(&[]);
    let all = daemon.watch("/api/events", Some(0));
    let work = world.work();
    let send = |daemon: &Daemon, key: &str, text: &str| {
        let body = json!({"key": key, "text": text, "workdir": work.to_str().unwrap()});
        daemon.post("/api/send", &body).ok()
    };
    let keys: Vec<String> = (0..8).map(|n| format!("k{n}")).collect();
    for key in &keys {
        send(&daemon, key, "wait 2s one");
        send(&daemon, key, "two");
    }
    let mut seen = all.until(|event| event.kind == "turn.started");
    let mut other = std::fs::read(&binary).unwrap();
    other.extend(b"another build");
    let beside = place.path().join("new");
    std::fs::write(&beside, other).unwrap();
    std::fs::set_permissions(&beside, std::fs::metadata(&binary).unwrap().permissions()).unwrap();
    std::fs::rename(&beside, &binary).unwrap();
    assert_eq!(daemon.stop(), 0);
    seen.extend(all.rest(Duration::from_secs(1)));
    let daemon = world.serve(&[]);
    let again = daemon.watch("/api/events", Some(seen.last().unwrap().id));
    while seen.iter().filter(|e| e.kind == "turn.ended").count() < 2 * keys.len() {
        seen.push(again.next());
    }
    let whole = daemon.watch("/api/events", Some(0));
    for event in &seen {
        assert_eq!(&whole.next(), event);
    }
    for key in &keys {
        let shown = daemon.get(&format!("/api/conversations/{key}")).ok();
        for (turn, verdict) in shown["turns"]
            .as_array()
            .unwrap()
            .iter()
            .zip(["started", "resumed"])
        {
            assert_eq!(
                (&turn["status"], &turn["verdict"]),
                (&json!("succeeded"), &json!(verdict)),
                "{turn}"
            );
        }
    }
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}
