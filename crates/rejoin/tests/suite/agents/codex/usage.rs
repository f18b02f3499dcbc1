//! Tokens are the turn's own (C-34, C-36, promise 8), though the CLI counts over the whole thread;
//! money it does not say.

use rejoin_model::{Step, StepUsage};
use rejoin_testkit::{Chronicle, Continued, Model, World, answering, costing, runs, steps};
use serde_json::{Value, json};

use super::{REJOIN, TOOLS, scripted, world};

fn tokens(turn: &Value) -> (u64, u64) {
    let count = |name: &str| turn["usage"][name].as_u64().unwrap();
    (count("input"), count("output"))
}

#[test]
fn ten_turns_sum_up_to_the_threads_total() {
    let model = || Model::scripted([]);
    let Some(world) = scripted(model) else { return };
    let mut story = Chronicle::new(world);
    let mut sum = (0, 0);
    for n in 1..=10 {
        let how = if n == 1 {
            Continued::Started
        } else {
            Continued::Resumed
        };
        let own = (1000 + 10 * n as u64, 20 + n as u64);
        let script = answering(story.next(), own.0, own.1);
        let turn = story.scripted(how, &script, &TOOLS);
        assert_eq!(tokens(&turn), own, "{turn:#}");
        assert_eq!(turn["cost_usd"], Value::Null);
        sum = (sum.0 + own.0, sum.1 + own.1);
        if n == 5 {
            // A call that is paid for, then a failure; it is cut back, and counted nowhere else.
            let call = serde_json::to_value(runs("true")).unwrap();
            let script = json!([costing(50_000, 7, &call), {"status": 400}]);
            let failed = story.fails(&steps(story.next(), &script), &TOOLS);
            assert_eq!(tokens(&failed), (50_000, 7), "{failed:#}");
        }
    }
    assert_eq!(story.sessions.len(), 1);
    let total = std::fs::read_to_string(story.session_file()).unwrap();
    let counted = total
        .lines()
        .rev()
        .find(|l| l.contains("\"token_count\""))
        .unwrap();
    let counted: Value = serde_json::from_str(counted).unwrap();
    let counted = &counted["payload"]["info"]["total_token_usage"];
    assert_eq!(counted["input_tokens"], sum.0);
    assert_eq!(counted["output_tokens"], sum.1);
}

/// `input` excludes what was cached.
#[test]
fn cached_tokens_are_told_apart() {
    let step = || Step {
        usage: Some(StepUsage {
            input_tokens: Some(100),
            cache_read_input_tokens: Some(2000),
            cache_creation_input_tokens: Some(30),
        }),
        ..Step::text(rejoin_testkit::answer(1))
    };
    let model = || Model::scripted([("cached", vec![step()])]);
    let Some(world) = scripted(model) else { return };
    let turn = world.send(1, "#s:cached", &TOOLS).ok().json();
    let usage = &turn["usage"];
    assert_eq!(
        (&usage["input"], &usage["cache_read"], &usage["cache_write"]),
        (&100.into(), &2000.into(), &30.into()),
        "{turn:#}"
    );
}

/// Without a store that knows the binary: it is proven before its first turn, away from the user's
/// home, and its counts are then known to be the thread's.
#[test]
fn proven_on_first_sight() {
    let Some(known) = world() else { return };
    let mut world = World::new(REJOIN);
    world.cli = known.cli;
    world.set("REJOIN_DEFAULT_AGENT", "codex");
    known.cli.set_up(&mut world);
    world.use_bin(&known.bin());
    let mut story = Chronicle::new(world);
    let first = story.scripted(Continued::Started, &answering(1, 500, 9), &[]);
    let second = story.scripted(Continued::Resumed, &answering(2, 300, 7), &[]);
    assert_eq!((tokens(&first), tokens(&second)), ((500, 9), (300, 7)));
    let proven = |check: &Value| check["check"] == "capability";
    let check = second["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|c| proven(c));
    let evidence = check.unwrap()["evidence"].as_str().unwrap();
    assert!(evidence.contains("proven"), "{evidence}");
    assert_eq!(story.world.sessions().len(), 1);
}
