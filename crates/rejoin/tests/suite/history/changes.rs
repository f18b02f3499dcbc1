//! Edit, truncate, retry, undo, reset: what they say, what they keep, what they bring back.

use rejoin_testkit::{CLAUDE_NEW, World};
use serde_json::json;

use super::{demo, did, id_of, say, texts};

#[test]
fn what_a_message_said_before_is_kept() {
    let world = demo(&["one", "two"]);
    let before = world.show();
    let id = id_of(&world, 1);
    let dry = did(&world, &["edit", &id, "uno", "--dry-run"]);
    assert_eq!(
        (&dry["dry_run"], &dry["affected"][0]["usable"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(world.show(), before);

    let changed = did(&world, &["edit", &id, "uno"]);
    assert_eq!(
        (
            &changed["message_id"],
            &changed["removed"],
            &changed["affected"][0]["reason"]
        ),
        (&json!(id), &json!([]), &json!("history_changed"))
    );
    let shown = did(&world, &["show", "k"]);
    let message = &shown["messages"][0];
    assert_eq!(
        (&message["id"], &message["text"], &message["edited"]),
        (&json!(id), &json!("uno"), &json!(true))
    );
    assert_eq!(message.get("versions"), None);
    let all = did(&world, &["show", "k", "--all"]);
    assert_eq!(all["messages"][0]["versions"][0]["text"], "one");

    did(&world, &["undo", "k"]);
    let all = did(&world, &["show", "k", "--all"]);
    assert_eq!(
        (&all["messages"][0]["text"], &all["messages"][0]["edited"]),
        (&json!("one"), &json!(false))
    );
    assert_eq!(all["messages"][0]["versions"][1]["text"], "uno");
}

/// The same words are no change, and nothing to take back.
#[test]
fn an_edit_that_changes_nothing() {
    let world = demo(&["one"]);
    let id = id_of(&world, 1);
    let changed = did(&world, &["edit", &id, "one"]);
    assert_eq!(changed["affected"][0]["usable"], true);
    assert_eq!(world.run(&["undo", "k"]).code, 4);
}

/// What was said since gives way; nothing is destroyed.
#[test]
fn a_truncation_is_taken_back_whatever_was_said_since() {
    let world = demo(&["one", "two", "three"]);
    let before = texts(&world);
    let removed = did(&world, &["truncate", &id_of(&world, 3)]);
    assert_eq!(removed["removed"].as_array().unwrap().len(), 4);
    assert_eq!(texts(&world), before[..2]);
    say(&world, "another two");
    let undone = did(&world, &["undo", "k"]);
    assert_eq!(
        (
            &undone["change"],
            &undone["restored"],
            undone["removed"].as_array().unwrap().len()
        ),
        (&json!("truncate"), &removed["removed"], 2)
    );
    assert_eq!(texts(&world), before);
    let all = did(&world, &["show", "k", "--all"]);
    let all = all["messages"].as_array().unwrap();
    assert_eq!(
        (
            all.len(),
            all.iter().filter(|m| m["removed"] == true).count()
        ),
        (8, 2)
    );
    // The session of before has seen exactly this history again.
    let next = did(&world, &["explain", "k", "--next"]);
    assert_eq!(next["verdict"], "resumed", "{next:#}");
}

/// Changes are taken back in the order in which they can be.
#[test]
fn undo_goes_on_to_the_change_before() {
    let world = demo(&["one", "two"]);
    let before = texts(&world);
    did(&world, &["edit", &id_of(&world, 1), "uno"]);
    did(&world, &["retry", "k"]);
    did(&world, &["truncate", &id_of(&world, 4)]);
    did(&world, &["rename", "k", "another title"]);
    for change in ["rename", "truncate", "retry", "edit"] {
        assert_eq!(did(&world, &["undo", "k"])["change"], change);
    }
    assert_eq!(texts(&world), before);
    let done = world.run(&["undo", "k", "--json"]);
    assert_eq!(
        (done.code, &done.json()["error"]["code"]),
        (4, &json!("conflict"))
    );
}

/// A retry keeps the message's id, and a failed one can be run again by another agent.
#[test]
fn a_retry_keeps_its_message() {
    let world = demo(&["one", "two"]);
    let second = id_of(&world, 3);
    let dry = did(&world, &["retry", "k", "--dry-run"]);
    assert_eq!(
        (dry["removed"].as_array().unwrap().len(), &dry["message_id"]),
        (1, &json!(second))
    );
    let first = id_of(&world, 1);
    let turn = did(&world, &["retry", &first]);
    assert_eq!(
        (&turn["message_id"], &turn["verdict"], &turn["status"]),
        (&json!(first), &json!("started"), &json!("succeeded"))
    );
    assert_eq!(texts(&world).len(), 2);
    let undone = did(&world, &["undo", "k"]);
    assert_eq!(undone["restored"].as_array().unwrap().len(), 3);
    assert_eq!(texts(&world).len(), 4);
}

/// What could not be run is not a change: the answer is still there.
#[test]
fn a_retry_that_cannot_be_run_changes_nothing() {
    let world = World::new(env!("CARGO_BIN_EXE_rejoin"));
    let config = world.home().join(".config/rejoin/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let section = "[agents.echo]\nkind = \"command\"\nbin = \"/bin/cat\"\npermission.edit = []\n";
    std::fs::write(&config, section).unwrap();
    world
        .run(&["send", "-a", "echo", "-k", "k", "hello there"])
        .ok();
    let before = world.show();
    let done = world.run(&["retry", "k", "--permission", "full", "--json"]);
    assert_eq!(done.code, 5, "{done:?}");
    let after = world.show();
    assert_eq!(after["messages"], before["messages"]);
    assert_eq!(after["turns"], before["turns"]);
    assert_eq!(world.run(&["undo", "k"]).code, 4);
}

#[test]
fn a_reset_can_be_taken_back() {
    let world = demo(&["one", "two"]);
    let reset = did(&world, &["reset", "k"]);
    assert_eq!(reset["retired"], 1);
    let next = did(&world, &["explain", "k", "--next"]);
    assert_eq!(next["reason"], "session_retired");
    assert_eq!(did(&world, &["undo", "k"])["change"], "reset");
    let next = did(&world, &["explain", "k", "--next"]);
    assert_eq!(next["verdict"], "resumed");
}

/// A fork has the history up to and including a message, and goes its own way (D-23, D-25).
#[test]
fn a_fork_goes_its_own_way() {
    let world = demo(&["one", "two"]);
    let fork = did(
        &world,
        &[
            "fork",
            "k",
            "--at",
            "3",
            "-k",
            "f",
            "--permission",
            "read-only",
        ],
    );
    assert_eq!(fork["parent_id"], world.show()["conversation"]["id"]);
    let child = did(&world, &["show", "f"]);
    let states: Vec<_> = child["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["state"].clone())
        .collect();
    assert_eq!(states, ["ok", "ok", "unanswered"]);
    assert_eq!(child["conversation"]["permission"], "read-only");
    let turn = did(&world, &["send", "-k", "f", "three"]);
    let text = turn["text"].as_str().unwrap();
    assert!(
        text.contains("“one”, “two”") && text.contains("“three”"),
        "{text}"
    );
    assert_eq!(texts(&world).len(), 4);
    did(&world, &["edit", &id_of(&world, 1), "uno"]);
    assert_eq!(did(&world, &["show", "f"])["messages"][0]["text"], "one");
}

#[test]
fn settings_and_names() {
    let world = demo(&["one"]);
    did(
        &world,
        &[
            "set",
            "k",
            "permission=read-only",
            "scope=agent",
            "title=a  new title",
            "resume=false",
        ],
    );
    let shown = world.show();
    assert_eq!(
        (
            &shown["conversation"]["permission"],
            &shown["conversation"]["scope"],
            &shown["conversation"]["title"]
        ),
        (&json!("read-only"), &json!("agent"), &json!("a new title"))
    );
    let turn = say(&world, "two");
    assert_eq!(turn["reason"], "fresh_requested", "{turn:#}");
    did(&world, &["archive", "k"]);
    assert_eq!(did(&world, &["list"])["conversations"], json!([]));
    assert_eq!(
        did(&world, &["list", "--archived"])["conversations"][0]["key"],
        "k"
    );
    say(&world, "three");
    assert_eq!(did(&world, &["list"])["conversations"][0]["key"], "k");
    let refused = world.run(&["delete", "k"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    did(&world, &["delete", "k", "--yes"]);
    assert_eq!(world.run(&["show", "k"]).code, 3);
    assert_eq!(did(&world, &["search", "one"])["messages"], json!([]));
}

/// What a later turn settled stays when an earlier change of settings is taken back.
#[test]
fn settings_are_taken_back_one_by_one() {
    let world = demo(&["one"]);
    let id = world.show()["conversation"]["id"].clone();
    let id = id.as_str().unwrap();
    did(&world, &["set", id, "key=other", "claude.model=opus"]);
    let folder = world.root().join("elsewhere");
    std::fs::create_dir(&folder).unwrap();
    let folder = folder.to_str().unwrap();
    did(&world, &["send", "-c", "other", "-w", folder, "two"]);
    assert_eq!(did(&world, &["undo", id])["change"], "set");
    let shown = did(&world, &["show", "k"]);
    assert_eq!(shown["conversation"]["workdir"].as_str(), Some(folder));
    did(&world, &["set", id, "key="]);
    did(&world, &["undo", id]);
    assert_eq!(world.show()["conversation"]["id"], id);
}

/// A key of a few letters is not taken for the beginning of somebody's handle.
#[test]
fn a_short_key_is_a_key() {
    let world = demo(&["one"]);
    let id = world.show()["conversation"]["id"].clone();
    // One in sixteen handles begins with it.
    let another = (0..500).any(|_| {
        let turn = did(&world, &["send", "-a", "demo", "x"]);
        turn["handle"].as_str().unwrap().starts_with('k')
    });
    assert!(another);
    assert_eq!(world.show()["conversation"]["id"], id);
}

/// The model of one agent, not of another.
#[test]
fn a_model_belongs_to_an_agent() {
    let Some(world) = World::claude(env!("CARGO_BIN_EXE_rejoin"), CLAUDE_NEW) else {
        return;
    };
    world.say(1, &[]);
    let asked_for = |n: usize| world.say(n, &[])["command"].to_string();
    did(&world, &["set", "k", "codex.model=opus"]);
    assert!(!asked_for(2).contains("opus"));
    did(&world, &["set", "k", "claude.model=opus"]);
    assert!(asked_for(3).contains("\"--model\",\"opus\""));
    did(&world, &["undo", "k"]);
    assert!(!asked_for(4).contains("opus"));
}

/// D-25: what a fork may do is held to, on its first turn and later, and the parent's is as it was.
#[test]
fn a_fork_may_do_less() {
    let Some(world) = World::claude(env!("CARGO_BIN_EXE_rejoin"), CLAUDE_NEW) else {
        return;
    };
    world.say(1, &[]);
    did(
        &world,
        &["fork", "k", "-k", "less", "--permission", "read-only"],
    );
    let written = world.work().join("out.txt");
    for _ in 0..2 {
        let turn = did(&world, &["send", "-k", "less", "#s:write"]);
        assert_eq!(turn["verdict"], "resumed", "{turn:#}");
        assert!(!written.exists(), "{turn:#}");
    }
    did(&world, &["send", "-k", "k", "#s:write"]);
    assert!(written.exists());
}
