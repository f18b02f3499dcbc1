//! Sessions that are ours already, or somebody else's just now.

use rejoin_testkit::{CLAUDE_197, CODEX_166, Done, Model, World, slowly, wait_for};
use serde_json::{Value, json};

use super::{adopted, alone, goes_on, listed};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// What rejoin made itself is known, and never becomes a second conversation; what its user said in
/// it by hand is.
#[test]
fn our_own_sessions_are_recognised() {
    let Some(world) = World::of(REJOIN, &CLAUDE_197) else {
        return;
    };
    let first = world.say(1, &["-m", "sonnet"]);
    let failed = world.send(2, "#s:e400", &["--fresh-session"]);
    assert_ne!(failed.code, 0, "{failed:?}");
    let found = listed(&world, &[]);
    assert!(!found.is_empty());
    assert!(found.iter().all(|s| s["state"] == "known"), "{found:#?}");
    assert_eq!(adopted(&world, &["--all"]), [] as [Value; 0]);
    let session = first["session_id"].as_str().unwrap();
    world.run(&["reset", "k"]).ok();
    assert!(listed(&world, &[]).iter().all(|s| s["state"] == "known"));
    let same = adopted(&world, &[session]);
    assert_eq!(same[0]["messages"], 0, "{same:#?}");
    let list = world.run(&["list", "--json"]).ok().json();
    assert_eq!(list["conversations"].as_array().unwrap().len(), 1);
}

#[test]
fn ours_that_went_on_by_hand_is_taken_in() {
    let Some(world) = World::of(REJOIN, &CODEX_166) else {
        return;
    };
    let turn = world.say(1, &[]);
    let session = turn["session_id"].as_str().unwrap();
    alone(&world, world.cli, Some(session), 2);
    let found = listed(&world, &[]);
    assert_eq!(
        (&found[0]["state"], &found[0]["new_messages"]),
        (&json!("grown"), &json!(2))
    );
    assert_eq!(adopted(&world, &["--all"])[0]["messages"], 2);
    let one = json!({"handle": "k"});
    assert_eq!(goes_on(&world, &one, 3, &[1, 2])["verdict"], "resumed");
}

/// A session that is being written is left alone.
#[test]
fn a_session_in_use_is_not_adopted() {
    let slow = vec![slowly("late", 600)];
    let model = || Model::scripted([("late", slow)]);
    let Some(world) = World::with(REJOIN, &CODEX_166, model) else {
        return;
    };
    alone(&world, world.cli, None, 1);
    let id = listed(&world, &[])[0]["session_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut hand = world.by_hand_command(&id, "#s:late").spawn().unwrap();
    wait_for("the session to be in use", 20, || {
        (world.model.requests().len() > 1).then_some(())
    });
    let refused = world.run(&["adopt", "--json", &id]);
    assert_eq!(refused.json()["error"]["code"], "conflict", "{refused:?}");
    let all = world.run(&["adopt", "--all"]);
    assert_eq!((all.code, all.stdout.as_str()), (4, ""), "{all:?}");
    hand.kill().unwrap();
    hand.wait().unwrap();
    let list = world.run(&["list", "--json"]).ok().json();
    assert_eq!(list["conversations"], json!([]));
}

/// However many adopt it at once, it becomes one conversation.
#[test]
fn adopted_at_once_it_is_adopted_once() {
    let Some(world) = World::of(REJOIN, &CLAUDE_197) else {
        return;
    };
    alone(&world, world.cli, None, 1);
    let commands: Vec<_> = (0..4)
        .map(|_| world.spawn(&["adopt", "--all", "--json"]))
        .collect();
    let done: Vec<Done> = commands.into_iter().map(Done::of).collect();
    let adopted = done.iter().filter(|one| one.code == 0);
    let adopted = adopted.flat_map(|one| one.json()["adopted"].as_array().unwrap().clone());
    assert_eq!(adopted.count(), 1, "{done:#?}");
    assert!(
        done.iter().all(|one| [0, 4].contains(&one.code)),
        "{done:#?}"
    );
    let list = world.run(&["list", "--json"]).ok().json();
    assert_eq!(list["conversations"].as_array().unwrap().len(), 1);
}
