//! Claude Code asks: its own questions, and whether it may use a tool.

use rejoin_model::Step;
use rejoin_testkit::{CLAUDE_NEW, CLAUDE_OLD, Model, World, runs, texts};
use serde_json::Value;

use super::{REJOIN, answer, asking, asks, ended, inbox, only, quiet};

fn worlds() -> impl Iterator<Item = World> {
    [CLAUDE_OLD, CLAUDE_NEW].into_iter().filter_map(|version| {
        let again = "echo again >> ran.txt";
        let twice = vec![runs(again), runs(again), Step::text("Done.")];
        let world = World::claude_with(REJOIN, version, || Model::scripted([("twice", twice)]))?;
        Some(asking(world))
    })
}

/// How often the model was told something, at the end.
fn heard(world: &World, words: &str) -> usize {
    texts(&world.model.last()).matches(words).count()
}

/// A-03, A-52: questions work in a first turn and under resume alike.
#[test]
fn questions_are_answered_in_a_first_turn_and_under_resume() {
    for world in worlds() {
        for (verdict, script) in [("started", "#s:ask one"), ("resumed", "#s:ask two")] {
            let turn = asks(&world, script, &["-m", "sonnet"]);
            let question = only(&turn);
            assert_eq!(question["tool"], "AskUserQuestion", "{turn}");
            assert_eq!(question["questions"][1]["multi"], true, "{turn}");
            assert_eq!(question["questions"][0]["options"][1]["label"], "Blue");
            answer(&world, &["2", "1,3"]).ok();
            let turn = ended(&world);
            assert_eq!(turn["status"], "succeeded", "{turn}");
            assert_eq!(turn["verdict"], verdict, "{turn}");
            assert_eq!(turn["denied"], serde_json::json!([]), "{turn}");
            let text = turn["text"].as_str().unwrap();
            assert!(text.contains("Thanks for the answer."), "{turn}");
        }
        assert_eq!(heard(&world, r#""Which colour?"="Blue""#), 2);
        assert_eq!(heard(&world, r#""Which sizes?"="S, L""#), 2);
        quiet(&world);
    }
}

/// Promise 7: what a person decides counts for what was asked, and is asked again in the next turn.
#[test]
fn permissions_are_asked_for() {
    for world in worlds() {
        let ran = || std::fs::read_to_string(world.work().join("ran.txt")).unwrap_or_default();
        let asked = |turn: &Value| {
            let question = only(turn);
            assert_eq!(question["kind"], "approval", "{turn}");
            assert_eq!(question["tool"], "Bash", "{turn}");
        };
        let ask = ["-m", "sonnet", "--permission", "ask"];
        asked(&asks(&world, "#s:bash one", &ask));
        answer(&world, &["deny", "--text", "not on a Friday"]).ok();
        let turn = ended(&world);
        assert_eq!(turn["denied"].as_array().unwrap().len(), 1, "{turn}");
        assert_eq!(
            (heard(&world, "not on a Friday"), ran()),
            (1, String::new())
        );

        asked(&asks(&world, "#s:bash two", &[]));
        answer(&world, &["allow"]).ok();
        let turn = ended(&world);
        assert_eq!(turn["denied"], serde_json::json!([]), "{turn}");
        assert_eq!(ran(), "tool-ran\n");

        // Always: for the rest of this process, and no longer.
        for n in [2, 4] {
            asked(&asks(&world, &format!("#s:twice {n}"), &[]));
            answer(&world, &["always"]).ok();
            let turn = ended(&world);
            assert_eq!(turn["status"], "succeeded", "{turn}");
            assert_eq!(ran().matches("again").count(), n);
        }
        assert!(inbox(&world).is_empty());
        quiet(&world);
    }
}

#[test]
fn a_question_can_be_cancelled() {
    for world in worlds() {
        asks(&world, "#s:ask one", &["-m", "sonnet"]);
        world.run(&["cancel", "k"]).ok();
        let turn = ended(&world);
        assert_eq!(turn["status"], "cancelled", "{turn}");
        assert!(inbox(&world).is_empty());
        quiet(&world);
        let turn = world.say(2, &[]);
        assert_eq!(turn["status"], "succeeded", "{turn}");
    }
}
