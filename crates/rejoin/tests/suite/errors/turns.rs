//! Each class of a turn that failed: the line for people, the error in its JSON, the exit code; by
//! the real CLI.

use std::path::Path;

use insta::assert_snapshot;
use rejoin_model::Step;
use rejoin_testkit::{CLAUDE_OLD, Done, Model, World, answering, kill, slowly, wait_for};
use serde_json::Value;

use super::REJOIN;
use crate::suite::terminal::{Terminal, masked, steady, world};

/// A message to `k` whose turn fails, as it is printed and as `wait --json` tells it again.
#[track_caller]
pub(super) fn failing(world: &World, script: &str, flags: &[&str]) -> String {
    let text = format!("go on {script}");
    let args = [&["send", "-k", "k"], flags, &["--", &text]].concat();
    failed(world, &world.run(&args))
}

#[track_caller]
fn failed(world: &World, done: &Done) -> String {
    let again = world.run(&["wait", "k"]);
    let json = world.run(&["wait", "k", "--json"]);
    assert_eq!(done.stdout, "", "{done:?}");
    assert_eq!((done.code, &done.stderr), (again.code, &again.stderr));
    assert_eq!((done.code, ""), (json.code, json.stderr.as_str()));
    let turn = json.json();
    assert_eq!(
        done.stderr,
        format!("{}\n", turn["summary"].as_str().unwrap())
    );
    told(world, done.code, &turn)
}

/// The turn's line and its error, without what differs from run to run.
pub(in crate::suite) fn told(world: &World, code: i32, turn: &Value) -> String {
    let text = format!(
        "exit {code}, turn {}\n{}\n{:#}",
        turn["error"]["class"].as_str().unwrap(),
        turn["summary"].as_str().unwrap(),
        turn["error"]
    );
    let address = world.model.url.trim_start_matches("http://");
    let text = masked(world, &text).replace(address, "127.0.0.1:80");
    // A CLI that is stopped early has not said yet which model that is.
    text.replace("claude-sonnet-5", "sonnet")
}

/// The line of a turn without quota, as the contract has it, and its next step: typed, it works.
#[test]
fn the_line_of_a_turn_without_quota_ends_with_what_works() {
    let spent = Step {
        message: Some("Claude AI usage limit reached|1763218800".to_owned()),
        ..Step::status(429)
    };
    let model = || Model::scripted([("spent", vec![spent])]);
    let Some(world) = World::claude_with(REJOIN, CLAUDE_OLD, model) else {
        return;
    };
    world.say(1, &["-m", "sonnet"]);
    let done = world.run(&["send", "-k", "k", "go on #s:spent"]);
    assert_eq!(done.code, 9, "{done:?}");
    let pieces: Vec<&str> = done.stderr.trim_end().split(" · ").collect();
    let [failed, why, kept, agent, next] = pieces[..] else {
        panic!("{pieces:?}");
    };
    assert!(failed.starts_with("rejoin: failed, quota: "), "{failed}");
    assert!(why.ends_with(" resets 2025-11-15 15:00 UTC"), "{why}");
    let message = kept.strip_suffix(" kept, no tool ran").unwrap();
    assert!(message.ends_with(":3"), "{message}");
    assert_eq!(agent, "claude claude-sonnet-5");
    assert_eq!(next, format!("rejoin retry {message}, or -a codex"));
    let again = world.run(&["retry", message, "-a", "demo", "--json"]).ok();
    assert_eq!(again.json()["status"], "succeeded", "{again:?}");
}

#[test]
fn what_the_api_answers() {
    let said = |status, text: &str| {
        let message = Some(text.to_owned());
        vec![Step {
            message,
            ..Step::status(status)
        }]
    };
    let poison = said(
        400,
        "messages.3: `tool_use` ids were found without `tool_result` blocks",
    );
    let spent = said(429, "Claude AI usage limit reached|1763218800");
    let model = || Model::scripted([("poison", poison), ("spent", spent)]);
    let Some(world) = World::claude_with(REJOIN, CLAUDE_OLD, model).map(steady) else {
        return;
    };
    world.say(1, &["-m", "sonnet"]);
    assert_snapshot!(failing(&world, "#s:e529", &[]), @r#"
    exit 1, turn transient
    rejoin: failed, transient: the API could not be reached or failed: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:80). · tmqx:3 kept, no tool ran · claude sonnet · rejoin send -c tmqx "please go on"
    {
      "class": "transient",
      "message": "the API could not be reached or failed: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:80).",
      "try": "rejoin send -c tmqx \"please go on\""
    }
    "#);
    assert_snapshot!(failing(&world, "#s:e401", &[]), @r#"
    exit 8, turn auth
    rejoin: failed, auth: the login is missing or was refused: Invalid API key · Fix external API key · tmqx:4 kept, no tool ran · claude sonnet · rejoin doctor
    {
      "class": "auth",
      "message": "the login is missing or was refused: Invalid API key · Fix external API key",
      "try": "rejoin doctor"
    }
    "#);
    assert_snapshot!(failing(&world, "#s:e400", &[]), @r#"
    exit 1, turn invalid_request
    rejoin: failed, invalid_request: the API refused the request: 400 bad request made up · tmqx:5 kept, no tool ran · claude sonnet · rejoin explain tmqx
    {
      "class": "invalid_request",
      "message": "the API refused the request: 400 bad request made up",
      "try": "rejoin explain tmqx"
    }
    "#);
    assert_snapshot!(failing(&world, "#s:spent", &[]), @r#"
    exit 9, turn quota
    rejoin: failed, quota: Request rejected (429) · Claude AI usage limit reached, resets 2025-11-15 15:00 UTC · tmqx:6 kept, no tool ran · claude sonnet · rejoin retry tmqx:6, or -a codex
    {
      "class": "quota",
      "message": "Request rejected (429) · Claude AI usage limit reached, resets 2025-11-15 15:00 UTC",
      "try": "rejoin retry tmqx:6, or -a codex"
    }
    "#);
    assert_snapshot!(failing(&world, "#s:poison", &[]), @r#"
    exit 1, turn poisoned
    rejoin: failed, poisoned: the API refuses what is in the session: 400 messages.3: `tool_use` ids were found without `tool_result` blocks · tmqx:7 kept, no tool ran · claude sonnet · rejoin send -c tmqx "please go on"
    {
      "class": "poisoned",
      "message": "the API refuses what is in the session: 400 messages.3: `tool_use` ids were found without `tool_result` blocks",
      "try": "rejoin send -c tmqx \"please go on\""
    }
    "#);
    // The real CLI counts for itself what it thinks the conversation takes.
    let text = failing(&world, "#s:toolong", &[]);
    let (before, counted) = text.split_once("but this conversation is only ~").unwrap();
    let counted = counted.split(' ').next().unwrap().to_owned();
    assert!(before.starts_with("exit 1"), "{before}");
    assert_snapshot!(text.replace(&format!("~{counted} "), "~N "), @r#"
    exit 1, turn context_overflow
    rejoin: failed, context_overflow: the session does not fit the model's context: Prompt is too long · the request is ~208310 tokens (limit 200000) but this conversation is only ~N tokens — the rest is system prompt, tool definitions, and attachment content. A single-exchange conversation cannot be compacted; reduce attached files/tools or start with less context. · tmqx:8 kept, no tool ran · claude sonnet · rejoin send -c tmqx "please go on"
    {
      "class": "context_overflow",
      "message": "the session does not fit the model's context: Prompt is too long · the request is ~208310 tokens (limit 200000) but this conversation is only ~N tokens — the rest is system prompt, tool definitions, and attachment content. A single-exchange conversation cannot be compacted; reduce attached files/tools or start with less context.",
      "try": "rejoin send -c tmqx \"please go on\""
    }
    "#);
}

#[test]
fn limits() {
    let Some(world) = World::claude(REJOIN, CLAUDE_OLD).map(steady) else {
        return;
    };
    world.say(1, &["-m", "sonnet"]);
    assert_snapshot!(failing(&world, "#s:hang", &["--timeout", "1s"]), @r#"
    exit 124, turn time_limit
    rejoin: failed, time_limit: it took longer than allowed · tmqx:3 kept, no tool ran · claude sonnet · rejoin send -c tmqx --timeout LONGER "please go on"
    {
      "class": "time_limit",
      "message": "it took longer than allowed",
      "try": "rejoin send -c tmqx --timeout LONGER \"please go on\""
    }
    "#);
    let dear = answering(2, 10, 100_000);
    assert_snapshot!(failing(&world, &dear, &["--max-cost", "0.01"]), @r#"
    exit 124, turn cost_limit
    rejoin: failed, cost_limit: it used all the money it was allowed · tmqx:4 kept, no tool ran · claude sonnet · rejoin send -c tmqx --max-cost MORE "please go on"
    {
      "class": "cost_limit",
      "message": "it used all the money it was allowed",
      "try": "rejoin send -c tmqx --max-cost MORE \"please go on\""
    }
    "#);
    if let Some(terminal) = Terminal::open(&world) {
        assert_snapshot!(masked(&world, &terminal.run("rejoin wait k")), @r#"
        $ rejoin wait k
        answerword-2-end
        error: it used all the money it was allowed (tmqx:4 kept, no tool ran)
          try: rejoin send -c tmqx --max-cost MORE "please go on"
        $
        "#);
    }
    assert_snapshot!(failing(&world, "#s:hang", &["--idle-timeout", "3s"]), @r#"
    exit 124, turn idle_limit
    rejoin: failed, idle_limit: the agent printed nothing for 3 s · tmqx:5 kept, no tool ran · claude sonnet · rejoin send -c tmqx --idle-timeout LONGER "please go on"
    {
      "class": "idle_limit",
      "message": "the agent printed nothing for 3 s",
      "try": "rejoin send -c tmqx --idle-timeout LONGER \"please go on\""
    }
    "#);
}

/// The CLI is stopped by others than us; then nobody is left who could say how it ended.
#[test]
fn crashed_and_lost() {
    let mut late = slowly("late", 60);
    late.delay_ms = Some(500);
    let model = || Model::scripted([("late", vec![late])]);
    let Some(world) = World::claude_with(REJOIN, CLAUDE_OLD, model).map(steady) else {
        return;
    };
    world.say(1, &["-m", "sonnet"]);
    let begun = || {
        let send = world.spawn(&["send", "-k", "k", "go on #s:late"]);
        wait_for("the answer to begin", 20, || {
            world.printed("text_delta").then_some(())
        });
        (send, world.cli().unwrap())
    };
    let (send, cli) = begun();
    kill(cli, "KILL");
    assert_snapshot!(failed(&world, &Done::of(send)), @r#"
    exit 1, turn crashed
    rejoin: failed, crashed: the CLI was killed by signal 9 · tmqx:3 kept, no tool ran · claude sonnet · rejoin explain tmqx
    {
      "class": "crashed",
      "message": "the CLI was killed by signal 9",
      "try": "rejoin explain tmqx"
    }
    "#);
    let (send, cli) = begun();
    for pid in [send.id() as i32, world.shim().unwrap(), cli] {
        kill(pid, "KILL");
    }
    assert_eq!(Done::of(send).code, -9);
    let json = world.run(&["wait", "k", "--json"]);
    assert_snapshot!(told(&world, json.code, &json.json()), @r#"
    exit 1, turn lost
    rejoin: lost: nobody saw how it ended · tmqx:4 kept, no tool ran · claude sonnet · rejoin show tmqx
    {
      "class": "lost",
      "message": "nobody saw how it ended",
      "try": "rejoin show tmqx"
    }
    "#);
}

#[test]
fn not_started_and_unknown() {
    let mut world = world();
    let home = world.home();
    let failing = |world: &World| {
        let done = world.run(&["send", "-a", "demo", "-k", "k", "hi"]);
        failed(world, &done)
    };
    world.unset("HOME");
    assert_snapshot!(failing(&world), @r#"
    exit 1, turn not_started
    rejoin: failed, not_started: something is wrong inside rejoin: demo has no home: HOME is not set · tmqx:1 kept, no tool ran · demo · rejoin doctor
    {
      "class": "not_started",
      "message": "something is wrong inside rejoin: demo has no home: HOME is not set",
      "try": "rejoin doctor"
    }
    "#);
    world.set("HOME", home.to_str().unwrap());
    std::fs::write(Path::new(&home).join(".rejoin-demo"), "in the way").unwrap();
    assert_snapshot!(failing(&world), @r#"
    exit 1, turn unknown
    rejoin: failed, unknown: failed to create directory `/world/home/.rejoin-demo/sessions`: Not a directory (os error 20) · tmqx:2 kept, no tool ran · demo demo · rejoin explain tmqx
    {
      "class": "unknown",
      "message": "failed to create directory `/world/home/.rejoin-demo/sessions`: Not a directory (os error 20)",
      "try": "rejoin explain tmqx"
    }
    "#);
}
