//! Words said by hand while a turn runs on the same session.

use std::process::Output;

use rejoin_model::Step;
use rejoin_testkit::{
    CLAUDE_197, CLAUDE_325, CODEX_166, Cli, Done, GEMINI_061, Model, OPENCODE, World, answer,
    slowly, texts, user, wait_for,
};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// A user says something between the request of a turn and its answer. Returns what the CLI said to
/// that.
fn said_during_a_turn(cli: &'static dyn Cli) -> Option<(World, Output)> {
    // Eight seconds: each CLI says something by hand in less.
    let late = || Step {
        delay_ms: Some(500),
        ..slowly(&answer(2), 16)
    };
    let model = || Model::scripted([("late", vec![late()])]);
    let world = World::with(REJOIN, cli, model)?;
    let model = cli.models()[0];
    let first = world.say(1, &["-m", model]);
    let session = first["session_id"].as_str().unwrap().to_owned();
    let before = world.model.requests().len();
    let mut turn = world.start(2, "#s:late", &["-m", model]);
    wait_for("the request of the turn", 20, || {
        (world.model.requests().len() > before).then_some(())
    });
    let by_hand = world.by_hand(&session, &format!("{} #s:a3", user(3)));
    assert_eq!(turn.try_wait().unwrap(), None, "the turn ended too early");
    let turn = Done::of(turn);
    assert_eq!(turn.code, 0, "{turn:?}");
    Some((world, by_hand))
}

/// With a CLI that keeps branches these words lie on one that it does not continue. Every word is
/// shown once, in the order in which it was said.
fn words_said_during_a_turn_are_shown_once(cli: &'static dyn Cli) {
    let Some((world, by_hand)) = said_during_a_turn(cli) else {
        return;
    };
    let model = cli.models()[0];
    assert!(by_hand.status.success(), "{by_hand:?}");
    for n in 4..=5 {
        let last = world.say(n, &["-m", model]);
        let shown = texts(&world.model.last());
        let counts = |word: fn(usize) -> String, n| -> Vec<usize> {
            (1..=n).map(|n| shown.matches(&word(n)).count()).collect()
        };
        assert_eq!(counts(user, n), vec![1; n], "prompts in turn {n}");
        assert_eq!(counts(answer, n - 1), vec![1; n - 1], "answers in turn {n}");
        if n == 5 {
            assert_eq!(last["verdict"], "resumed", "{last:#}");
        }
    }
    let shown = world.run(&["show", "k"]).ok().stdout;
    let at = |word: String| shown.find(&word).unwrap_or_else(|| panic!("{shown}"));
    let order = [
        user(1),
        answer(1),
        user(2),
        answer(2),
        user(3),
        answer(3),
        user(4),
    ]
    .map(at);
    assert!(order.is_sorted(), "{shown}");
}

#[test]
fn with_claude_2_1_197() {
    words_said_during_a_turn_are_shown_once(&CLAUDE_197);
}

#[test]
fn with_claude_2_1_325() {
    words_said_during_a_turn_are_shown_once(&CLAUDE_325);
}

/// Codex lets only one process write a session.
#[test]
fn codex_refuses_them() {
    let Some((world, by_hand)) = said_during_a_turn(&CODEX_166) else {
        return;
    };
    let error = String::from_utf8_lossy(&by_hand.stderr).into_owned();
    assert!(error.contains("already has an active writer"), "{error}");
    let next = world.say(3, &["-m", CODEX_166.models()[0]]);
    assert_eq!(next["verdict"], "resumed", "{next:#}");
}

#[test]
#[ignore = "only with --long"]
fn with_opencode() {
    words_said_during_a_turn_are_shown_once(&OPENCODE);
}

#[test]
fn with_gemini() {
    words_said_during_a_turn_are_shown_once(&GEMINI_061);
}
