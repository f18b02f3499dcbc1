//! A conversation with each agent over HTTP: no turn forgets, none repeats.

#![allow(
    clippy::needless_pass_by_value,
    reason = "a test owns its world and ends it"
)]

use rejoin_testkit::{World, answer, assert_shown, on_every_cli, said, slowly, user, wait_for};
use serde_json::{Value, json};

use super::here;

on_every_cli!(
    held_over_http,
    stopped_over_http,
    instructions_are_told_once
);

/// Where the process of an agent stays up, its next turn is `live`.
fn goes_on(turn: &Value) -> &'static str {
    if turn["agent"] == "claude" || turn["agent"] == "opencode" {
        "live"
    } else {
        "resumed"
    }
}

/// Each message is shown exactly once in every turn, also after the daemon was replaced.
fn held_over_http(world: World) {
    let mut daemon = world.serve(&[]);
    for n in 1..=4 {
        if n == 3 {
            assert_eq!(daemon.stop(), 0);
            daemon = world.serve(&[]);
        }
        let text = format!("{} #s:a{n}", user(n));
        let turn = daemon.say("k", &text, &[here(&world)]);
        let verdict = match n {
            1 => "started",
            // A new daemon has no process of its predecessor.
            3 => "resumed",
            _ => goes_on(&turn),
        };
        assert_eq!(
            (&turn["status"], &turn["verdict"]),
            (&json!("succeeded"), &json!(verdict)),
            "{turn}"
        );
        assert!(
            turn["text"].as_str().unwrap().contains(&answer(n)),
            "{turn}"
        );
        let mut words = said(1..n);
        words.push(user(n));
        assert_shown(&world.model.last(), &words);
    }
    drop(daemon);
    world.assert_quiet();
}

/// Cancelled in the middle: the whole tree is gone, and the next turn tells of it once.
fn stopped_over_http(world: World) {
    let daemon = world.serve(&[]);
    daemon.say("k", &format!("{} #s:a1", user(1)), &[here(&world)]);
    world.model.fail_next(1, slowly("never to be read", 600));
    let text = format!("{} #s:a2", user(2));
    let slow = daemon
        .post("/api/send", &json!({"key": "k", "text": text}))
        .ok();
    world.wait_until_asked(&user(2));
    let path = format!("/api/turns/{}/cancel", slow["turn_id"].as_str().unwrap());
    let stopped = daemon.post(&path, &json!({})).ok();
    assert_eq!(stopped["status"], "cancelled");
    wait_for("the agent to be gone", 20, || {
        world.cli().is_none().then_some(())
    });
    let turn = daemon.say("k", &format!("{} #s:a3", user(3)), &[]);
    assert_eq!(turn["status"], "succeeded", "{turn}");
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}

/// standing text of the embedding product: told once, and again only when it changed.
fn instructions_are_told_once(world: World) {
    let daemon = world.serve(&[]);
    let shown = |word: &str| {
        world
            .model
            .last()
            .history()
            .to_string()
            .matches(word)
            .count()
    };
    let say = |n: usize, text: &str| {
        let words = format!("{} #s:a{n}", user(n));
        daemon.say("k", &words, &[here(&world), ("instructions", json!(text))])
    };
    say(1, "Always be kind: rule-alpha.");
    assert_eq!(shown("rule-alpha"), 1);
    let second = say(2, "Always be kind: rule-alpha.");
    assert_eq!(second["verdict"], goes_on(&second));
    assert_eq!(shown("rule-alpha"), 1);
    say(3, "Be brief: rule-beta.");
    assert_eq!((shown("rule-alpha"), shown("rule-beta")), (1, 1));
    daemon.post("/api/conversations/k/reset", &json!({})).ok();
    let told = say(4, "Be brief: rule-beta.");
    assert_eq!(told["verdict"], "reseeded");
    assert_eq!((shown("rule-alpha"), shown("rule-beta")), (0, 1));
    let mut words = said(1..4);
    words.push(user(4));
    assert_shown(&world.model.last(), &words);
}
