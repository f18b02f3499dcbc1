//! `send`, the shim and the CLI killed, alone and together.

use rejoin_testkit::{Done, Talk, World, answer, kill, texts, user, wait_for};
use serde_json::Value;

use super::{begun, second_turn, world};

/// The turn of a killed `send`, once a later command has settled it.
fn settled_later(world: &World) -> Value {
    wait_for("the turn to be settled", 60, || {
        let turn = world.last_turn();
        (turn["status"] != "running").then_some(turn)
    })
}

#[track_caller]
fn assert_answered(talk: &mut Talk, turn: &Value) {
    let n = talk.n;
    let told = (&turn["status"], &turn["text"]);
    assert_eq!(told, (&"succeeded".into(), &answer(n).into()), "{turn}");
    assert!(turn["cost_usd"].as_f64().unwrap() > 0.0, "{turn}");
    assert_eq!(turn["model"], "scripted/m1", "{turn}");
    talk.words.extend([user(n), answer(n)]);
    talk.good("resumed", &[]);
    talk.world.assert_quiet();
}

/// Killed at these points, the turn is run once, and its answer kept.
fn survives(points: &[&str]) {
    let Some(world) = world() else { return };
    let mut talk = begun(world, &[]);
    for point in points {
        talk.n += 1;
        let script = format!("#s:a{}", talk.n);
        talk.world.set("REJOIN_FAIL", point);
        let died = talk.world.send(talk.n, &script, &[]);
        talk.world.unset("REJOIN_FAIL");
        assert_eq!(died.code, -9, "{point}: {died:?}");
        let n = talk.n;
        talk.words.extend([user(n), answer(n)]);
        talk.good("resumed", &[]);
        let turn = talk.world.show()["turns"][n - 1].clone();
        let told = (&turn["status"], &turn["text"], &turn["verdict"]);
        let right = (&"succeeded".into(), &answer(n).into(), &"resumed".into());
        assert_eq!(told, right, "{point}: {turn}");
        let asked = talk.world.model.requests();
        let about_it = |r: &&rejoin_model::Request| r.script.as_deref() == Some(&script[3..]);
        assert_eq!(asked.iter().filter(about_it).count(), 1, "{point}");
        talk.world.assert_quiet();
    }
}

#[test]
#[ignore = "only with --long"]
fn send_killed_before_anything_is_of_this_agent() {
    survives(&["after_accept", "after_claim", "after_look", "before_begin"]);
}

/// Slow. The other CLIs are killed at the same points in every run.
#[test]
#[ignore = "only with --long"]
fn send_killed_before_it_runs() {
    survives(&["after_accept", "after_begin", "after_spec", "after_spawn"]);
}

#[test]
fn send_killed_while_it_runs_and_after() {
    survives(&[
        "mid_stream",
        "after_end",
        "before_settle",
        "after_read",
        "before_finish",
    ]);
}

#[test]
fn without_its_shim_the_cli_finishes_into_its_files() {
    let Some((mut talk, send)) = second_turn("late") else {
        return;
    };
    kill(talk.world.shim().unwrap(), "KILL");
    let turn = Done::of(send).ok().json();
    assert_answered(&mut talk, &turn);
}

#[test]
fn without_shim_and_send_the_next_command_settles_it() {
    let Some((mut talk, send)) = second_turn("late") else {
        return;
    };
    kill(send.id() as i32, "KILL");
    kill(talk.world.shim().unwrap(), "KILL");
    assert_eq!(Done::of(send).code, -9);
    assert!(talk.world.cli().is_some(), "it was over already");
    let turn = settled_later(&talk.world);
    assert_answered(&mut talk, &turn);
}

#[test]
fn the_cli_killed_while_it_answers() {
    let Some((mut talk, send)) = second_turn("late") else {
        return;
    };
    kill(talk.world.cli().unwrap(), "KILL");
    let turn = talk.failed(&Done::of(send), ("failed", "crashed", 1));
    assert_eq!(turn["cost_usd"], Value::Null, "{turn}");
    talk.good("resumed", &[]);
}

/// Its tool has a session of its own and outlives it, but not the turn.
#[test]
fn the_cli_killed_while_its_tool_runs() {
    let Some((mut talk, send)) = second_turn("stuck") else {
        return;
    };
    kill(talk.world.cli().unwrap(), "KILL");
    talk.failed(&Done::of(send), ("failed", "crashed", 1));
    told_and_not_run_again(&mut talk);
}

/// As after a power cut, but that the machine is still there: nobody saw how it ended.
#[test]
fn everything_killed_at_once() {
    let Some((mut talk, send)) = second_turn("stuck") else {
        return;
    };
    let (shim, cli) = (talk.world.shim().unwrap(), talk.world.cli().unwrap());
    for pid in [send.id() as i32, shim, cli] {
        kill(pid, "KILL");
    }
    assert_eq!(Done::of(send).code, -9);
    let turn = settled_later(&talk.world);
    let told = (&turn["status"], &turn["error"]["class"], &turn["cost_usd"]);
    assert_eq!(told, (&"lost".into(), &"lost".into(), &Value::Null));
    talk.world.assert_quiet();
    talk.words.push(user(2));
    talk.unanswered += 1;
    told_and_not_run_again(&mut talk);
}

#[track_caller]
fn told_and_not_run_again(talk: &mut Talk) {
    talk.good("resumed", &[]);
    let said = texts(&talk.world.model.last());
    assert!(said.contains("(tools: started echo x >> ran.txt"), "{said}");
    assert!(said.contains("(outcome unknown)"), "{said}");
    let ran = std::fs::read_to_string(talk.world.work().join("ran.txt")).unwrap();
    assert_eq!(ran, "x\n");
    talk.world.assert_quiet();
}
