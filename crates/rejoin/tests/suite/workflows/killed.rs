//! kill -9 of the process that runs a workflow, at any instant: every step is done once.

use std::time::Duration;

use rejoin_testkit::World;
use serde_json::Value;

use crate::suite::walks::Dice;

use super::{REJOIN, step, write};

/// Twelve steps: parallel branches, a loop, items and an approval. Commands leave a line each.
fn twelve_steps(world: &World) {
    let log = |word: &str| format!("shell: 'echo {word} >> log'\n");
    write(
        world,
        "defaults: { agent: demo }\n",
        &[
            ("plan", "prompt: plan it\n"),
            ("left", "needs: [plan]\nprompt: left\n"),
            ("right", "needs: [plan]\nprompt: right\n"),
            ("mark", &format!("needs: [left]\n{}", log("mark"))),
            (
                "left2",
                "continue_from: left\nneeds: [mark]\nprompt: \"{{ steps.left.text }}\"\n",
            ),
            ("copy", "fork_from: right\nprompt: copy\n"),
            (
                "each",
                "needs: [left2, copy]\nfor_each: \"[1, 2, 3]\"\nshell: 'echo each$N >> log'\nenv: { N: \"{{ item }}\" }\n",
            ),
            ("fix", "continue_from: plan\nneeds: [each]\nprompt: fix\n"),
            (
                "test",
                "needs: [fix]\nshell: 'echo test >> log; test $(grep -c test log) -ge 3'\nloop: { back_to: fix, while: \"steps.test.exit_code != 0\", max: 5 }\n",
            ),
            ("ask", "needs: [test]\napprove: go on?\n"),
            ("last", &format!("needs: [ask]\n{}", log("last"))),
            ("end", "continue_from: fix\nneeds: [last]\nprompt: end\n"),
        ],
    );
}

/// Asserts that every step was done once.
fn assert_done_once(world: &World, view: &Value) {
    assert_eq!(view["status"], "succeeded", "{view:#}");
    let log = std::fs::read_to_string(world.work().join("log")).unwrap();
    let mut lines: Vec<&str> = log.lines().collect();
    lines.sort_unstable();
    let expected = [
        "each1", "each2", "each3", "last", "mark", "test", "test", "test",
    ];
    assert_eq!(lines, expected, "{view:#}");
    for (id, attempts) in [
        ("plan", 1),
        ("left", 1),
        ("right", 1),
        ("left2", 1),
        ("copy", 1),
        ("fix", 3),
        ("end", 1),
    ] {
        assert_eq!(step(view, id)["attempts"], attempts, "{id} in {view:#}");
    }
    let c = step(view, "plan")["conversation_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let shown = world.run(&["show", &c, "--json"]).ok().json();
    let said: Vec<&str> = (shown["messages"].as_array().unwrap().iter())
        .filter(|m| m["role"] == "user")
        .map(|m| m["text"].as_str().unwrap())
        .collect();
    assert_eq!(said, ["plan it", "fix", "fix", "fix", "end"]);
}

/// Runs the workflow until it ends, and kills its process after a random time as often as `kills`. After
/// the approval it goes on on the machine `then`.
pub(super) fn killed_and_resumed(world: &mut World, dice: &mut Dice, kills: usize, then: &str) {
    twelve_steps(world);
    let file = world.work().join("t.yaml").to_str().unwrap().to_owned();
    let work = world.work().to_str().unwrap().to_owned();
    let mut args = vec!["workflow", "run", &file, "-k", "w", "-w", &work, "--json"];
    let mut killed = 0;
    loop {
        let mut child = world.spawn(&args);
        if killed < kills {
            std::thread::sleep(Duration::from_millis(dice.roll(700) as u64));
            killed += 1;
            child.kill().unwrap();
            let _gone = child.wait();
            if world.run(&["workflow", "show", "w"]).code == 0 {
                args = vec!["workflow", "resume", "w", "--json"];
            }
            continue;
        }
        let done = rejoin_testkit::Done::of(child);
        match done.code {
            7 => {
                let view = done.json();
                let turn = step(&view, "ask")["turn_id"].as_str().unwrap().to_owned();
                if !then.is_empty() {
                    world.go_to(then);
                }
                world.run(&["answer", &turn, "allow"]).ok();
                args = vec!["workflow", "resume", "w", "--json"];
            }
            0 => {
                if !then.is_empty() {
                    world.go_to("");
                }
                return assert_done_once(world, &done.json());
            }
            code => panic!("exit code {code}: {}", done.stderr),
        }
    }
}

/// 50 instants in the long run, 12 in CI.
#[test]
fn every_step_is_done_once_through_kills() {
    let long = std::env::var_os("REJOIN_WALK_STEPS").is_some();
    let mut dice = Dice(20_261_119);
    let mut left = if long { 50 } else { 12 };
    while left > 0 {
        let mut world = World::new(REJOIN);
        let kills = left.min(6);
        killed_and_resumed(&mut world, &mut dice, kills, "");
        left -= kills;
    }
}
