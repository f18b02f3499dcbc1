//! A shim that is stopped or killed by its own agent: the turn ends, within its limits.

use std::time::{Duration, Instant};

use rejoin_testkit::{Done, World, kill, wait_for};

use super::REJOIN;

/// A world with an agent that is this shell script. Its signals reach its shim: there is no wall.
fn world(script: &str) -> World {
    let mut world = World::new(REJOIN);
    let bin = world.root().join("hostile");
    world.script(
        &bin,
        &format!("#!/bin/bash\n[[ $1 = --version ]] && exit\n{script}\n"),
    );
    let config = world.home().join(".config/rejoin/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let bin = bin.display();
    let section = format!(
        "default_agent = \"hostile\"\n[agents.hostile]\nkind = \"command\"\nbin = \"{bin}\"\npermission.edit = []\n"
    );
    std::fs::write(&config, section).unwrap();
    world.set("REJOIN_WALL_MODE", "off");
    world
}

#[track_caller]
fn assert_ends(world: &World, done: &Done, class: &str) {
    let turn = done.json();
    assert_eq!(turn["status"], "failed", "{turn}");
    assert_eq!(turn["error"]["class"], class, "{turn}");
    world.assert_quiet();
    let next = world.run(&["show", "k", "--json"]).ok();
    assert_eq!(next.json()["turns"].as_array().unwrap().len(), 1);
}

#[test]
fn a_shim_that_was_stopped_once_goes_on() {
    let world = world("kill -STOP $PPID; echo hello");
    let done = world.run(&["send", "-k", "k", "one"]).ok();
    assert_eq!(done.stdout.trim(), "hello", "{done:?}");
    world.assert_quiet();
}

/// The agent holds its shim down and never ends.
#[test]
fn a_shim_that_is_held_down_is_killed_with_its_agent() {
    let world = world("trap '' INT TERM; while :; do kill -STOP $PPID; sleep 0.01; done");
    let begun = Instant::now();
    let done = world.run(&["send", "-k", "k", "--json", "--timeout", "2s", "one"]);
    assert!(begun.elapsed() < Duration::from_mins(1));
    assert_ends(&world, &done, "time_limit");
}

/// The agent kills its shim and ignores that it is to end: its time runs out all the same.
#[test]
fn the_time_of_an_agent_without_a_shim_runs_out() {
    let world = world(
        "trap '' INT TERM; until [ -e /proc/$PPID/cwd/cli.json ]; do sleep 0.01; done; kill -KILL $PPID; while :; do sleep 0.1; done",
    );
    let done = world.run(&["send", "-k", "k", "--json", "--timeout", "2s", "one"]);
    assert_ends(&world, &done, "time_limit");
    assert_eq!(done.code, 124, "{done:?}");
}

#[test]
fn an_agent_without_a_shim_can_be_cancelled() {
    let mut world = world(
        "trap '' INT TERM; until [ -e /proc/$PPID/cwd/cli.json ]; do sleep 0.01; done; kill -KILL $PPID; while :; do sleep 0.1; done",
    );
    world.set("REJOIN_DEFAULT_AGENT", "hostile");
    let daemon = world.serve(&[]);
    let body = serde_json::json!({"key": "k", "text": "one", "workdir": world.work()});
    let turn = daemon.post("/api/send", &body).ok();
    let path = format!("/api/turns/{}", turn["turn_id"].as_str().unwrap());
    wait_for("the agent without its shim", 20, || {
        let alone = world
            .pid_of(|command| command.contains("/hostile"))
            .is_some();
        (alone && world.shim().is_none()).then_some(())
    });
    daemon
        .post(&format!("{path}/cancel"), &serde_json::json!({}))
        .ok();
    let turn = wait_for("the end", 40, || {
        let turn = daemon.get(&path).ok();
        (turn["status"] != "running").then_some(turn)
    });
    assert_eq!(turn["status"], "cancelled", "{turn}");
    let left = world.pid_of(|command| command.contains("/hostile"));
    assert_eq!(left, None);
}

/// Somebody else stops the shim while the agent works.
#[test]
fn a_stopped_shim_answers_again() {
    let world = world("sleep 1; echo hello");
    let send = world.start(1, "one", &[]);
    let shim = wait_for("the shim", 20, || world.shim());
    wait_for("the agent", 20, || {
        world.pid_of(|command| command.contains("/hostile"))
    });
    kill(shim, "STOP");
    let done = Done::of(send).ok();
    assert!(done.stdout.contains("hello"), "{done:?}");
}
