//! One writer, and nobody's session mixed up with another's.
//!
//! A session in other hands cannot be noticed while that runs: this CLI neither locks its sessions
//! nor notes who has them open (0.61.0). What was said there is found afterwards
//! (`a_session_continued_by_hand_is_not_resumed`), and docs/agents.md says so.

use std::collections::BTreeSet;
use std::process::Child;

use rejoin_testkit::{Done, answer, assert_shown, said, slowly, user, wait_for};
use serde_json::Value;

use super::{FLASH, STREAMS, begun, scripted, world};

#[test]
fn the_second_message_waits_for_the_first() {
    let Some(world) = scripted([("late", vec![slowly(&answer(2), 12)])]) else {
        return;
    };
    let mut talk = begun(world, &[]);
    let first = talk.world.start(2, "#s:late", &[]);
    wait_for("the answer to begin", 40, || {
        talk.world.printed(STREAMS).then_some(())
    });
    let busy = talk.world.send(3, "#s:a3", &["--if-busy", "fail"]);
    assert_eq!(busy.code, 4, "{busy:?}");
    talk.n = 2;
    talk.words.extend([user(2), answer(2)]);
    talk.good("resumed", &[]);
    assert_eq!(Done::of(first).ok().json()["text"], answer(2));
    talk.world.assert_quiet();
}

/// The check claims no more than is known.
#[test]
fn who_has_the_session_open_is_said_to_be_unknown() {
    let Some(world) = world() else { return };
    let talk = begun(world, &[]);
    let next = talk.world.run(&["explain", "k", "--next", "--json"]).ok();
    let next = next.json();
    let checks = next["checks"].as_array().unwrap();
    let in_use = checks.iter().find(|c| c["check"] == "in_use").unwrap();
    assert_eq!(in_use["ok"], true);
    assert_eq!(
        in_use["evidence"],
        "unknown: the agent leaves no trace of who has it open"
    );
}

/// E-16: ten conversations in one folder, each with words and a session of its own.
#[test]
fn ten_conversations_in_one_folder_at_once() {
    let Some(world) = world() else { return };
    let keys: Vec<String> = (0..10).map(|n| format!("k{n}")).collect();
    let mut sessions = vec![BTreeSet::new(); keys.len()];
    for round in 0..3 {
        let sends: Vec<(usize, Child)> = (0..keys.len())
            .map(|n| {
                let word = 10 * round + n + 1;
                let text = format!("{} #s:a{word}", user(word));
                let args = ["send", "--json", "-k", &keys[n], "-a", "gemini"];
                let child = world.spawn(&[&args[..], &FLASH, &[&text]].concat());
                (n, child)
            })
            .collect();
        for (n, child) in sends {
            let turn = Done::of(child).ok().json();
            let verdict = if round == 0 { "started" } else { "resumed" };
            assert_eq!(turn["verdict"], verdict, "{n}: {turn}");
            assert_eq!(turn["text"], answer(10 * round + n + 1));
            sessions[n].insert(turn["session_id"].as_str().unwrap().to_owned());
        }
    }
    assert!(sessions.iter().all(|of_one| of_one.len() == 1));
    let all: BTreeSet<&String> = sessions.iter().flatten().collect();
    assert_eq!(all.len(), keys.len());
    for n in 0..keys.len() {
        let word = 20 + n + 1;
        let asked = world.model.requests().into_iter();
        let mut about = asked.filter(|r| r.script.as_deref() == Some(&format!("a{word}")));
        let mut words = said([n + 1, 10 + n + 1]);
        words.push(user(word));
        assert_shown(&about.next().unwrap(), &words);
    }
    world.assert_quiet();
}

#[test]
fn the_same_message_sent_many_times_under_one_key_runs_once() {
    let Some(world) = world() else { return };
    let flags = [&FLASH[..], &["--idempotency-key", "once"]].concat();
    let sends: Vec<Child> = (0..3).map(|_| world.start(1, "#s:a1", &flags)).collect();
    let turns: Vec<Value> = sends.into_iter().map(|s| Done::of(s).ok().json()).collect();
    assert!(
        turns
            .iter()
            .all(|turn| turn["turn_id"] == turns[0]["turn_id"])
    );
    assert_eq!(world.model.requests().len(), 1);
}
