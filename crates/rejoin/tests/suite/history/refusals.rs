//! What cannot be changed now, or at all: one clear sentence, and nothing half done.

use rejoin_testkit::{CLAUDE_NEW, Done, World, kill, user};
use serde_json::json;

use super::{demo, id_of};

/// While a turn runs its history stays as it is: exit 4, "cancel it first". A fork may be made.
#[test]
fn nothing_changes_under_a_running_turn() {
    let Some(world) = World::claude(env!("CARGO_BIN_EXE_rejoin"), CLAUDE_NEW) else {
        return;
    };
    world.say(1, &[]);
    world
        .run(&["send", "-a", "demo", "-k", "other", "hello"])
        .ok();
    let child = world.start(2, "#s:hang", &[]);
    world.wait_until_asked(&user(2));
    let first = id_of(&world, 1);
    let before = world.show();
    let refused: [&[&str]; 9] = [
        &["edit", &first, "x"],
        &["edit", &first, "x", "--dry-run"],
        &["truncate", &first],
        &["retry", &first],
        &["undo", "k"],
        &["reset", "k"],
        &["merge", "k", "other"],
        &["merge", "other", "k"],
        &["delete", "k", "--yes"],
    ];
    for args in refused {
        let mut all = args.to_vec();
        all.push("--json");
        let done = world.run(&all);
        assert_eq!(done.code, 4, "{args:?}: {done:?}");
        let error = &done.json()["error"];
        assert_eq!(error["code"], "busy");
        let text = error["message"].as_str().unwrap();
        assert!(text.contains("cancel it first"), "{text}");
        assert!(error["try"].as_str().unwrap().starts_with("rejoin cancel "));
    }
    assert_eq!(world.show()["messages"], before["messages"]);
    let fork = world.run(&["fork", "k", "-k", "f", "--json"]).ok().json();
    let forked = world.run(&["show", "f", "--json"]).ok().json();
    assert_eq!(fork["conversation_id"], forked["conversation"]["id"]);
    assert_eq!(forked["messages"][2]["state"], "unanswered");
    kill(child.id() as i32, "INT");
    assert_eq!(Done::of(child).code, 130);
    world.run(&["edit", &first, "userword-9-end #s:a9"]).ok();
    world.assert_quiet();
}

#[test]
fn what_does_not_exist_or_make_sense() {
    let world = demo(&["one"]);
    let before = world.show();
    let answer = id_of(&world, 2);
    let cases: [(&[&str], i32, &str); 13] = [
        (&["edit", "k:9", "x"], 3, "no message 9"),
        (
            &["edit", "01a1e012-a331-76bd-b0ba-465f75b279ac", "x"],
            3,
            "there is no",
        ),
        (&["edit", "k", "x"], 2, "name one of its messages"),
        (&["edit", "k:1", ""], 2, "empty"),
        (&["truncate", "k"], 2, "name one of its messages"),
        (&["truncate", "nobody:3"], 3, "no conversation"),
        (&["retry", "k:2"], 2, "that is an answer"),
        (&["retry", &answer], 2, "that is an answer"),
        (&["retry", "k", "-a", "nobody"], 3, "nobody"),
        (&["fork", "k", "--at", "7"], 3, "no message 7"),
        (&["undo", "k"], 4, "no change"),
        (
            &["set", "k", "permission=all"],
            2,
            "read-only, edit, full, ask",
        ),
        (&["search", "--", "--- \""], 2, "no word"),
    ];
    for (args, code, words) in cases {
        let (command, rest) = args.split_first().unwrap();
        let mut all = vec![*command, "--json"];
        all.extend(rest);
        let done = world.run(&all);
        assert_eq!(done.code, code, "{args:?}: {done:?}");
        let error = &done.json()["error"];
        let text = error["message"].as_str().unwrap();
        assert!(text.contains(words), "{args:?}: {text}");
        assert_ne!(error["try"], json!(null));
    }
    assert_eq!(world.show(), before);
    // A message that was removed is not there to be changed.
    world.run(&["truncate", &answer]).ok();
    for command in ["edit", "truncate", "retry"] {
        let mut args = vec![command, "--json", &answer];
        if command == "edit" {
            args.push("x");
        }
        let done = world.run(&args);
        assert_eq!(done.code, 3, "{done:?}");
        assert!(
            done.json()["error"]["message"]
                .as_str()
                .unwrap()
                .contains("rejoin undo")
        );
    }
}
