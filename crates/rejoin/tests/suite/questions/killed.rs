//! Whoever follows a turn that waits may die, and so may whoever answers; nothing is said twice.

use rejoin_testkit::{CLAUDE_NEW, CLAUDE_OLD, World, kill, texts, wait_for};

use super::{REJOIN, answer, asking, asks, demo, ended, inbox, only, quiet};

/// Places at which `rejoin answer` is killed.
pub(crate) const POINTS: [&str; 2] = ["before_answered", "after_answered"];

/// Kills whoever follows the turn.
pub(super) fn nobody_follows(world: &World) {
    let follower = wait_for("somebody to follow it", 20, || {
        world.pid_of(|command| command.contains(" run-turn "))
    });
    kill(follower, "KILL");
    // An answer may have brought a second one, which waits for the first.
    wait_for("it to be gone", 20, || {
        let Some(left) = world.pid_of(|command| command.contains(" run-turn ")) else {
            return Some(());
        };
        if left != follower {
            kill(left, "KILL");
        }
        None
    });
}

/// Killed with kill -9 while a question is pending; answered by a second process, settled by a third.
/// Nobody was connected to its shim meanwhile.
#[test]
fn whoever_follows_is_killed_and_the_model_hears_the_answer_once() {
    for version in [CLAUDE_OLD, CLAUDE_NEW] {
        let Some(world) = World::claude(REJOIN, version) else {
            return;
        };
        let world = asking(world);
        asks(&world, "#s:ask one", &["-m", "sonnet"]);
        nobody_follows(&world);
        assert_eq!(world.last_turn()["status"], "waiting");
        answer(&world, &["1", "2"]).ok();
        // Also the one that passes it on may go.
        let follower = world.pid_of(|command| command.contains(" run-turn "));
        if let Some(pid) = follower {
            kill(pid, "KILL");
        }
        let turn = ended(&world);
        assert_eq!(turn["status"], "succeeded", "{turn}");
        let told = texts(&world.model.last());
        assert_eq!(
            told.matches(r#""Which colour?"="Red""#).count(),
            1,
            "{told}"
        );
        assert_eq!(
            world
                .model
                .requests()
                .iter()
                .filter(|r| r.script.is_some())
                .count(),
            2
        );
        quiet(&world);
    }
}

/// Whoever comes next reads the run from its beginning, and finds an answer that was passed on before:
/// written again, it would be taken for the answer to what is asked next.
#[test]
fn an_answer_that_was_passed_on_is_not_passed_on_again() {
    let world = demo();
    asks(&world, "approve: one\napprove: two", &["-a", "demo"]);
    answer(&world, &["deny", "--text", "not this"]).ok();
    wait_for("the second question", 20, || {
        let waiting = inbox(&world);
        let second = waiting.first()?["questions"][0]["input"]["command"] == "two";
        second.then_some(())
    });
    nobody_follows(&world);
    // Each of these looks after it.
    for _ in 0..3 {
        assert_eq!(world.last_turn()["status"], "waiting");
    }
    answer(&world, &["allow"]).ok();
    let turn = ended(&world);
    let text = turn["text"].as_str().unwrap();
    let both = "You said no (not this). You allowed it.";
    assert!(text.starts_with(both), "{text}");
    quiet(&world);
}

/// It asks while nobody listens at all: the next command finds it.
#[test]
fn what_is_asked_while_nobody_follows_is_found() {
    let world = demo();
    asks(&world, "approve: rm -r x", &["-a", "demo"]);
    nobody_follows(&world);
    let spec = world.turn_folders().into_iter().find_map(|turn| {
        let mut runs = std::fs::read_dir(turn).unwrap().flatten();
        runs.find_map(|run| std::fs::read_to_string(run.path().join("spec.json")).ok())
    });
    // Its stdin is not closed because nobody is connected.
    let spec = spec.unwrap();
    assert!(spec.contains(r#""orphan_ms":null"#), "{spec}");
    rejoin_testkit::sql(&world.data().join("rejoin.db"), "delete from questions");
    rejoin_testkit::sql(
        &world.data().join("rejoin.db"),
        "update turns set status = 'running'",
    );
    rejoin_testkit::sql(
        &world.data().join("rejoin.db"),
        "update attempts set spool = 0",
    );
    assert_eq!(inbox(&world).len(), 1);
    answer(&world, &["allow"]).ok();
    assert_eq!(ended(&world)["status"], "succeeded");
    quiet(&world);
}

#[test]
fn an_answer_counts_from_its_commit_on() {
    for point in POINTS {
        let mut world = demo();
        let turn = asks(&world, "ask: Which? Red | Blue", &["-a", "demo"]);
        nobody_follows(&world);
        world.set("REJOIN_FAIL", point);
        assert_eq!(answer(&world, &["k", "1"]).code, -9, "{point}");
        world.unset("REJOIN_FAIL");
        if point == "before_answered" {
            let waiting = inbox(&world);
            assert_eq!(waiting[0]["questions"][0]["id"], only(&turn)["id"]);
            answer(&world, &["k", "1"]).ok();
        }
        let turn = ended(&world);
        let text = turn["text"].as_str().unwrap();
        assert!(text.starts_with("You answered Red."), "{point}: {text}");
        quiet(&world);
    }
}

/// The agent itself is gone: its turn is lost, its question is shown, and the answer is a message.
#[test]
fn an_answer_to_nobody_is_a_message() {
    let world = demo();
    asks(&world, "ask: Which? Red | Blue", &["-a", "demo"]);
    let agent = world.pid_of(|command| command.contains(" demo-agent "));
    kill(agent.unwrap(), "KILL");
    let turn = ended(&world);
    assert_eq!(turn["status"], "lost", "{turn}");
    assert_eq!(only(&turn)["state"], "gone", "{turn}");
    assert_eq!(inbox(&world)[0]["status"], "lost");
    assert_eq!(answer(&world, &["5"]).code, 2);
    let turn = answer(&world, &["k", "2"]).ok().json();
    assert_eq!(turn["status"], "succeeded", "{turn}");
    let messages = world.messages();
    let (_, _, said) = &messages[messages.len() - 2];
    assert_eq!(said, "You had asked: Which?\nMy answer: Blue");
    assert!(inbox(&world).is_empty());
    quiet(&world);
}

/// The same with Claude Code, its CLI, its follower and its home gone: the session of the turn before
/// is restored, and the model is told what it had asked and what the answer is, once.
#[test]
fn a_question_outlives_its_cli_and_its_home() {
    for version in [CLAUDE_OLD, CLAUDE_NEW] {
        let Some(world) = World::claude(REJOIN, version) else {
            return;
        };
        let world = asking(world);
        let first = world.say(1, &["-m", "sonnet"]);
        assert_eq!(first["saved"], "stored", "{first}");
        asks(&world, "#s:ask please", &[]);
        nobody_follows(&world);
        kill(world.cli().unwrap(), "KILL");
        let turn = ended(&world);
        assert_eq!(turn["status"], "lost", "{turn}");
        assert_eq!(turn["cost_usd"], serde_json::Value::Null, "{turn}");
        assert_eq!(only(&turn)["tool"], "AskUserQuestion", "{turn}");
        std::fs::remove_dir_all(world.home().join(".claude/projects")).unwrap();
        let turn = answer(&world, &["2", "1,3"]).ok().json();
        assert_eq!(turn["verdict"], "restored", "{turn}");
        let told = texts(&world.model.last());
        for once in [
            "Which colour?\nMy answer: Blue",
            "Which sizes?\nMy answer: S, L",
            "#s:ask please",
        ] {
            assert_eq!(told.matches(once).count(), 1, "{once}: {told}");
        }
        assert!(inbox(&world).is_empty());
        quiet(&world);
    }
}
