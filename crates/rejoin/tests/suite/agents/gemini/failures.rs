//! Turns that fail, are cancelled or run out of time: the next one resumes and shows everything once.

use rejoin_model::Step;
use rejoin_testkit::{Done, Talk, World, kill, runs, texts, wait_for};
use serde_json::Value;

use super::{STREAMS, begun, is_stuck, results, scripted, world};

#[test]
fn failed_turns_leave_the_session_as_it_was() {
    let Some(world) = world() else { return };
    let mut talk = begun(world, &[]);
    let cases = [
        ("#s:e400", "invalid_request", 1),
        ("#s:e401", "auth", 8),
        ("#s:e429", "quota", 9),
        ("#s:e500", "transient", 1),
        ("#s:e529", "transient", 1),
        ("#s:cut", "transient", 1),
    ];
    for (script, class, exit) in cases {
        talk.bad(script, &[], ("failed", class, exit));
        let next = talk.good("resumed", &[]);
        assert_eq!(next["sent"]["caught_up"], 1, "{script}: {next}");
    }
    let url = talk.world.env["GOOGLE_GEMINI_BASE_URL"].clone();
    talk.world
        .cli
        .point_at(&mut talk.world, "http://127.0.0.1:9");
    talk.bad("#s:a1", &[], ("failed", "transient", 1));
    talk.world.cli.point_at(&mut talk.world, &url);
    talk.good("resumed", &[]);
    // Too long for the window: going on with that session would fail again and again.
    talk.bad("#s:toolong", &[], ("failed", "context_overflow", 1));
    let next = talk.good("reseeded", &[]);
    assert_eq!(next["reason"], "session_retired");
    talk.good("resumed", &[]);
}

/// The id of a session whose first turn failed is used up: it can neither be resumed nor begun.
#[test]
fn a_first_turn_that_fails_is_told_to_the_second() {
    let Some(world) = world() else { return };
    let mut talk = Talk::begin(world);
    let failed = talk.bad("#s:e400", &super::FLASH, ("failed", "invalid_request", 1));
    let next = talk.good("reseeded", &[]);
    assert_eq!(next["reason"], "first_turn");
    assert_ne!(next["session_id"], failed["session_id"]);
    assert_eq!(talk.good("resumed", &[])["sent"]["resumed"], 3);
}

#[test]
fn a_turn_that_takes_too_long_is_ended() {
    let Some(world) = world() else { return };
    let mut talk = begun(world, &[]);
    let flags = ["--timeout", "6s"];
    talk.bad("#s:slow", &flags, ("failed", "time_limit", 124));
    talk.good("resumed", &[]);
}

/// Cancels turn 2 with a signal once it is under way; then everything is shown once.
fn cancelled(script: &str, signal: &str, under_way: impl Fn(&World) -> bool) -> Option<Talk> {
    let stuck = vec![runs("tail -f /dev/null & tail -f /etc/hostname; echo done")];
    let mut talk = begun(scripted([("stuck", stuck)])?, &["--tools", "shell"]);
    talk.n += 1;
    let send = talk.world.start(talk.n, script, &[]);
    wait_for("the turn to be under way", 40, || {
        under_way(&talk.world).then_some(())
    });
    kill(send.id() as i32, signal);
    let exit = if signal == "INT" { 130 } else { 143 };
    talk.failed(&Done::of(send), ("cancelled", "cancelled", exit));
    Some(talk)
}

fn streams(world: &World) -> bool {
    world.printed(STREAMS)
}

#[test]
fn ctrl_c_while_it_answers() {
    let Some(mut talk) = cancelled("#s:slow", "INT", streams) else {
        return;
    };
    assert_eq!(talk.good("resumed", &[])["sent"]["caught_up"], 1);
    talk.good("resumed", &[]);
}

#[test]
fn ctrl_c_while_its_tool_runs() {
    let Some(mut talk) = cancelled("#s:stuck", "INT", is_stuck) else {
        return;
    };
    talk.good("resumed", &[]);
    let said = texts(&talk.world.model.last());
    assert!(said.contains("(tools: "), "{said}");
    assert!(said.contains("tail -f /dev/null"), "{said}");
}

/// The CLI ends with code 0 and without a result: that is no success.
#[test]
fn sigterm_cancels_as_well() {
    let Some(mut talk) = cancelled("#s:slow", "TERM", streams) else {
        return;
    };
    talk.good("resumed", &[]);
}

/// Somebody else ends the CLI in a way it obeys: code 0, and half an answer.
#[test]
fn a_cli_that_was_told_to_end_has_not_answered() {
    let Some(world) = world() else { return };
    let mut talk = begun(world, &[]);
    talk.n += 1;
    let send = talk.world.start(talk.n, "#s:slow", &[]);
    wait_for("the answer to begin", 40, || {
        streams(&talk.world).then_some(())
    });
    kill(talk.world.cli().unwrap(), "TERM");
    let turn = talk.failed(&Done::of(send), ("failed", "interrupted", 130));
    assert_eq!(turn["text"], Value::Null);
    talk.good("resumed", &[]);
}

#[test]
fn what_a_failed_turn_did_is_told_and_not_done_again() {
    let side = vec![runs("echo x >> ran.txt"), Step::status(400)];
    let Some(world) = scripted([("side", side)]) else {
        return;
    };
    let mut talk = begun(world, &["--tools", "shell"]);
    let turn = talk.bad("#s:side", &[], ("failed", "invalid_request", 1));
    let summary = turn["summary"].as_str().unwrap();
    assert!(summary.contains("1 tool ran"), "{summary}");
    talk.good("resumed", &[]);
    let said = texts(&talk.world.model.last());
    assert!(said.contains("(tools: used echo x >> ran.txt)"), "{said}");
    // It is told, not replayed.
    assert_eq!(results(&talk.world), 0);
    talk.good("resumed", &[]);
    let ran = std::fs::read_to_string(talk.world.work().join("ran.txt")).unwrap();
    assert_eq!(ran, "x\n");
}
