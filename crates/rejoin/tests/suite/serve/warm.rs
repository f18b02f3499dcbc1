//! A process that stays up between turns: the next one is `live`, and nothing else changes.

#![allow(
    clippy::needless_pass_by_value,
    reason = "a test owns its world and ends it"
)]

mod bounds;
mod lost;
mod others;

use rejoin_testkit::{Daemon, World, answer, assert_shown, on_both_claudes, said, user, wait_for};
use serde_json::{Value, json};

use super::here;

on_both_claudes!(
    one_process_for_all,
    what_each_turn_cost_is_the_same,
    whatever_forbids_to_resume_forbids_this,
    another_call_is_another_process,
    who_did_not_succeed_is_not_kept,
    questions_are_answered_there,
    what_is_always_allowed_is_of_that_turn,
);

/// Says message `n`, and sees that the model was shown everything before it once.
fn say(world: &World, daemon: &Daemon, n: usize, more: &[(&str, Value)]) -> Value {
    let text = format!("{} #s:a{n}", user(n));
    let turn = daemon.say("k", &text, &[&[here(world)], more].concat());
    assert_eq!(turn["status"], "succeeded", "{turn:#}");
    let mut words = said(1..n);
    words.push(user(n));
    assert_shown(&world.model.last(), &words);
    turn
}

/// The process of the agent that runs now.
fn process(world: &World) -> Option<i32> {
    world.cli()
}

fn verdict(turn: &Value) -> &str {
    turn["verdict"].as_str().unwrap()
}

fn one_process_for_all(world: World) {
    let daemon = world.serve(&[]);
    let first = say(&world, &daemon, 1, &[]);
    assert_eq!(verdict(&first), "started");
    let pid = process(&world).unwrap();
    for n in 2..=5 {
        let next = daemon.get("/api/conversations/k/next").ok();
        assert_eq!(next["verdict"], "live", "{next:#}");
        let turn = say(&world, &daemon, n, &[]);
        assert_eq!(
            (verdict(&turn), &turn["reason"], &turn["session_id"]),
            ("live", &Value::Null, &first["session_id"])
        );
        assert_eq!(turn["saved"], "stored");
        assert_eq!(process(&world), Some(pid));
    }
    // D-24
    let done = daemon.post("/api/conversations/k/reload", &json!({})).ok();
    assert_eq!(done["ended"], 1, "{done}");
    assert_eq!(process(&world), None);
    assert_eq!(verdict(&say(&world, &daemon, 6, &[])), "resumed");
    assert_eq!(verdict(&say(&world, &daemon, 7, &[])), "live");
    assert_eq!(daemon.stop(), 0);
    assert_eq!(process(&world), None, "nothing rests without a daemon");
    world.assert_quiet();
}

/// The same messages to one that stays and to one that does not.
fn what_each_turn_cost_is_the_same(world: World) {
    let daemon = world.serve(&[]);
    let mut bills = vec![];
    for reload in [false, true] {
        let key = format!("k-{reload}");
        let mut bill = vec![];
        for n in 1..=4 {
            let turn = daemon.say(&key, &format!("{} #s:a{n}", user(n)), &[here(&world)]);
            let (usage, cost) = (&turn["usage"], &turn["cost_usd"]);
            assert!(cost.as_f64().unwrap() > 0.0, "{turn:#}");
            bill.push(json!([usage["input"], usage["output"], cost]));
            if reload {
                let path = format!("/api/conversations/{key}/reload");
                assert_eq!(daemon.post(&path, &json!({})).ok()["ended"], 1);
            } else if n > 1 {
                assert_eq!(verdict(&turn), "live");
            }
        }
        bills.push(bill);
    }
    assert_eq!(bills[0], bills[1]);
}

/// Every guard of a resume holds here as well.
fn whatever_forbids_to_resume_forbids_this(world: World) {
    let daemon = world.serve(&[]);
    let first = say(&world, &daemon, 1, &[]);
    assert_eq!(verdict(&say(&world, &daemon, 2, &[])), "live");
    // Gone on with by hand, beside the process that rests.
    let session = first["session_id"].as_str().unwrap();
    let by_hand = world.by_hand(session, "handword-1 #s:a9");
    assert!(by_hand.status.success(), "{by_hand:?}");
    let mut words = said(1..3);
    words.push(answer(9));
    let mut say = |n: usize| {
        let turn = daemon.say("k", &format!("{} #s:a{n}", user(n)), &[]);
        words.push(user(n));
        assert_shown(&world.model.last(), &words);
        words.push(answer(n));
        let shown = world.model.last().history().to_string();
        assert_eq!(shown.matches("handword-1").count(), 1);
        turn
    };
    assert_eq!(verdict(&say(3)), "resumed");
    // Taken away.
    assert_eq!(verdict(&say(4)), "live");
    for file in world.sessions() {
        std::fs::remove_file(file).unwrap();
    }
    assert_eq!(verdict(&say(5)), "restored");
    // A changed history.
    let shown = daemon.get("/api/conversations/k").ok();
    let last = shown["messages"].as_array().unwrap().last().unwrap();
    let path = format!("/api/messages/{}", last["id"].as_str().unwrap());
    let body = json!({"text": "changed-word"});
    daemon.call("PATCH", &path, &[], Some(&body)).ok();
    let text = format!("{} #s:a6", user(6));
    let turn = daemon.say("k", &text, &[]);
    assert_eq!(verdict(&turn), "reseeded", "{turn:#}");
    let shown = world.model.last().history().to_string();
    for word in ["changed-word", &user(6), "handword-1"] {
        assert_eq!(shown.matches(word).count(), 1, "{word}");
    }
    assert_eq!(shown.matches(&answer(5)).count(), 0);
    drop(daemon);
    world.assert_quiet();
}

/// Its call is no longer what was asked for: a new process, the same session.
fn another_call_is_another_process(world: World) {
    let daemon = world.serve(&[]);
    say(&world, &daemon, 1, &[]);
    let before = process(&world);
    let turn = say(&world, &daemon, 2, &[("permission", json!("ask"))]);
    assert_eq!(verdict(&turn), "resumed", "{turn:#}");
    assert_ne!(process(&world), before);
    let with_model = [("permission", json!("ask")), ("model", json!("sonnet"))];
    assert_eq!(verdict(&say(&world, &daemon, 3, &with_model)), "resumed");
    assert_eq!(verdict(&say(&world, &daemon, 4, &with_model)), "live");
    // Of a limit the CLI would count all its turns.
    let limited = [&with_model[..], &[("max_cost_usd", json!(5))]].concat();
    assert_eq!(verdict(&say(&world, &daemon, 5, &limited)), "resumed");
    assert_eq!(process(&world), None, "nor is such a process kept");
    drop(daemon);
    world.assert_quiet();
}

fn who_did_not_succeed_is_not_kept(world: World) {
    let daemon = world.serve(&[]);
    say(&world, &daemon, 1, &[]);
    let text = format!("{} #s:e400", user(2));
    let failed = daemon.say("k", &text, &[]);
    assert_eq!(failed["status"], "failed", "{failed:#}");
    assert_eq!(process(&world), None);
    let turn = daemon.say("k", &format!("{} #s:a3", user(3)), &[]);
    assert_eq!(
        (&turn["status"], verdict(&turn)),
        (&json!("succeeded"), "resumed")
    );
    assert_shown(&world.model.last(), &[user(1), answer(1), user(2), user(3)]);
    drop(daemon);
    world.assert_quiet();
}

/// A turn that asks, in the process that rested; answered so.
fn asked(world: &World, daemon: &Daemon, n: usize, decision: &str) -> Value {
    let text = format!("{} #s:write", user(n));
    let body = json!({"key": "k", "text": text, "permission": "ask"});
    let asked = daemon.post("/api/send?wait=true", &body).ok();
    assert_eq!(asked["status"], "waiting", "{asked:#}");
    assert!(process(world).is_some());
    let path = format!("/api/turns/{}", asked["turn_id"].as_str().unwrap());
    daemon
        .post(&format!("{path}/answer"), &json!({"decision": decision}))
        .ok();
    wait_for("the answer", 60, || {
        let turn = daemon.get(&path).ok();
        (turn["status"] == "succeeded").then_some(turn)
    })
}

fn questions_are_answered_there(world: World) {
    let daemon = world.serve(&[]);
    say(&world, &daemon, 1, &[("permission", json!("ask"))]);
    let pid = process(&world);
    let turn = asked(&world, &daemon, 2, "allow");
    assert_eq!(verdict(&turn), "live", "{turn:#}");
    assert_eq!(process(&world), pid);
    assert_eq!(verdict(&asked(&world, &daemon, 3, "allow")), "live");
    drop(daemon);
    world.assert_quiet();
}

/// Claude keeps such a rule in its process, which is therefore not kept.
fn what_is_always_allowed_is_of_that_turn(world: World) {
    let daemon = world.serve(&[]);
    say(&world, &daemon, 1, &[("permission", json!("ask"))]);
    assert_eq!(verdict(&asked(&world, &daemon, 2, "always")), "live");
    assert_eq!(process(&world), None);
    assert_eq!(verdict(&asked(&world, &daemon, 3, "allow")), "resumed");
    drop(daemon);
    world.assert_quiet();
}
