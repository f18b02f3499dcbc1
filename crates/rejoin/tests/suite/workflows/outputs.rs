//! Answers that must match a schema.

use rejoin_model::Step;
use rejoin_testkit::{CLAUDE_325, Model, World, texts};
use serde_json::json;

use super::{REJOIN, run, step, succeed, write};

const JUDGE: &str = "prompt: \"judge #s:first\"\noutput:\n  type: object\n  required: [verdict]\n  properties: { verdict: { enum: [approve, change] } }\n";

/// The words of the validator become the next message, which names the second script.
fn world(second: &str) -> World {
    let model = Model::scripted([
        (
            "first",
            vec![Step::text("```json\n{\"verdict\": \"#s:second\"}\n```")],
        ),
        ("second", vec![Step::text(second)]),
    ]);
    let mut world = World::of_all(REJOIN, &[&CLAUDE_325], model).unwrap();
    world.set("REJOIN_DEFAULT_AGENT", "claude");
    world
}

/// A second answer in the same session, and its value in a condition.
#[test]
fn an_invalid_answer_is_asked_for_again() {
    let world = world("Sorry.\n```json\n{\"verdict\": \"change\"}\n```");
    let fix = "needs: [judge]\nwhen: steps.judge.output.verdict == \"change\"\nrun: [\"echo\", \"fixing\"]\n";
    write(&world, "", &[("judge", JUDGE), ("fix", fix)]);
    let view = succeed(&world, &[]);
    let judge = step(&view, "judge");
    assert_eq!(judge["output"], json!({"verdict": "change"}));
    assert_eq!(
        (&judge["attempts"], &judge["verdict"]),
        (&2.into(), &"resumed".into())
    );
    assert_eq!(step(&view, "fix")["text"], "fixing\n");
    let shown = texts(&world.model.last());
    assert!(shown.contains("does not match the JSON Schema"), "{shown}");
    assert_eq!(shown.matches("judge #s:first").count(), 1, "{shown}");
}

/// Two invalid answers end the step; the error shows both.
#[test]
fn two_invalid_answers_fail() {
    let world = world("no JSON at all");
    write(&world, "", &[("judge", JUDGE)]);
    let (view, code) = run(&world, &[]);
    assert_eq!(code, 1, "{view:#}");
    let error = &step(&view, "judge")["error"];
    assert_eq!(error["class"], "invalid_output");
    let message = error["message"].as_str().unwrap();
    for part in ["#s:second", "no JSON at all"] {
        assert!(message.contains(part), "{message}");
    }
}
