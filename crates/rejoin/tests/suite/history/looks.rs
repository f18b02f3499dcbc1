//! Search, and what people see of changed histories.

use serde_json::{Value, json};

use super::{demo, did, id_of};

#[test]
fn words_are_found_where_they_stand_now() {
    let world = demo(&[
        "the harbour is blue",
        "Grüße aus Zürich",
        "say \"two words\" OR NOT",
    ]);
    let found = |args: &[&str]| -> Vec<Value> {
        let mut all = vec!["search"];
        all.extend(args);
        let hits = did(&world, &all);
        hits["messages"].as_array().unwrap().clone()
    };
    let users = |hits: Vec<Value>| -> Vec<i64> {
        let own = hits.iter().filter(|h| h["role"] == "user");
        own.map(|h| h["seq"].as_i64().unwrap()).collect()
    };
    assert_eq!(users(found(&["harb"])), [1]);
    assert_eq!(users(found(&["ZURICH"])), [3]);
    assert_eq!(users(found(&["\"two words\""])), [5]);
    assert_eq!(users(found(&["\"words two\""])), Vec::<i64>::new());
    assert_eq!(users(found(&["OR", "NOT"])), [5]);
    assert_eq!(users(found(&["blue", "harbour"])), [1]);
    let hit = &found(&["harbour"])[0];
    assert!(
        hit["snippet"].as_str().unwrap().contains("harbour is blue"),
        "{hit}"
    );
    assert!(hit["handle"].as_str().unwrap().contains(':'));

    did(&world, &["edit", &id_of(&world, 1), "the river is green"]);
    assert_eq!(users(found(&["harbour"])), Vec::<i64>::new());
    assert_eq!(users(found(&["river"])), [1]);
    did(&world, &["undo", "k"]);
    assert_eq!(users(found(&["harbour"])), [1]);
    did(&world, &["truncate", &id_of(&world, 3)]);
    assert_eq!(users(found(&["zurich"])), Vec::<i64>::new());
    assert_eq!(
        found(&["harbour", "--agent", "claude"]),
        Vec::<Value>::new()
    );
    assert_eq!(
        did(&world, &["search", "nothing-like-that"]),
        json!({"messages": []})
    );
}

#[test]
fn changes_say_whom_they_affect() {
    let world = demo(&["one", "two"]);
    let said = |args: &[&str]| world.run(args).ok().stdout;
    let clean = |text: String| {
        let handle = did(&world, &["show", "k"])["conversation"]["handle"].clone();
        text.replace(handle.as_str().unwrap(), "tmqx")
    };
    insta::assert_snapshot!(clean(said(&["edit", "k:1", "uno", "--dry-run"])), @r"
    would be done: tmqx:1 edited
      demo is told again in its next turn
    ");
    insta::assert_snapshot!(clean(said(&["truncate", "k:3"])), @r"
    2 messages removed, from tmqx:3 on · rejoin undo tmqx
      demo is told again in its next turn
    ");
    insta::assert_snapshot!(clean(said(&["undo", "k"])), @r"
    tmqx: truncate taken back, 2 messages restored (tmqx:3-4)
      demo can resume its session again
    ");
    said(&["edit", "k:1", "uno"]);
    insta::assert_snapshot!(clean(said(&["undo", "k"])), @r"
    tmqx: edit taken back, the old text of tmqx:1 restored
      demo can resume its session again
    ");
    // A turn between the change and its undo: the session before the change is continued.
    said(&["edit", "k:1", "uno"]);
    said(&["send", "-k", "k", "-a", "demo", "three"]);
    insta::assert_snapshot!(clean(said(&["undo", "k"])), @r"
    tmqx: edit taken back, the old text of tmqx:1 restored
      demo goes on in an earlier session, and is told what that has not seen
    ");
    let next = said(&["explain", "k", "--next"]);
    assert!(
        next.contains("knows 4 messages and is told 2 more"),
        "{next}"
    );
    said(&["truncate", "k:5"]);
    said(&["edit", "k:1", "uno"]);
    said(&["truncate", "k:3"]);
    let all = clean(said(&["show", "k", "--all"]));
    assert!(
        all.contains("removed") && all.contains("edited") && all.contains(": one"),
        "{all}"
    );
}

/// `list --title` finds a part of a title in any case, page by page.
#[test]
fn a_list_is_filtered_by_title() {
    let world = rejoin_testkit::World::new(env!("CARGO_BIN_EXE_rejoin"));
    for (key, title) in [
        ("one", "The Port is busy"),
        ("two", "other"),
        ("three", "which port?"),
    ] {
        let send = ["send", "-k", key, "--title", title, "-a", "demo", "UWORD1"];
        world.run(&send).ok();
    }
    let page = |args: &[&str]| {
        let all = [&["list", "--json", "--title", "PORT"], args].concat();
        let list = world.run(&all).ok().json();
        let rows = list["conversations"].as_array().unwrap().iter();
        let keys: Vec<_> = rows
            .map(|c| c["key"].as_str().unwrap().to_owned())
            .collect();
        (keys, list["next_cursor"].as_str().map(str::to_owned))
    };
    assert_eq!(
        page(&[]),
        (vec!["three".to_owned(), "one".to_owned()], None)
    );
    let (first, cursor) = page(&["-n", "1"]);
    assert_eq!(first, ["three"]);
    assert_eq!(
        page(&["--cursor", &cursor.unwrap()]),
        (vec!["one".to_owned()], None)
    );
    let none = world.run(&["list", "--title", "nothing"]).ok();
    assert!(none.stderr.contains("no such conversation"), "{none:?}");
}

/// `list --since` and `--key`.
#[test]
fn a_list_is_filtered_by_time_and_key() {
    let world = rejoin_testkit::World::new(env!("CARGO_BIN_EXE_rejoin"));
    for key in ["one", "two"] {
        world.run(&["send", "-k", key, "-a", "demo", "UWORD1"]).ok();
    }
    let keys = |args: &[&str]| {
        let list = world.run(&[&["list", "--json"], args].concat()).ok().json();
        let all = list["conversations"].as_array().unwrap().iter();
        let found = all.map(|c| c["key"].as_str().unwrap().to_owned());
        (found.collect::<Vec<_>>(), list["next_cursor"].is_null())
    };
    assert_eq!(keys(&[]).0, ["two", "one"]);
    assert_eq!(keys(&["--key", "one"]).0, ["one"]);
    assert!(keys(&["--key", "none"]).0.is_empty());
    let day = 86_400_000_000_i64;
    let older =
        format!("update conversations set updated_at = updated_at - {day} where key = 'one'");
    rejoin_testkit::sql(&world.data().join("rejoin.db"), &older);
    assert_eq!(keys(&["--since", "1h"]), (vec!["two".to_owned()], true));
    assert_eq!(keys(&["--since", "1h", "-n", "1"]).0, ["two"]);
    assert_eq!(keys(&["--since", "2d"]).0, ["two", "one"]);
    let none = world.run(&["list", "--since", "1ms"]).ok();
    assert!(none.stderr.contains("no such conversation"), "{none:?}");
}
