//! Every CLI, used by hand before and after.

use rejoin_testkit::{CLAUDE_NEW, World, on_every_cli, user};
use serde_json::{Value, json};

use super::{adopted, alone, goes_on, keep_gemini, listed, messages};

on_every_cli!(a_session_made_by_hand_goes_on);

mod later {
    use super::what_is_said_there_later_is_taken_in;
    rejoin_testkit::on_every_quick_cli!(what_is_said_there_later_is_taken_in);
}

/// A session of two turns, made without rejoin, and its id.
fn made(world: &World) -> String {
    keep_gemini(world);
    alone(world, world.cli, None, 1);
    let found = listed(world, &[]);
    assert_eq!(found.len(), 1, "{found:#?}");
    let session = &found[0];
    assert_eq!(
        (&session["state"], &session["agent"]),
        (&json!("new"), &json!(world.cli.agent()))
    );
    let words = session["title"].as_str().unwrap();
    assert!(words.contains(&user(1)), "{session:#}");
    let work = world.work().canonicalize().unwrap();
    assert_eq!(session["workdir"], work.to_str().unwrap());
    let id = session["session_id"].as_str().unwrap().to_owned();
    alone(world, world.cli, Some(&id), 2);
    id
}

/// Gemini's and OpenCode's are copied.
fn is_copied(world: &World) -> bool {
    ["gemini", "opencode"].contains(&world.cli.agent())
}

/// What the CLI keeps for its user, byte for byte.
fn own_files(world: &World) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let places = match world.cli.agent() {
        "claude" => ".claude/projects",
        "codex" => ".codex/sessions",
        "gemini" => ".gemini/tmp",
        _ => ".local/share/opencode",
    };
    let mut found = vec![];
    let mut folders = vec![world.home().join(places)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.to_str().unwrap();
            if path.is_dir() && !name.ends_with("/rejoin") {
                folders.push(path);
            } else if [".jsonl", ".db", ".db-wal"]
                .iter()
                .any(|e| name.ends_with(e))
            {
                let bytes = std::fs::read(&path).unwrap();
                found.push((path, bytes));
            }
        }
    }
    assert!(!found.is_empty());
    found.sort();
    found
}

/// Ten more turns by hand are taken in, exactly those; and everything is shown once.
#[expect(clippy::needless_pass_by_value, reason = "as every test on a world")]
fn a_session_made_by_hand_goes_on(world: World) {
    let id = made(&world);
    let before = own_files(&world);
    let adopted_now = adopted(&world, &["--all"]);
    assert!(
        own_files(&world) == before,
        "the user's own files were changed"
    );
    let [one] = &adopted_now[..] else {
        panic!("{adopted_now:#?}")
    };
    assert_eq!(one["session_id"], id);
    assert_eq!(
        (&one["messages"], &one["resumable"]),
        (&json!(4), &json!(true)),
        "{one:#}"
    );
    assert_eq!(one["copied"], is_copied(&world));
    assert_eq!(one["note"], Value::Null);
    // Once.
    assert_eq!(adopted(&world, &["--all"]), [] as [Value; 0]);
    let known = listed(&world, &[]);
    assert_eq!(known.len(), 1, "{known:#?}");
    assert_eq!(known[0]["state"], "known");
    assert_eq!(known[0]["conversation_id"], one["conversation_id"]);
    // What was spent on it before, where the session says so.
    let id_here = one["conversation_id"].as_str().unwrap();
    let shown = world.run(&["show", id_here, "--json"]).ok().json();
    let cost = shown["conversation"]["cost_usd"].as_f64();
    let says_so = world.cli.agent() == "opencode" || world.cli.version() == CLAUDE_NEW;
    assert_eq!(cost.is_some_and(|cost| cost > 0.0), says_so, "{shown:#}");
    let turn = goes_on(&world, one, 3, &[1, 2]);
    assert_eq!(
        (&turn["verdict"], &turn["reason"]),
        (&json!("resumed"), &Value::Null),
        "{turn:#}"
    );
    assert_eq!(turn["session_id"], id);
    assert_eq!(turn["sent"]["resumed"], 4);

    for n in 4..=13 {
        alone(&world, world.cli, Some(&id), n);
    }
    let grown = listed(&world, &[]);
    assert_eq!(grown.len(), 1, "{grown:#?}");
    assert_eq!(
        (&grown[0]["state"], &grown[0]["new_messages"]),
        (&json!("grown"), &json!(20))
    );
    let more = adopted(&world, &[&id[..8]]);
    assert_eq!(more.len(), 1);
    assert_eq!(more[0]["messages"], 20);
    assert_eq!(more[0]["conversation_id"], one["conversation_id"]);
    assert_eq!(listed(&world, &[])[0]["state"], "known");
    let all: Vec<usize> = (1..=13).collect();
    let turn = goes_on(&world, one, 14, &all);
    assert_eq!(turn["verdict"], "resumed", "{turn:#}");
    let caught_up = if is_copied(&world) { 20 } else { 0 };
    assert_eq!(turn["sent"]["caught_up"], caught_up, "{turn:#}");
    let shown = messages(&world, one);
    assert_eq!(shown.len(), 28);
    let outside = shown.iter().filter(|m| m["origin"] == "outside");
    assert_eq!(outside.count(), 24);
    assert_eq!(world.leftovers(), []);
}

/// Nobody has to adopt again: the next message takes in what was said meanwhile.
#[expect(clippy::needless_pass_by_value, reason = "as every test on a world")]
fn what_is_said_there_later_is_taken_in(world: World) {
    let id = made(&world);
    let one = &adopted(&world, &[&id])[0];
    alone(&world, world.cli, Some(&id), 3);
    let turn = goes_on(&world, one, 4, &[1, 2, 3]);
    assert_eq!(turn["verdict"], "resumed", "{turn:#}");
    alone(&world, world.cli, Some(&id), 5);
    let turn = goes_on(&world, one, 6, &[1, 2, 3, 4, 5]);
    assert_eq!(turn["verdict"], "resumed", "{turn:#}");
    assert_eq!(adopted(&world, &["--all"]), [] as [Value; 0]);
}
