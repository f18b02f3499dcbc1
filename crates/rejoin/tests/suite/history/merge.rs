//! Two conversations become one, and are parted again.

use serde_json::{Value, json};

use super::{demo, did, id_of, say, texts};

/// D-10, D-12, D-14, D-37: the older block first, in order, the name of the one that stays; the other
/// leads there, by id, handle and key.
#[test]
fn the_older_block_comes_first() {
    for into_older in [true, false] {
        let world = demo(&["one", "two"]);
        let args = ["send", "-a", "demo", "-k", "later", "three"];
        let later = did(&world, &args)["conversation_id"].clone();
        did(&world, &["edit", &id_of(&world, 1), "uno"]);
        let (from, into) = if into_older {
            ("later", "k")
        } else {
            ("k", "later")
        };
        let dry = did(&world, &["merge", from, into, "--dry-run"]);
        let moved = if into_older { 2 } else { 4 };
        assert_eq!(
            (&dry["moved"], &dry["dry_run"]),
            (&json!(moved), &json!(true))
        );
        assert_eq!(texts(&world).len(), 4);

        let title = did(&world, &["show", into])["conversation"]["title"].clone();
        let merged = did(&world, &["merge", from, into]);
        assert_eq!(merged["moved"], json!(moved));
        let shown = did(&world, &["show", from]);
        assert_eq!(shown, did(&world, &["show", into]));
        assert_eq!(shown["conversation"]["id"], merged["conversation_id"]);
        assert_eq!(shown["conversation"]["title"], title);
        let messages = shown["messages"].as_array().unwrap();
        let users: Vec<&Value> = messages
            .iter()
            .filter(|m| m["role"] == "user")
            .map(|m| &m["text"])
            .collect();
        assert_eq!(users, ["uno", "two", "three"]);
        let places: Vec<i64> = messages
            .iter()
            .map(|m| m["seq"].as_i64().unwrap())
            .collect();
        assert_eq!(places, [1, 2, 3, 4, 5, 6]);
        assert_eq!(shown["turns"].as_array().unwrap().len(), 3);
        assert_eq!(
            did(&world, &["list"])["conversations"]
                .as_array()
                .unwrap()
                .len(),
            1
        );

        // Whoever writes to either writes to the one there is.
        let turn = did(&world, &["send", "-k", from, "four"]);
        assert_eq!(turn["conversation_id"], merged["conversation_id"]);
        let text = turn["text"].as_str().unwrap();
        assert!(text.contains("“uno”, “two”, “three”"), "{text}");

        let undone = did(&world, &["undo", into]);
        assert_eq!(
            (
                &undone["change"],
                undone["removed"].as_array().unwrap().len()
            ),
            (&json!("merge"), 2)
        );
        let parted = did(&world, &["show", "later"]);
        assert_eq!(parted["conversation"]["id"], later);
        assert_eq!(parted["messages"].as_array().unwrap().len(), 2);
        assert_eq!(texts(&world).len(), 4);
        // The earlier change can still be taken back.
        did(&world, &["undo", "k"]);
        assert_eq!(texts(&world)[0], "one");
    }
}

/// A session of the older block has seen a prefix of the whole, and is caught up.
#[test]
fn a_session_of_the_older_block_goes_on() {
    let world = demo(&["one"]);
    did(&world, &["send", "-a", "demo", "-k", "later", "two"]);
    did(&world, &["merge", "k", "later"]);
    let next = did(&world, &["explain", "later", "--next"]);
    assert_eq!(
        (
            &next["verdict"],
            &next["sent"]["resumed"],
            &next["sent"]["caught_up"]
        ),
        (&json!("resumed"), &json!(2), &json!(2)),
        "{next:#}"
    );
    let turn = did(&world, &["send", "-k", "later", "three"]);
    assert!(
        turn["text"].as_str().unwrap().contains("“one”, “two”"),
        "{turn:#}"
    );
}

#[test]
fn what_cannot_be_merged() {
    let world = demo(&["one", "two"]);
    did(&world, &["fork", "k", "-k", "f"]);
    did(&world, &["fork", "f", "-k", "ff"]);
    let before = (world.show(), did(&world, &["show", "f"]));
    for (from, into, code) in [
        ("k", "k", 2),
        ("f", "k", 4),
        ("k", "f", 4),
        ("ff", "k", 4),
        ("none", "k", 3),
    ] {
        let done = world.run(&["merge", from, into, "--json"]);
        assert_eq!(done.code, code, "{from} into {into}: {done:?}");
        assert!(done.json()["error"]["message"].as_str().unwrap().len() > 20);
    }
    assert_eq!((world.show(), did(&world, &["show", "f"])), before);
    // Once nothing is shared any more they can.
    did(
        &world,
        &[
            "truncate",
            did(&world, &["show", "f"])["messages"][0]["id"]
                .as_str()
                .unwrap(),
        ],
    );
    did(&world, &["merge", "f", "k"]);
    say(&world, "three");
}
