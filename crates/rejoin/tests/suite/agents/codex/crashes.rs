//! The CLI killed, its shim, both, everything; `rejoin send` killed at its named points.

use rejoin_testkit::{Done, Model, Talk, World, answer, kill, runs, slowly, texts, user, wait_for};
use serde_json::Value;

use super::{TOOLS, answers, is_stuck, scripted, second_turn, stop, world};

/// Leaves a trace, then never ends; what follows `;` would be its second trace. Its output goes nowhere:
/// `tail` ends when nobody reads it any more, which a killed CLI shows it before its children hear of that.
const STUCK: &str = "echo x >> ran.txt; tail -f /etc/hostname > /dev/null; echo y >> ran.txt";

fn model() -> Model {
    let late = vec![slowly(&answer(2), 15)];
    Model::scripted([("late", late), ("stuck", vec![runs(STUCK)])])
}

fn answering() -> Option<(Talk, std::process::Child)> {
    let world = scripted(model)?;
    Some(second_turn(world, "#s:late", &[], |w| answers(w, 2)))
}

/// With full access what a tool starts outlives the CLI.
fn working(permission: &str) -> Option<(Talk, std::process::Child)> {
    let flags = ["--permission", permission];
    Some(second_turn(scripted(model)?, "#s:stuck", &flags, is_stuck))
}

fn settled_later(world: &World) -> Value {
    wait_for("the turn to be settled", 20, || {
        let turn = world.last_turn();
        (turn["status"] != "running").then_some(turn)
    })
}

#[track_caller]
fn assert_answered(talk: &mut Talk, turn: &Value) {
    let expected = (&"succeeded".into(), &answer(2).into());
    assert_eq!((&turn["status"], &turn["text"]), expected, "{turn}");
    talk.words.extend([user(2), answer(2)]);
    talk.good("resumed", &[]);
    talk.world.assert_quiet();
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

#[test]
fn without_its_shim_the_cli_finishes_into_its_files() {
    let Some((mut talk, send)) = answering() else {
        return;
    };
    kill(talk.world.shim().unwrap(), "KILL");
    let done = Done::of(send).ok();
    assert_answered(&mut talk, &done.json());
}

#[test]
fn without_shim_and_send_the_next_command_settles_it() {
    let Some((mut talk, send)) = answering() else {
        return;
    };
    stop(&send, "KILL");
    kill(talk.world.shim().unwrap(), "KILL");
    assert_eq!(Done::of(send).code, -9);
    let turn = settled_later(&talk.world);
    assert_answered(&mut talk, &turn);
}

#[test]
fn the_cli_killed_while_it_answers() {
    let Some((mut talk, send)) = answering() else {
        return;
    };
    kill(talk.world.cli().unwrap(), "KILL");
    talk.failed(&Done::of(send), ("failed", "crashed", 1));
    talk.good("resumed", &[]);
}

#[test]
fn the_cli_killed_while_its_tool_runs() {
    for permission in ["edit", "full"] {
        let Some((mut talk, send)) = working(permission) else {
            return;
        };
        kill(talk.world.cli().unwrap(), "KILL");
        talk.failed(&Done::of(send), ("failed", "crashed", 1));
        told_and_not_run_again(&mut talk);
    }
}

/// As after a power cut, but that the machine is still there: nobody saw how it ended.
#[test]
fn everything_killed_at_once() {
    for tool in [false, true] {
        let begun = if tool { working("full") } else { answering() };
        let Some((mut talk, send)) = begun else {
            return;
        };
        let shim = talk.world.shim().unwrap();
        let cli = talk.world.cli().unwrap();
        stop(&send, "KILL");
        kill(shim, "KILL");
        kill(cli, "KILL");
        assert_eq!(Done::of(send).code, -9);
        let turn = settled_later(&talk.world);
        let expected = (&"lost".into(), &Value::Null);
        assert_eq!((&turn["status"], &turn["text"]), expected, "{turn}");
        talk.world.assert_quiet();
        talk.words.push(user(2));
        talk.unanswered += 1;
        if tool {
            told_and_not_run_again(&mut talk);
        } else {
            talk.good("resumed", &[]);
        }
    }
}

#[test]
fn send_killed_at_its_points() {
    let Some(world) = world() else { return };
    let mut talk = Talk::begin(world);
    talk.good("started", &TOOLS);
    let points = [
        ("after_accept", false),
        ("after_claim", false),
        ("after_look", false),
        ("before_begin", false),
        ("after_begin", false),
        ("after_spec", false),
        ("after_spawn", true),
        ("mid_stream", true),
        ("after_end", true),
        ("before_settle", true),
        ("after_read", true),
        ("before_finish", true),
    ];
    for (point, begun) in points {
        talk.n += 1;
        let n = talk.n;
        let script = format!("#s:a{n}");
        talk.world.set("REJOIN_FAIL", point);
        let died = talk.world.send(n, &script, &[]);
        talk.world.unset("REJOIN_FAIL");
        assert_eq!(died.code, -9, "{point}: {died:?}");
        let turn = wait_for("the turn to be settled or queued", 20, || {
            let _listed = talk.world.run(&["list"]).ok();
            let turn = talk.world.last_turn();
            (turn["status"] != "running").then_some(turn)
        });
        match turn["status"].as_str().unwrap() {
            "queued" => assert!(!begun || point == "after_spawn", "{point}: {turn}"),
            "succeeded" => assert!(begun && turn["text"] == answer(n), "{point}: {turn}"),
            _ => panic!("{point}: {turn}"),
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
