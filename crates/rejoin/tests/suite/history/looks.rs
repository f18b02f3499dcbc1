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
      demo: its session has seen what was changed, the next turn is told again (history_changed)
    ");
    insta::assert_snapshot!(clean(said(&["truncate", "k:3"])), @r"
    2 messages removed, from tmqx:3 on
      demo: its session has seen what was changed, the next turn is told again (history_changed)
    ");
    insta::assert_snapshot!(clean(said(&["undo", "k"])), @r"
    tmqx: truncate taken back, 2 messages restored
      demo: its session can be resumed again
    ");
    said(&["edit", "k:1", "uno"]);
    said(&["truncate", "k:3"]);
    let all = clean(said(&["show", "k", "--all"]));
    assert!(
        all.contains("removed") && all.contains("edited") && all.contains(": one"),
        "{all}"
    );
}
