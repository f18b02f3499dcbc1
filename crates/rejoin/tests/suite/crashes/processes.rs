//! The shim killed, the CLI killed, everything killed at once.

use std::process::Child;

use rejoin_testkit::{
    CLAUDE_NEW, CLAUDE_OLD, Done, Model, Talk, World, answer, kill, runs, slowly, sql, texts, user,
    wait_for,
};
use serde_json::Value;

use super::REJOIN;

/// Leaves a trace, then never ends; what follows `;` would be its second trace.
const STUCK: &str = "echo x >> ran.txt; tail -f /etc/hostname; echo y >> ran.txt";

/// A conversation with one turn done and a second one under way.
fn second_turn(
    version: &str,
    script: &str,
    begun: impl Fn(&World) -> bool,
) -> Option<(Talk, Child)> {
    let scripts = || {
        let late = vec![slowly(&answer(2), 15)];
        Model::scripted([("late", late), ("stuck", vec![runs(STUCK)])])
    };
    let mut talk = Talk::begin(World::claude_with(REJOIN, version, scripts)?);
    talk.good("started", &["-m", "sonnet", "--tools", "Bash"]);
    talk.n += 1;
    let send = talk.world.start(talk.n, script, &[]);
    wait_for("the turn to be under way", 20, || {
        begun(&talk.world).then_some(())
    });
    Some((talk, send))
}

fn streams(world: &World) -> bool {
    world.printed("text_delta")
}

fn is_stuck(world: &World) -> bool {
    world
        .pid_of(|command| command == "tail -f /etc/hostname ")
        .is_some()
}

/// The turn of a killed `send`, once a later command has settled it.
fn settled_later(world: &World) -> Value {
    wait_for("the turn to be settled", 20, || {
        let turn = world.last_turn();
        (turn["status"] != "running").then_some(turn)
    })
}

#[track_caller]
fn assert_answered(talk: &mut Talk, turn: &Value) {
    assert_eq!(
        (&turn["status"], &turn["text"]),
        (&"succeeded".into(), &answer(2).into()),
        "{turn}"
    );
    assert!(turn["cost_usd"].as_f64().unwrap() > 0.0, "{turn}");
    talk.words.extend([user(2), answer(2)]);
    talk.good("resumed", &[]);
    talk.world.assert_quiet();
}

/// A turn that nobody followed took as long as its run, not until a command settled it.
#[test]
fn a_killed_send_takes_as_long_as_its_run() {
    for kill_shim in [false, true] {
        let Some((mut talk, send)) = second_turn(CLAUDE_NEW, "#s:late", streams) else {
            return;
        };
        kill(send.id() as i32, "KILL");
        if kill_shim {
            kill(talk.world.shim().unwrap(), "KILL");
        }
        assert_eq!(Done::of(send).code, -9);
        wait_for("the CLI to end", 20, || {
            talk.world.cli().is_none().then_some(())
        });
        std::thread::sleep(std::time::Duration::from_secs(8));
        let turn = settled_later(&talk.world);
        let took = turn["duration_ms"].as_u64().unwrap();
        assert!((1000..8000).contains(&took), "{took} ms");
        assert_answered(&mut talk, &turn);
    }
}

/// The clock of the machine is set while a turn runs: its duration does not change. A step back by an hour and
/// a beginning an hour later are the same to a turn.
#[test]
fn a_clock_that_is_set_does_not_change_durations() {
    for (hours, kill_send) in [(1, false), (-1, false), (1, true), (-1, true)] {
        let Some((talk, send)) = second_turn(CLAUDE_NEW, "#s:late", streams) else {
            return;
        };
        let step = format!(
            "update turns set started_at = started_at + {} where status = 'running'",
            hours * 3_600_000_000_i64
        );
        sql(&talk.world.data().join("rejoin.db"), &step);
        let turn = if kill_send {
            kill(send.id() as i32, "KILL");
            assert_eq!(Done::of(send).code, -9);
            wait_for("the CLI to end", 20, || {
                talk.world.cli().is_none().then_some(())
            });
            settled_later(&talk.world)
        } else {
            Done::of(send).ok().json()
        };
        let took = turn["duration_ms"].as_u64().unwrap();
        assert!(
            (1000..20_000).contains(&took),
            "{took} ms, {hours} h, {kill_send}"
        );
    }
}

#[test]
fn without_its_shim_the_cli_finishes_into_its_files() {
    for version in [CLAUDE_OLD, CLAUDE_NEW] {
        let Some((mut talk, send)) = second_turn(version, "#s:late", streams) else {
            return;
        };
        kill(talk.world.shim().unwrap(), "KILL");
        let done = Done::of(send).ok();
        assert_answered(&mut talk, &done.json());
    }
}

#[test]
fn without_shim_and_send_the_next_command_settles_it() {
    for version in [CLAUDE_OLD, CLAUDE_NEW] {
        let Some((mut talk, send)) = second_turn(version, "#s:late", streams) else {
            return;
        };
        kill(send.id() as i32, "KILL");
        kill(talk.world.shim().unwrap(), "KILL");
        assert_eq!(Done::of(send).code, -9);
        assert!(
            talk.world.cli().is_some(),
            "it was over before it was looked at"
        );
        let turn = settled_later(&talk.world);
        assert_answered(&mut talk, &turn);
    }
}

#[test]
fn the_cli_killed_while_it_answers() {
    for version in [CLAUDE_OLD, CLAUDE_NEW] {
        let Some((mut talk, send)) = second_turn(version, "#s:late", streams) else {
            return;
        };
        kill(talk.world.cli().unwrap(), "KILL");
        let turn = talk.failed(&Done::of(send), ("failed", "crashed", 1));
        assert_eq!(turn["cost_usd"], Value::Null, "{turn}");
        talk.good("resumed", &[]);
    }
}

#[test]
fn the_cli_killed_while_its_tool_runs() {
    for version in [CLAUDE_OLD, CLAUDE_NEW] {
        let Some((mut talk, send)) = second_turn(version, "#s:stuck", is_stuck) else {
            return;
        };
        kill(talk.world.cli().unwrap(), "KILL");
        let turn = talk.failed(&Done::of(send), ("failed", "crashed", 1));
        assert_eq!(turn["cost_usd"], Value::Null, "{turn}");
        told_and_not_run_again(&mut talk);
    }
}

/// As after a power cut, but that the machine is still there: nobody saw how it ended.
#[test]
fn everything_killed_at_once() {
    for (version, script) in [(CLAUDE_OLD, "#s:stuck"), (CLAUDE_NEW, "#s:late")] {
        let begun = if script == "#s:late" {
            streams
        } else {
            is_stuck
        };
        let Some((mut talk, send)) = second_turn(version, script, begun) else {
            return;
        };
        let pids = [
            send.id() as i32,
            talk.world.shim().unwrap(),
            talk.world.cli().unwrap(),
        ];
        for pid in pids {
            kill(pid, "KILL");
        }
        assert_eq!(Done::of(send).code, -9);
        let turn = settled_later(&talk.world);
        assert_eq!(
            (&turn["status"], &turn["error"]["class"]),
            (&"lost".into(), &"lost".into())
        );
        assert_eq!(
            (&turn["cost_usd"], &turn["text"]),
            (&Value::Null, &Value::Null)
        );
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
