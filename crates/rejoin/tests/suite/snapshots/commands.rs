//! `snapshot list|save|restore|pin|unpin` and `sweep`: what they do and what they say.

use insta::assert_snapshot;
use rejoin_testkit::{World, sql};
use serde_json::Value;

use super::REJOIN;
use crate::suite::terminal::{masked, steady};

fn talked(turns: usize) -> World {
    let world = steady(World::new(REJOIN));
    for n in 0..turns {
        let text = format!("message {n}");
        let turn = world.run(&["send", "-a", "demo", "-k", "tea", "--json", &text]);
        assert_eq!(turn.ok().json()["saved"], "stored");
    }
    world
}

fn list(world: &World) -> Vec<Value> {
    let listed = world.run(&["snapshot", "list", "--json"]).ok().json();
    listed["snapshots"].as_array().unwrap().clone()
}

fn short(snapshot: &Value) -> String {
    snapshot["id"].as_str().unwrap()[28..].to_owned()
}

/// Ids are drawn anew by every test, and sizes follow what else is.
fn plain(world: &World, text: &str) -> String {
    // First, because what is left of an id may look like a time.
    let mut text = text.to_owned();
    for (n, snapshot) in list(world).iter().enumerate() {
        text = text.replace(&short(snapshot), &format!("[id {n}]"));
    }
    text = masked(world, &text);
    if let Some(machine) = list(world).first().and_then(|s| s["machine"].as_str()) {
        text = text.replace(&format!("by {machine}"), "by [machine]");
    }
    let number = |word: &str| word.parse::<f64>().is_ok();
    let mut lines = vec![];
    for line in text.lines() {
        let mut words: Vec<String> = vec![];
        for word in line.split_whitespace() {
            let unit = matches!(word.trim_end_matches([',', ':']), "KB" | "MB" | "bytes");
            match words.last_mut() {
                Some(before) if unit && number(before.trim_start_matches('+')) => {
                    "N".clone_into(before);
                }
                Some(_) | None => {}
            }
            words.push(word.to_owned());
        }
        lines.push(words.join(" "));
    }
    lines.join("\n")
}

#[test]
fn the_list() {
    let world = talked(2);
    let of_it = world
        .run(&["snapshot", "list", "tea", "--json"])
        .ok()
        .json();
    assert_eq!(of_it["snapshots"], Value::from(list(&world)));
    let newest = &list(&world)[0];
    assert_eq!(
        (&newest["state"], &newest["messages"]),
        (&"confirmed".into(), &4.into())
    );
    assert_eq!(newest["pinned"], false);
    let one = world
        .run(&["snapshot", "list", "-n", "1", "--json"])
        .ok()
        .json();
    assert_eq!(one["snapshots"].as_array().unwrap().len(), 1);
    let shown = world.run(&["snapshot", "list"]).ok().stdout;
    assert_snapshot!(plain(&world, &shown), @r"
    [id 0] tmqx demo now 4 messages N bytes N bytes by [machine]
    [id 1] tmqx demo now 2 messages N bytes N bytes by [machine]
    ");
    let none = steady(World::new(REJOIN)).run(&["snapshot", "list"]).ok();
    assert_eq!(none.stdout, "");
    assert_snapshot!(none.stderr, @"no session is kept yet; the end of a turn keeps its session");
}

/// Retention: the older ones go, tombstones and what is pinned stay; the rest can be restored. (B-12)
#[test]
fn a_sweep() {
    let mut world = talked(3);
    let [third, second, first] = list(&world).try_into().unwrap();
    world.run(&["snapshot", "pin", &short(&first)]).ok();
    assert_eq!(list(&world)[2]["pinned"], true);
    let kept = world.run(&["sweep", "--dry-run", "--json"]).ok().json();
    assert_eq!(
        (&kept["expired"], &kept["kept"]),
        (&serde_json::json!([]), &3.into())
    );

    world.set("REJOIN_SNAPSHOTS_KEEP_OLDER", "0s");
    let planned = world.run(&["sweep", "--dry-run", "--json"]).ok().json();
    assert_eq!(planned["expired"][0]["id"], second["id"]);
    assert_eq!(
        (&planned["kept"], &planned["chunks"]),
        (&2.into(), &0.into())
    );
    assert_eq!(planned["waiting"], 1, "its chunk is too new to go");
    // As if it had been written long ago.
    sql(&world.data().join("rejoin.db"), "update chunks set at = 1");
    let dry = world.run(&["sweep", "--dry-run"]).ok();
    assert_snapshot!(plain(&world, &format!("{}{}", dry.stdout, dry.stderr)), @r"
    [id 1] demo now N bytes not the newest of its session, and older than keep_older allows
    would give up 1 snapshot, keep 2 snapshots, and free N bytes in 1 chunk
    ");
    assert_eq!(
        list(&world)[1]["state"],
        "confirmed",
        "a dry run changes nothing"
    );
    let done = world.run(&["sweep"]).ok();
    assert_snapshot!(plain(&world, &format!("{}{}", done.stdout, done.stderr)), @r"
    [id 1] demo now N bytes not the newest of its session, and older than keep_older allows
    gave up 1 snapshot, kept 2 snapshots, and freed N bytes in 1 chunk
    ");
    let states: Vec<_> = list(&world).iter().map(|s| s["state"].clone()).collect();
    assert_eq!(states, ["confirmed", "expired", "confirmed"]);
    let again = world.run(&["sweep", "--json"]).ok().json();
    assert_eq!(
        (&again["expired"], &again["chunks"]),
        (&serde_json::json!([]), &0.into())
    );
    let checked = world
        .run(&["snapshot", "verify", "--read-data", "--json"])
        .ok()
        .json();
    assert_eq!(
        (&checked["snapshots"], &checked["chunks"]),
        (&2.into(), &2.into())
    );

    world.run(&["snapshot", "unpin", &short(&first)]).ok();
    world.run(&["delete", "tea", "--yes"]).ok();
    sql(&world.data().join("rejoin.db"), "update chunks set at = 1");
    let freed = world.run(&["sweep", "--json"]).ok().json();
    assert_eq!((&freed["chunks"], &freed["kept"]), (&2.into(), &0.into()));
    assert_eq!(third["state"], "confirmed");
}

#[test]
fn what_cannot_be_pinned() {
    let mut world = talked(2);
    let said = |world: &World, args: &[&str]| {
        let done = world.run(args);
        format!("{}: {}", done.code, plain(world, &done.stderr))
    };
    assert_snapshot!(said(&world, &["snapshot", "pin", "deadbeef"]), @r"
    3: error: there is no snapshot deadbeef
    try: rejoin snapshot list
    ");
    assert_snapshot!(said(&world, &["snapshot", "pin", "tea"]), @r"
    3: error: there is no snapshot tea
    try: rejoin snapshot list
    ");
    let older = short(&list(&world)[1]);
    world.set("REJOIN_SNAPSHOTS_KEEP_OLDER", "0s");
    world.run(&["sweep"]).ok();
    assert_snapshot!(said(&world, &["snapshot", "pin", &older]), @r"
    4: error: the snapshot [id 1] has expired; nothing is left of it to keep
    try: rejoin snapshot list
    ");
}

/// Saved by hand where it could not be at the end of its turn; and put back without a turn.
#[test]
fn saved_and_put_back_by_hand() {
    let world = talked(2);
    let db = world.data().join("rejoin.db");
    sql(
        &db,
        "delete from snapshots; delete from chunks; update pins set unsaved = 'no space'",
    );
    let doctor = world.run(&["doctor", "--json"]).json();
    assert_eq!(
        doctor["snapshots"]["unsaved"][0]["why"], "no space",
        "{doctor}"
    );
    let saved = world
        .run(&["snapshot", "save", "tea", "--json"])
        .ok()
        .json();
    assert_eq!(saved["saved"], "stored");
    assert_eq!(list(&world).len(), 1);
    let doctor = world.run(&["doctor", "--json"]).json();
    assert_eq!(doctor["snapshots"]["unsaved"], serde_json::json!([]));

    let here = world
        .run(&["snapshot", "restore", "tea", "--json"])
        .ok()
        .json();
    assert_eq!(here["restored"], false);
    let file = here["file"].as_str().unwrap();
    let before = std::fs::read(file).unwrap();
    std::fs::remove_dir_all(world.home().join(".rejoin-demo")).unwrap();
    let back = world
        .run(&["snapshot", "restore", "tea", "--json"])
        .ok()
        .json();
    assert_eq!(
        (&back["restored"], &back["file"]),
        (&true.into(), &here["file"])
    );
    assert_eq!(std::fs::read(file).unwrap(), before);

    let to = world.root().join("look/at");
    let id = short(&list(&world)[0]);
    let to = to.to_str().unwrap();
    let out = world.run(&["snapshot", "restore", "--id", &id, "--to", to, "--json"]);
    let files = out.ok().json()["files"].clone();
    assert_eq!(std::fs::read(files[0].as_str().unwrap()).unwrap(), before);
    // What lies there is somebody's.
    std::fs::write(files[0].as_str().unwrap(), "mine").unwrap();
    let again = world.run(&["snapshot", "restore", "--id", &id, "--to", to]);
    assert_eq!(again.code, 4, "{again:?}");
    assert_eq!(std::fs::read(files[0].as_str().unwrap()).unwrap(), b"mine");
    let half = world.run(&["snapshot", "restore", "--id", &id]);
    assert_eq!(half.code, 2, "{half:?}");
    let nothing = world.run(&["snapshot", "save", "tea", "-a", "codex", "--json"]);
    assert_eq!(nothing.code, 4, "{nothing:?}");
}
