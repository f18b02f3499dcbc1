//! A fork and what it was forked from: both go on, and neither hears of the other.

mod branch;
mod costs;
mod ends;
mod meanwhile;
mod others;

use rejoin_testkit::{World, on_every_cli};
use serde_json::Value;

use branch::{Branch, files};

on_every_cli!(at_the_newest_message, at_an_earlier_message);

/// The CLI's own fork, where it has one: of a file of ours, or in a database of ours.
#[track_caller]
fn assert_forked(world: &World, turn: &Value, parent: &str) {
    let command = turn["command"].as_array().unwrap();
    let has = |arg: &str| command.iter().any(|a| a == arg);
    let names_it = has(parent);
    match world.cli.agent() {
        "claude" => assert!(has("--fork-session") && !names_it, "{turn:#}"),
        "gemini" => assert!(has("--session-file") && !names_it, "{turn:#}"),
        "opencode" => assert!(has("--fork") && names_it, "{turn:#}"),
        // Its own needs the parent's file for ever.
        _ => assert!(has("resume") && !names_it, "{turn:#}"),
    }
    let checks = turn["checks"].as_array().unwrap();
    let check = checks.iter().find(|c| c["check"] == "session").unwrap();
    let evidence = check["evidence"].as_str().unwrap();
    assert!(evidence.contains(parent), "{evidence}");
    assert!(evidence.contains("forked"), "{evidence}");
}

/// Issue 5.4, D-25: the first turn goes on with a copy; the parent's session is not touched by it,
/// nor by any later one; and the same for a fork of the fork.
fn at_the_newest_message(world: World) {
    let mut parent = Branch::new("p");
    let first = parent.says(&world, 1, "started");
    parent.says(&world, 2, "resumed");
    let session = first["session_id"].as_str().unwrap();
    let before = files(&world);

    let mut child = parent.fork(&world, "c", &["--permission", "read-only"]);
    let mut grandchild = child.fork(&world, "g", &[]);
    let turn = child.says(&world, 3, "resumed");
    assert_forked(&world, &turn, session);
    assert_eq!(turn["sent"]["resumed"], 4, "{turn:#}");
    assert_eq!(turn["policy"]["permission"], "read-only", "{turn:#}");
    assert_eq!(turn["attempts"].as_array().unwrap().len(), 1, "{turn:#}");
    let own = turn["session_id"].as_str().unwrap().to_owned();
    assert_ne!(own, session);
    for (file, bytes) in &before {
        assert!(std::fs::read(file).unwrap() == *bytes, "{}", file.display());
    }
    assert_eq!(files(&world).len(), before.len() + 1);

    // The fork of a fork that has not said anything yet goes back to where both began.
    let turn = grandchild.says(&world, 4, "resumed");
    assert_forked(&world, &turn, session);
    let turn = child.says(&world, 5, "resumed");
    assert_eq!(turn["session_id"], own.as_str(), "{turn:#}");
    let turn = parent.says(&world, 6, "resumed");
    assert_eq!(turn["session_id"], session, "{turn:#}");
    // Of one that has, to what it said.
    let mut grandchild = child.fork(&world, "h", &[]);
    let turn = grandchild.says(&world, 7, "resumed");
    assert_forked(&world, &turn, &own);
    grandchild.says(&world, 8, "resumed");
    assert_eq!(files(&world).len(), before.len() + 3);
    world.assert_quiet();
}

/// Issue 5.4: what the session has seen of later messages cannot be taken from it, so all is told.
fn at_an_earlier_message(world: World) {
    let mut parent = Branch::new("p");
    parent.says(&world, 1, "started");
    parent.says(&world, 2, "resumed");
    for (at, reason) in [(1, "first_turn"), (2, "no_session"), (3, "no_session")] {
        let key = format!("c{at}");
        let mut child = parent.fork(&world, &key, &["--at", &at.to_string()]);
        let turn = child.says(&world, 2 + at, "reseeded");
        assert_eq!(turn["reason"], reason, "{turn:#}");
        child.says(&world, 10 + at, "resumed");
    }
    parent.says(&world, 20, "resumed");
}
