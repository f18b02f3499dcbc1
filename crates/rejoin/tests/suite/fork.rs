//! A fork and what it was forked from: both go on, and neither hears of the other.
#![expect(clippy::needless_pass_by_value, reason = "as every test on a world")]

mod branch;
mod costs;
mod ends;
mod meanwhile;
mod others;

use rejoin_testkit::{World, on_every_cli};
use serde_json::Value;

use branch::{Branch, files};

on_every_cli!(at_the_newest_message);

mod earlier {
    use super::at_an_earlier_message;
    rejoin_testkit::on_every_quick_cli!(at_an_earlier_message);
}

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

/// Issue 5.4, D-23, D-25: the first turn goes on with a copy; the parent's session is not touched by it,
/// nor by any later one; and the same for a fork of the fork.
fn at_the_newest_message(world: World) {
    let mut parent = Branch::new("parent");
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
    assert_eq!(files(&world).len(), before.len() + 3);
    world.assert_quiet();
}

/// Only ever added to, so that an earlier turn's end is still there.
fn keeps_lines(world: &World) -> bool {
    world.cli.agent() != "opencode"
}

/// Issue 5.4: also where the parent's session has seen more by now, whether the fork was made before
/// or after that; where its earlier end cannot be had, all is told.
fn at_an_earlier_message(world: World) {
    let mut parent = Branch::new("parent");
    let first = parent.says(&world, 1, "started");
    let session = first["session_id"].as_str().unwrap();
    let mut early = parent.fork(&world, "early", &[]);
    parent.says(&world, 2, "resumed");
    let before = files(&world);
    let (verdict, reason) = if keeps_lines(&world) {
        ("resumed", Value::Null)
    } else {
        ("reseeded", "no_session".into())
    };
    let turn = early.says(&world, 3, verdict);
    assert_eq!(turn["reason"], reason, "{turn:#}");
    if keeps_lines(&world) {
        assert_forked(&world, &turn, session);
    }
    for at in 1..=3 {
        let mut child = parent.fork(&world, &format!("c{at}"), &["--at", &at.to_string()]);
        let n = 3 + at;
        let turn = if at == 1 {
            child.says(&world, n, "reseeded")
        } else {
            child.says(&world, n, verdict)
        };
        let expected = if at == 1 {
            &"first_turn".into()
        } else {
            &reason
        };
        assert_eq!(&turn["reason"], expected, "{turn:#}");
        if at == 3 && keeps_lines(&world) {
            assert_eq!(turn["sent"]["caught_up"], 1, "{turn:#}");
        }
    }
    for (file, bytes) in &before {
        assert!(std::fs::read(file).unwrap() == *bytes, "{}", file.display());
    }
    early.says(&world, 7, "resumed");
}
