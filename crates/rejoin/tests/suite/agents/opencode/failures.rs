//! A turn that fails, runs out of time or is cancelled: its message stays, unanswered; the next
//! turn resumes the session as it was and shows everything once.

use rejoin_model::Step;
use rejoin_testkit::{Cli as _, Done, OPENCODE, Talk, kill, runs, texts};
use serde_json::Value;

use super::{begun, scripted, second_turn, world};

#[track_caller]
fn fail_and_resume(cases: &[(&str, &str, i32)]) -> Option<Talk> {
    let mut talk = begun(world()?, &[]);
    for (script, class, exit) in cases {
        talk.bad(script, &[], ("failed", class, *exit));
        let next = talk.good("resumed", &[]);
        assert_eq!(next["sent"]["caught_up"], 1, "{script}: {next}");
    }
    Some(talk)
}

#[test]
fn refused_requests() {
    let cases = [("#s:e400", "invalid_request", 1), ("#s:e401", "auth", 8)];
    let Some(mut talk) = fail_and_resume(&cases) else {
        return;
    };
    // Too long for the window: going on with that session would fail again and again.
    talk.bad("#s:toolong", &[], ("failed", "context_overflow", 1));
    let next = talk.good("reseeded", &[]);
    assert_eq!(next["reason"], "session_retired");
}

/// The CLI tries five times more by itself, and heeds `retry-after`: here a second each.
#[test]
fn limits_and_overload() {
    let cases = [("#s:e429", "quota", 9), ("#s:e529", "transient", 1)];
    let _done = fail_and_resume(&cases);
}

/// An answer that ends without an end makes the CLI ask again, three times a second, for ever.
#[test]
fn answers_without_an_end() {
    let unfinished = Step {
        unfinished: true,
        ..Step::text("This answer lacks its end.")
    };
    let Some(world) = scripted([("endless", vec![unfinished; 50])]) else {
        return;
    };
    let mut talk = begun(world, &[]);
    talk.bad("#s:endless", &[], ("failed", "transient", 1));
    assert!(talk.world.model.requests().len() < 50, "it was not stopped");
    talk.good("resumed", &[]);
}

/// A connection that breaks off in the middle of every answer.
#[test]
#[ignore = "only with --long"]
fn an_answer_that_breaks_off() {
    let _done = fail_and_resume(&[("#s:cut", "transient", 1)]);
}

/// The CLI would wait for as long as it is told to, up to 24 days, without a word.
#[test]
#[ignore = "only with --long"]
fn an_api_that_says_come_back_tomorrow() {
    let tomorrow = Step {
        retry_after: Some(86_400),
        message: Some("rate limited".into()),
        ..Step::status(429)
    };
    let Some(world) = scripted([("later", vec![tomorrow])]) else {
        return;
    };
    let mut talk = begun(world, &[]);
    talk.bad("#s:later", &[], ("failed", "quota", 9));
    talk.good("resumed", &[]);
}

/// Nobody listens: the CLI tries for 72 s, without a word, and nothing can shorten that.
#[test]
#[ignore = "only with --long"]
fn a_refused_connection() {
    let Some(world) = world() else { return };
    let mut talk = begun(world, &[]);
    let url = talk.world.model.url.clone();
    OPENCODE.point_at(&mut talk.world, "http://127.0.0.1:9");
    talk.bad("#s:a1", &[], ("failed", "transient", 1));
    OPENCODE.point_at(&mut talk.world, &url);
    talk.good("resumed", &[]);
}

#[test]
fn a_first_turn_that_fails_is_told_to_the_second() {
    let Some(world) = world() else { return };
    let mut talk = Talk::begin(world);
    talk.bad("#s:e400", &[], ("failed", "invalid_request", 1));
    assert_eq!(talk.good("reseeded", &[])["reason"], "first_turn");
    assert_eq!(talk.good("resumed", &[])["sent"]["resumed"], 3);
}

#[test]
fn a_turn_that_takes_too_long_is_ended() {
    let Some(world) = world() else { return };
    let mut talk = begun(world, &[]);
    let flags = ["--timeout", "6s"];
    let turn = talk.bad("#s:hang", &flags, ("failed", "time_limit", 124));
    assert_eq!(turn["cost_usd"], Value::Null, "{turn}");
    talk.good("resumed", &[]);
}

fn cancelled(script: &str, signal: &str) -> Option<Talk> {
    let (mut talk, send) = second_turn(script)?;
    kill(send.id() as i32, signal);
    let exit = if signal == "INT" { 130 } else { 143 };
    let turn = talk.failed(&Done::of(send), ("cancelled", "cancelled", exit));
    assert_eq!(turn["cost_usd"], Value::Null, "{turn}");
    let next = talk.good("resumed", &[]);
    assert_eq!(next["sent"]["caught_up"], 1);
    Some(talk)
}

#[test]
fn ctrl_c_while_it_answers() {
    let _done = cancelled("late", "INT");
}

#[test]
fn sigterm_cancels_as_well() {
    let _done = cancelled("late", "TERM");
}

/// The stream says nothing of a tool that has only begun; the session does.
#[test]
fn ctrl_c_while_its_tool_runs() {
    let Some(talk) = cancelled("stuck", "INT") else {
        return;
    };
    let said = texts(&talk.world.model.last());
    assert!(said.contains("(tools: started echo x >> ran.txt"), "{said}");
    assert!(said.contains("(outcome unknown)"), "{said}");
}

#[test]
fn what_a_failed_turn_did_is_told_and_not_done_again() {
    let side = vec![runs("echo x >> ran.txt"), Step::status(400)];
    let Some(world) = scripted([("side", side)]) else {
        return;
    };
    let mut talk = begun(world, &super::SHELL);
    let turn = talk.bad("#s:side", &[], ("failed", "invalid_request", 1));
    let summary = turn["summary"].as_str().unwrap();
    assert!(summary.contains("1 tool ran"), "{summary}");
    talk.good("resumed", &[]);
    let said = texts(&talk.world.model.last());
    assert!(said.contains("(tools: used echo x >> ran.txt)"), "{said}");
    let ran = std::fs::read_to_string(talk.world.work().join("ran.txt")).unwrap();
    assert_eq!(ran, "x\n");
}

/// The session says itself where it belongs, and was taken back together with that.
#[test]
fn a_turn_that_fails_elsewhere_leaves_the_session_at_home() {
    let Some(world) = world() else { return };
    let elsewhere = world.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let (home, elsewhere) = (world.work(), elsewhere.to_str().unwrap().to_owned());
    let mut talk = begun(world, &[]);
    let flags = ["-w", elsewhere.as_str(), "--relocate"];
    talk.bad("#s:e400", &flags, ("failed", "invalid_request", 1));
    let back = ["-w", home.to_str().unwrap(), "--timeout", "60s"];
    talk.good("resumed", &back);
}
