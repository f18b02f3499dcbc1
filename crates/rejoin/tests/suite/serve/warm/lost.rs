//! Losing a process, its daemon, or both costs nothing but time.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rejoin_testkit::{
    Daemon, World, answer, assert_shown, on_both_claudes, slowly, user, wait_for,
};
use serde_json::{Value, json};

use super::{process, say, verdict};
use crate::suite::crashes::points::POINTS;

on_both_claudes!(
    it_was_killed_while_it_rested,
    the_daemon_was_killed_while_it_rested,
    the_daemon_was_killed_in_the_middle,
    the_daemon_dies_at_every_step,
    cancelled_in_the_middle,
    a_command_without_the_daemon,
    who_stands_between_is_killed,
    its_shim_is_killed,
    it_is_killed_in_the_middle,
    reloaded_in_the_middle,
);

/// A turn in the process that stayed up, which does not end by itself for a while.
fn in_the_middle(world: &World, daemon: &Daemon, chunks: usize) -> String {
    say(world, daemon, 1, &[]);
    world.model.fail_next(1, slowly("slow-word", chunks));
    let body = json!({"key": "k", "text": format!("{} #s:a2", user(2))});
    let sent = daemon.post("/api/send", &body).ok();
    world.wait_until_asked(&user(2));
    format!("/api/turns/{}", sent["turn_id"].as_str().unwrap())
}

fn ended(daemon: &Daemon, path: &str) -> Value {
    wait_for("the turn to end", 60, || {
        let turn = daemon.get(path).ok();
        let over = !["queued", "running", "waiting"].contains(&turn["status"].as_str().unwrap());
        over.then_some(turn)
    })
}

/// Nothing of it goes on, and the next turn tells of it once.
fn told_again(world: &World, daemon: &Daemon) {
    assert_eq!(process(world), None);
    let turn = daemon.say("k", &format!("{} #s:a3", user(3)), &[]);
    assert_eq!(verdict(&turn), "resumed", "{turn:#}");
    assert_shown(&world.model.last(), &[user(1), answer(1), user(2), user(3)]);
}

fn who_stands_between_is_killed(world: World) {
    killed_in_the_middle(&world, |world| {
        world.pid_of(|command| command.contains(" stay "))
    });
}

fn it_is_killed_in_the_middle(world: World) {
    killed_in_the_middle(&world, process);
}

/// The turn has failed, for money that nobody knows.
fn killed_in_the_middle(world: &World, who: impl FnOnce(&World) -> Option<i32>) {
    let daemon = world.serve(&[]);
    let path = in_the_middle(world, &daemon, 600);
    kill(Pid::from_raw(who(world).unwrap()), Signal::SIGKILL).unwrap();
    let turn = ended(&daemon, &path);
    assert_eq!(
        (&turn["status"], &turn["cost_usd"]),
        (&json!("failed"), &Value::Null)
    );
    told_again(world, &daemon);
    drop(daemon);
    world.assert_quiet();
}

/// The CLI finishes its turn, and ends.
fn its_shim_is_killed(world: World) {
    let daemon = world.serve(&[]);
    let path = in_the_middle(&world, &daemon, 4);
    let shim =
        world.pid_of(|command| command.starts_with("rejoin shim ") && command.contains("/warm/"));
    kill(Pid::from_raw(shim.unwrap()), Signal::SIGKILL).unwrap();
    let turn = ended(&daemon, &path);
    assert_eq!(
        (&turn["status"], verdict(&turn)),
        (&json!("succeeded"), "live"),
        "{turn:#}"
    );
    assert!(turn["text"].as_str().unwrap().contains("slow-word"));
    let turn = daemon.say("k", &format!("{} #s:a3", user(3)), &[]);
    assert_eq!(verdict(&turn), "resumed", "{turn:#}");
    drop(daemon);
    world.assert_quiet();
}

fn it_was_killed_while_it_rested(world: World) {
    let daemon = world.serve(&[]);
    say(&world, &daemon, 1, &[]);
    let pid = process(&world).unwrap();
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    assert_eq!(verdict(&say(&world, &daemon, 2, &[])), "resumed");
    assert_eq!(verdict(&say(&world, &daemon, 3, &[])), "live");
    // With its shim.
    for pid in [world.shim(), process(&world)].into_iter().flatten() {
        kill(Pid::from_raw(pid), Signal::SIGKILL).ok();
    }
    assert_eq!(verdict(&say(&world, &daemon, 4, &[])), "resumed");
    drop(daemon);
    world.assert_quiet();
}

/// It is the next one's.
fn the_daemon_was_killed_while_it_rested(world: World) {
    let daemon = world.serve(&[]);
    say(&world, &daemon, 1, &[]);
    let pid = process(&world);
    daemon.kill();
    let daemon = world.serve(&[]);
    assert_eq!(process(&world), pid);
    assert_eq!(verdict(&say(&world, &daemon, 2, &[])), "live");
    drop(daemon);
    world.assert_quiet();
}

fn the_daemon_was_killed_in_the_middle(world: World) {
    let daemon = world.serve(&[]);
    let path = in_the_middle(&world, &daemon, 2);
    let pid = process(&world);
    daemon.kill();
    let daemon = world.serve(&[]);
    let turn = ended(&daemon, &path);
    assert_eq!(
        (&turn["status"], verdict(&turn)),
        (&json!("succeeded"), "live")
    );
    assert_eq!(turn["attempts"].as_array().unwrap().len(), 1, "{turn:#}");
    let text = format!("{} #s:a3", user(3));
    let turn = daemon.say("k", &text, &[]);
    assert_eq!((verdict(&turn), process(&world)), ("live", pid), "{turn:#}");
    drop(daemon);
    world.assert_quiet();
}

/// Promises 3 and 4: wherever it dies, the turn is run once and told once; who has no answer asks again.
fn the_daemon_dies_at_every_step(mut world: World) {
    let daemon = world.serve(&[]);
    say(&world, &daemon, 1, &[]);
    drop(daemon);
    let mut told = vec![user(1), answer(1)];
    let begin = POINTS.iter().position(|it| *it == "after_look").unwrap();
    for (n, point) in (2..).step_by(2).zip(&POINTS[begin..]) {
        // One process rests, when the daemon is killed on its next turn.
        let daemon = world.serve(&[]);
        told.push(user(n));
        daemon.say("k", &format!("{} #s:a{n}", user(n)), &[]);
        assert_shown(&world.model.last(), &told);
        daemon.kill();
        told.extend([answer(n), user(n + 1)]);
        world.set("REJOIN_FAIL", point);
        let daemon = world.serve(&[]);
        let text = format!("{} #s:a{}", user(n + 1), n + 1);
        let (once, body) = (
            format!("Idempotency-Key: once-{n}"),
            json!({"key": "k", "text": text}),
        );
        // It may be gone before it has answered.
        let sent = daemon.call("POST", "/api/send", &[&once], Some(&body));
        daemon.wait_until_gone();
        world.unset("REJOIN_FAIL");
        let daemon = world.serve(&[]);
        let again = daemon.call("POST", "/api/send", &[&once], Some(&body)).ok();
        if sent.status != 0 {
            assert_eq!(sent.ok()["turn_id"], again["turn_id"], "{point}");
        }
        let path = format!("/api/turns/{}", again["turn_id"].as_str().unwrap());
        let turn = ended(&daemon, &path);
        assert_eq!(turn["status"], "succeeded", "{point}: {turn:#}");
        assert_shown(&world.model.last(), &told);
        told.push(answer(n + 1));
        drop(daemon);
        world.assert_quiet();
    }
    let asked = world.model.requests().len();
    assert_eq!(asked, told.len() / 2, "none was run twice");
}

fn cancelled_in_the_middle(world: World) {
    let daemon = world.serve(&[]);
    let path = in_the_middle(&world, &daemon, 600);
    let stopped = daemon.post(&format!("{path}/cancel"), &json!({})).ok();
    assert_eq!(stopped["status"], "cancelled");
    told_again(&world, &daemon);
    drop(daemon);
    world.assert_quiet();
}

/// Whoever is not a daemon keeps nothing, and does not go on beside what rests.
fn a_command_without_the_daemon(world: World) {
    let daemon = world.serve(&[]);
    say(&world, &daemon, 1, &[]);
    daemon.kill();
    let text = format!("{} #s:a2", user(2));
    let turn = world.run(&["send", "-k", "k", "--json", &text]).ok().json();
    assert_eq!(verdict(&turn), "resumed");
    assert_eq!(process(&world), None);
    assert_shown(&world.model.last(), &[user(1), answer(1), user(2)]);
    world.assert_quiet();
}

/// D-24: a running turn is left alone, and the next one has a process of its own.
fn reloaded_in_the_middle(world: World) {
    let daemon = world.serve(&[]);
    let path = in_the_middle(&world, &daemon, 4);
    let done = daemon.post("/api/conversations/k/reload", &json!({})).ok();
    assert_eq!(done["ended"], 0);
    let turn = ended(&daemon, &path);
    assert_eq!(
        (&turn["status"], verdict(&turn)),
        (&json!("succeeded"), "live")
    );
    assert_eq!(process(&world), None);
    let turn = daemon.say("k", &format!("{} #s:a3", user(3)), &[]);
    assert_eq!(verdict(&turn), "resumed", "{turn:#}");
    drop(daemon);
    world.assert_quiet();
}
