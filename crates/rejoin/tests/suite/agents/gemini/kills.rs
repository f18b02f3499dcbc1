//! Killed at named points; the CLI, the shim, everything killed.

use std::process::Child;

use rejoin_testkit::{Done, Talk, World, answer, kill, runs, slowly, texts, user, wait_for};
use serde_json::Value;

use super::{STREAMS, begun, is_stuck, scripted, world};

/// Leaves a trace, then never ends; what follows would be its second trace.
const STUCK: &str = "echo x >> ran.txt; tail -f /etc/hostname; echo y >> ran.txt";

/// The turn of a killed `send`, once a later command has settled it.
fn settled_later(world: &World) -> Value {
    wait_for("the turn to be settled or queued", 40, || {
        let _listed = world.run(&["list"]).ok();
        let turn = world.last_turn();
        (turn["status"] != "running").then_some(turn)
    })
}

fn survives(points: &[&str]) {
    let Some(world) = world() else { return };
    let mut talk = begun(world, &[]);
    for point in points {
        talk.n += 1;
        let n = talk.n;
        let script = format!("#s:a{n}");
        talk.world.set("REJOIN_FAIL", point);
        let died = talk.world.send(n, &script, &[]);
        talk.world.unset("REJOIN_FAIL");
        assert_eq!(died.code, -9, "{point}: {died:?}");
        let turn = settled_later(&talk.world);
        if turn["status"] == "succeeded" {
            let found = (&turn["text"], &turn["verdict"]);
            assert_eq!(found, (&answer(n).into(), &"resumed".into()), "{point}");
        } else {
            assert_eq!(turn["status"], "queued", "{point}: {turn}");
        }
        talk.words.extend([user(n), answer(n)]);
        talk.good("resumed", &[]);
        let asked = talk.world.model.requests();
        let about_it = asked
            .iter()
            .filter(|r| r.script.as_deref() == Some(&script[3..]));
        assert_eq!(about_it.count(), 1, "{point}: run twice, or never");
        talk.world.assert_quiet();
    }
}

#[test]
fn every_point_before_it_runs() {
    survives(&[
        "after_accept",
        "after_claim",
        "after_look",
        "before_begin",
        "after_begin",
        "after_spec",
        "after_spawn",
    ]);
}

#[test]
fn every_point_after_that() {
    survives(&[
        "mid_stream",
        "after_end",
        "before_settle",
        "after_read",
        "before_finish",
    ]);
}

/// One turn done and a second one under way.
fn second_turn(script: &str, under_way: impl Fn(&World) -> bool) -> Option<(Talk, Child)> {
    let world = scripted([
        ("late", vec![slowly(&answer(2), 15)]),
        ("stuck", vec![runs(STUCK)]),
    ])?;
    let mut talk = begun(world, &["--tools", "shell"]);
    talk.n += 1;
    let send = talk.world.start(talk.n, script, &[]);
    wait_for("the turn to be under way", 40, || {
        under_way(&talk.world).then_some(())
    });
    Some((talk, send))
}

fn streams(world: &World) -> bool {
    world.printed(STREAMS)
}

#[track_caller]
fn assert_answered(talk: &mut Talk, turn: &Value) {
    let found = (&turn["status"], &turn["text"]);
    assert_eq!(found, (&"succeeded".into(), &answer(2).into()), "{turn}");
    talk.words.extend([user(2), answer(2)]);
    talk.good("resumed", &[]);
    talk.world.assert_quiet();
}

#[test]
fn without_its_shim_the_cli_finishes_into_its_files() {
    let Some((mut talk, send)) = second_turn("#s:late", streams) else {
        return;
    };
    kill(talk.world.shim().unwrap(), "KILL");
    let done = Done::of(send).ok();
    assert_answered(&mut talk, &done.json());
}

#[test]
fn without_shim_and_send_the_next_command_settles_it() {
    let Some((mut talk, send)) = second_turn("#s:late", streams) else {
        return;
    };
    kill(send.id() as i32, "KILL");
    kill(talk.world.shim().unwrap(), "KILL");
    assert_eq!(Done::of(send).code, -9);
    let turn = settled_later(&talk.world);
    assert_answered(&mut talk, &turn);
}

#[test]
fn the_cli_killed_while_it_answers() {
    let Some((mut talk, send)) = second_turn("#s:late", streams) else {
        return;
    };
    kill(talk.world.cli().unwrap(), "KILL");
    talk.failed(&Done::of(send), ("failed", "crashed", 1));
    talk.good("resumed", &[]);
}

#[test]
fn the_cli_killed_while_its_tool_runs() {
    let Some((mut talk, send)) = second_turn("#s:stuck", is_stuck) else {
        return;
    };
    kill(talk.world.cli().unwrap(), "KILL");
    talk.failed(&Done::of(send), ("failed", "crashed", 1));
    told_and_not_run_again(&mut talk);
}

/// As after a power cut, but that the machine is still there: nobody saw how it ended.
#[test]
fn everything_killed_at_once() {
    for script in ["#s:stuck", "#s:late"] {
        let under_way = if script == "#s:late" {
            streams
        } else {
            is_stuck
        };
        let Some((mut talk, send)) = second_turn(script, under_way) else {
            return;
        };
        let world = &talk.world;
        for pid in [
            send.id() as i32,
            world.shim().unwrap(),
            world.cli().unwrap(),
        ] {
            kill(pid, "KILL");
        }
        assert_eq!(Done::of(send).code, -9);
        let turn = settled_later(&talk.world);
        let found = (&turn["status"], &turn["error"]["class"], &turn["text"]);
        assert_eq!(found, (&"lost".into(), &"lost".into(), &Value::Null));
        talk.world.assert_quiet();
        talk.words.push(user(2));
        talk.unanswered += 1;
        if script == "#s:stuck" {
            told_and_not_run_again(&mut talk);
        } else {
            talk.good("resumed", &[]);
        }
    }
}

#[track_caller]
fn told_and_not_run_again(talk: &mut Talk) {
    talk.good("resumed", &[]);
    let said = texts(&talk.world.model.last());
    assert!(said.contains("(tools: started echo x >> ran.txt"), "{said}");
    assert!(said.contains("(outcome unknown)"), "{said}");
    talk.good("resumed", &[]);
    let ran = std::fs::read_to_string(talk.world.work().join("ran.txt")).unwrap();
    assert_eq!(ran, "x\n");
    talk.world.assert_quiet();
}
