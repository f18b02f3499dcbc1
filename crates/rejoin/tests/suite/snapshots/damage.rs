//! A snapshot that is not what was captured is never used, and that is said.

use rejoin_testkit::{CLAUDE_NEW, Chronicle, World, sql};

use super::REJOIN;

/// Lets the session vanish, changes the store, and sends.
fn after(statement: &str, how: impl Fn(&mut Chronicle)) {
    let Some(world) = World::claude(REJOIN, CLAUDE_NEW) else {
        return;
    };
    let mut story = Chronicle::begun(world);
    story.resumes(&[]);
    std::fs::remove_file(story.session_file()).unwrap();
    sql(&story.world.data().join("rejoin.db"), statement);
    how(&mut story);
}

const FIRST: &str = "(select name from chunks order by at limit 1)";
const NEWEST: &str = "(select max(id) from snapshots)";

fn damaged(statement: &str) {
    after(statement, |story| {
        story.reseeds("snapshot_damaged", &[]);
    });
}

#[test]
fn a_flipped_bit_in_every_chunk() {
    for at in ["1", "length(body) / 2", "length(body)"] {
        damaged(&format!(
            "update chunks set body = cast(substr(body, 1, {at} - 1) || x'5a' || substr(body, {at} + 1) as blob)"
        ));
    }
}

#[test]
fn a_chunk_cut_short() {
    damaged("update chunks set body = substr(body, 1, length(body) - 1)");
    damaged("update chunks set body = x''");
}

#[test]
fn a_chunk_that_is_gone() {
    damaged("delete from chunks");
}

/// The newest is damaged: the one before it serves.
#[test]
fn an_older_one_serves() {
    let only_the_newest = "delete from chunks where at = (select max(at) from chunks)";
    after(only_the_newest, |story| {
        let turn = story.restores(&[]);
        assert_eq!(turn["sent"]["caught_up"], 2, "{turn:#}");
    });
}

#[test]
fn a_chunk_in_the_place_of_another() {
    damaged(&format!(
        "update chunks set body = (select body from chunks where name <> {FIRST} limit 1)
            where name = {FIRST};"
    ));
}

#[test]
fn a_manifest_that_was_changed() {
    damaged("update snapshots set manifest = substr(manifest, 1, length(manifest) - 1)");
    damaged("update snapshots set manifest = x'00'");
    damaged("update snapshots set digest = zeroblob(32)");
    let swapped = format!(
        "update snapshots set manifest = (select manifest from snapshots order by id limit 1),
            digest = (select digest from snapshots order by id limit 1) where id = {NEWEST}"
    );
    after(&swapped, |story| {
        // The older one is whole, and says itself that it is older.
        let turn = story.restores(&[]);
        assert_eq!(turn["sent"]["caught_up"], 2, "{turn:#}");
    });
}

/// Expired and never there read differently.
#[test]
fn one_that_was_given_up() {
    after(
        "update snapshots set manifest = null, expired_at = 1, expired_why = 'older than 30d'",
        |story| {
            story.reseeds("snapshot_expired", &[]);
            let page = story.world.run(&["explain", "k:6"]).ok().stdout;
            let why = "session file is gone, and its snapshot was swept";
            assert!(page.contains(why), "{page}");
            let raw = story.world.run(&["explain", "k:6", "--raw"]).ok().stdout;
            assert!(!raw.contains("but there is a snapshot"), "{raw}");
        },
    );
    after("delete from snapshots", |story| {
        story.reseeds("session_missing", &[]);
    });
}

/// A snapshot of a history that is no longer this one does not serve.
#[test]
fn one_of_another_history() {
    after("select 1", |story| {
        let shown = story.world.run(&["show", "k", "--json"]).ok().json();
        let first = shown["messages"][0]["id"].as_str().unwrap();
        story.world.run(&["edit", first, "something else"]).ok();
        story.words.remove(0);
        let turn = story
            .world
            .run(&[
                "send",
                "--json",
                "-k",
                "k",
                "-m",
                story.world.cli.models()[0],
                "hello #s:a9",
            ])
            .ok()
            .json();
        assert_eq!(
            (&turn["verdict"], &turn["reason"]),
            (&"reseeded".into(), &"history_changed".into())
        );
    });
}
