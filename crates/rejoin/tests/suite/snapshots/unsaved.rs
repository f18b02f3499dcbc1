//! A store of snapshots that does not take them: the turn is answered all the same, it is said, and
//! tried again.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use rejoin_testkit::{Chronicle, World, on_both_claudes, sql};

on_both_claudes!(
    a_failed_capture_is_said_and_tried_again,
    a_snapshot_that_the_store_refuses_costs_no_answer,
);

/// B-15, B-26
fn a_failed_capture_is_said_and_tried_again(mut world: World) {
    let blobs = world.root().join("blobs");
    fs::write(&blobs, "in the way").unwrap();
    world.set(
        "REJOIN_BLOBS_URL",
        &format!("file:{}", blobs.to_str().unwrap()),
    );
    let mut story = Chronicle::new(world);
    let turn = story.turn(rejoin_testkit::Continued::Started, &[]);
    assert_eq!(turn["saved"], "failed", "{turn:#}");
    assert!(
        turn["summary"].as_str().unwrap().contains("not saved"),
        "{turn:#}"
    );
    // Answered, but not saved.
    let n = story.next();
    let done = story.world.send(n, &format!("#s:a{n}"), &["--must-save"]);
    assert_eq!(done.code, 10, "{done:?}");
    let turn = done.json();
    assert_eq!(
        (&turn["status"], &turn["saved"]),
        (&"succeeded".into(), &"failed".into())
    );
    story.passed_over(vec![rejoin_testkit::answer(n)]);
    // In another conversation the store answers again: this one is saved with it.
    fs::remove_file(&blobs).unwrap();
    let other = story
        .world
        .run(&["send", "--json", "-k", "other", "hello #s:a99"])
        .ok();
    assert_eq!(other.json()["saved"], "stored", "{other:?}");
    let listed = story
        .world
        .run(&["snapshot", "list", "k", "--json"])
        .ok()
        .json();
    assert_eq!(
        listed["snapshots"].as_array().unwrap().len(),
        1,
        "{listed:#}"
    );
    fs::remove_file(story.session_file()).unwrap();
    let turn = story.restores(&[]);
    assert_eq!(turn["saved"], "stored");
    let mode = fs::metadata(&blobs).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}

/// The turn ends all the same, and the next one is saved.
fn a_snapshot_that_the_store_refuses_costs_no_answer(world: World) {
    let mut story = Chronicle::begun(world);
    let store = story.world.data().join("rejoin.db");
    sql(
        &store,
        "create trigger refused before insert on snapshots begin select raise(abort, 'not today'); end",
    );
    let turn = story.resumes(&[]);
    assert_eq!(turn["saved"], "failed", "{turn:#}");
    sql(&store, "drop trigger refused");
    let turn = story.resumes(&[]);
    assert_eq!(turn["saved"], "stored", "{turn:#}");
}
