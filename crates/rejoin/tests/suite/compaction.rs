//! Sessions that their agent compacted: every turn says how much they know verbatim, and standing
//! instructions are sent again.

#![allow(
    clippy::needless_pass_by_value,
    reason = "a test owns its world and ends it"
)]

use rejoin_testkit::{Daemon, World, answering, assert_shown, on_both_claudes, said, user};
use serde_json::{Value, json};

on_both_claudes!(
    by_hand,
    by_the_agent,
    instructions_after_a_compaction,
    instructions_after_an_older_snapshot
);

/// Says what a session knows of so many messages, of which it holds so many verbatim.
fn knows(verbatim: u64, of: u64) -> String {
    match verbatim {
        0 => format!("knows the agent's summary of {of} messages"),
        _ => format!(
            "knows at least {verbatim} of {of} messages verbatim, the others from the agent's summary"
        ),
    }
}

/// Compacts the session of a turn as its owner would.
#[track_caller]
fn compact(world: &World, turn: &Value) {
    let session = turn["session_id"].as_str().unwrap();
    let done = world.by_hand(session, "/compact");
    assert!(done.status.success(), "{done:?}");
}

/// A resumed or restored turn of a session that knows so many of the messages before it verbatim.
#[track_caller]
fn assert_knows(turn: &Value, verbatim: u64, of: u64) {
    let summary = turn["summary"].as_str().unwrap();
    let says = format!(", {} · ", knows(verbatim, of));
    assert!(summary.contains(&says), "{summary}");
    assert!(!summary.contains("knows all"), "{summary}");
    assert_eq!(turn["sent"]["resumed"], of, "{turn:#}");
    assert_eq!(turn["sent"]["summarised"], of - verbatim, "{turn:#}");
}

#[track_caller]
fn compaction_evidence(document: &Value) -> String {
    let checks = document["checks"].as_array().unwrap();
    let check = checks.iter().find(|c| c["check"] == "compaction").unwrap();
    check["evidence"].as_str().unwrap().to_owned()
}

fn by_hand(world: World) {
    world.say(1, &[]);
    let second = world.say(2, &[]);
    compact(&world, &second);
    let next = world.run(&["explain", "k", "--next", "--json"]).ok().json();
    assert_eq!(next["sent"]["summarised"], 4, "{next:#}");
    let evidence = compaction_evidence(&next);
    assert!(evidence.ends_with(&knows(0, 4)), "{evidence}");
    let third = world.say(3, &[]);
    assert_eq!(third["verdict"], "resumed", "{third:#}");
    assert_knows(&third, 0, 4);
    assert_knows(&world.say(4, &[]), 2, 6);
    let explained = world.run(&["explain", "k", "--json"]).ok().json();
    let evidence = compaction_evidence(&explained);
    assert!(evidence.ends_with(&knows(2, 6)), "{evidence}");
    let page = world.run(&["explain", "k"]).ok().stdout;
    assert!(page.contains(&format!("claude {}", knows(2, 6))), "{page}");
    // By a fork, which copies the session.
    world.run(&["fork", "k", "--key", "f"]).ok();
    let args = ["send", "-k", "f", "--json", &format!("{} #s:a5", user(5))];
    let forked = world.run(&args).ok().json();
    assert_eq!(forked["verdict"], "resumed", "{forked:#}");
    assert_knows(&forked, 4, 8);
    assert_knows(&world.run(&args).ok().json(), 6, 10);
    // From a snapshot.
    for file in world.sessions() {
        std::fs::remove_file(file).unwrap();
    }
    let restored = world.say(5, &[]);
    assert_eq!(restored["verdict"], "restored", "{restored:#}");
    assert_knows(&restored, 4, 8);
    assert_knows(&world.say(6, &[]), 6, 10);
    // A new session is told everything.
    let fresh = world.say(7, &["--fresh-session"]);
    assert!(!fresh["summary"].to_string().contains("summary"), "{fresh}");
    assert_shown(&world.model.last(), &[said(1..7), vec![user(7)]].concat());
    let eighth = world.say(8, &[]);
    let summary = eighth["summary"].as_str().unwrap();
    assert!(summary.contains("knows all 14 messages"), "{summary}");
    assert_eq!(compaction_evidence(&eighth), "not compacted");
}

fn by_the_agent(mut world: World) {
    let model = ["-m", world.cli.models()[0]];
    let first = world.say(1, &model);
    let window = first["context"]["window"].as_u64().unwrap();
    let nearly = answering(2, window * 985 / 1000, 25);
    world.send(2, &nearly, &model).ok();
    // Past our own threshold, so that the CLI has to make room itself.
    world.set("REJOIN_RESUME_CONTEXT_THRESHOLD", "1");
    let third = world.say(3, &model);
    let summary = third["summary"].as_str().unwrap();
    assert!(summary.contains("compacted by the agent"), "{summary}");
    assert_knows(&third, 0, 4);
    let fourth = world.say(4, &[]);
    assert!(!fourth["summary"].to_string().contains("compacted by"));
    let verbatim = fourth["sent"]["resumed"].as_u64().unwrap()
        - fourth["sent"]["summarised"].as_u64().unwrap();
    assert!((1..=2).contains(&verbatim), "{fourth:#}");
    assert_knows(&fourth, verbatim, 6);
    assert_knows(&world.say(5, &[]), verbatim + 2, 8);
}

/// One message over HTTP with standing instructions.
fn instruct(world: &World, daemon: &Daemon, n: usize, text: &str) -> Value {
    let words = format!("{} #s:a{n}", user(n));
    let work = world.work().display().to_string();
    let told = [("workdir", json!(work)), ("instructions", json!(text))];
    let turn = daemon.say("k", &words, &told);
    assert_eq!(turn["status"], "succeeded", "{turn:#}");
    turn
}

/// How often the model was shown a word in the last turn.
fn shown(world: &World, word: &str) -> usize {
    let history = world.model.last().history().to_string();
    history.matches(word).count()
}

/// A session that holds only a summary of its standing instructions receives them again, once.
fn instructions_after_a_compaction(mut world: World) {
    world.set("REJOIN_SERVE_WARM", "0");
    let daemon = world.serve(&[]);
    instruct(&world, &daemon, 1, "Be kind: rule-alpha.");
    let second = instruct(&world, &daemon, 2, "Be kind: rule-alpha.");
    assert_eq!(shown(&world, "rule-alpha"), 1);
    compact(&world, &second);
    instruct(&world, &daemon, 3, "Be kind: rule-alpha.");
    assert_eq!(shown(&world, "rule-alpha"), 1, "told again");
    instruct(&world, &daemon, 4, "Be kind: rule-alpha.");
    assert_eq!(shown(&world, "rule-alpha"), 1, "and once");
    compact(&world, &second);
    instruct(&world, &daemon, 5, "");
    assert_eq!(shown(&world, "do not hold any more"), 1);
}

/// A snapshot from before the newest instructions: the restored session receives them.
fn instructions_after_an_older_snapshot(mut world: World) {
    world.set("REJOIN_SERVE_WARM", "0");
    let daemon = world.serve(&[]);
    instruct(&world, &daemon, 1, "Be kind: rule-alpha.");
    drop(daemon);
    world.set("REJOIN_SNAPSHOTS_ENABLED", "false");
    let daemon = world.serve(&[]);
    instruct(&world, &daemon, 2, "Be brief: rule-beta.");
    drop(daemon);
    world.unset("REJOIN_SNAPSHOTS_ENABLED");
    for file in world.sessions() {
        std::fs::remove_file(file).unwrap();
    }
    let daemon = world.serve(&[]);
    let third = instruct(&world, &daemon, 3, "Be brief: rule-beta.");
    assert_eq!(third["verdict"], "restored", "{third:#}");
    assert_eq!(shown(&world, "rule-alpha"), 1);
    assert_eq!(shown(&world, "rule-beta"), 1, "told to the older session");
    assert_shown(&world.model.last(), &[said(1..3), vec![user(3)]].concat());
    instruct(&world, &daemon, 4, "Be brief: rule-beta.");
    assert_eq!(shown(&world, "rule-beta"), 1, "and once");
}
