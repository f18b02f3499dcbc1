//! Killed at every named point of an export, an import and a bundle: nothing half, nothing lost.

use std::path::{Path, PathBuf};

use rejoin_testkit::{Done, World, user, wait_for};
use serde_json::Value;

use super::bundle::{beside, send};
use super::{REJOIN, demo, export, import, path, seen};

/// All that are passed with `fault::point`; two more are reached through the store.
pub(in crate::suite) const POINTS: [&str; 8] = [
    "import_checked",
    "import_done",
    "bundle_begun",
    "bundle_read",
    "bundle_next",
    "bundle_noted",
    "bundle_written",
    "bundle_removed",
];

#[test]
fn an_import_is_whole_or_not_at_all() {
    let from = demo(2);
    let file = export(&from);
    for (point, there) in [
        ("import_checked", 0),
        ("import_chunks", 0),
        ("import_rows", 0),
        ("import_done", 1),
    ] {
        let mut world = World::new(REJOIN);
        world.set("REJOIN_FAIL", point);
        assert_eq!(import(&world, &file, &[]).code, -9, "{point}");
        world.unset("REJOIN_FAIL");
        assert_eq!(seen(&world).len(), there, "{point}");
        let again = import(&world, &file, &[]).ok().json();
        let expected = if there == 1 { "same" } else { "imported" };
        assert_eq!(again["outcome"], expected, "{point}");
        let third = world.say(3, &[]);
        assert_eq!(third["verdict"], "restored", "{point}: {third}");
    }
}

#[test]
fn an_export_is_whole_or_not_there() {
    let mut world = demo(2);
    let file = world.root().join("out");
    for point in ["export_chunks", "export_rows"] {
        std::fs::write(&file, "what was there before").unwrap();
        world.set("REJOIN_FAIL", point);
        assert_eq!(world.run(&["export", "k", "-o", path(&file)]).code, -9);
        world.unset("REJOIN_FAIL");
        let there = std::fs::read_to_string(&file).unwrap();
        assert_eq!(there, "what was there before", "{point}");
        world.run(&["export", "k", "-o", path(&file)]).ok();
        let other = World::new(REJOIN);
        import(&other, &file, &[]).ok();
    }
    let left = std::fs::read_dir(world.root()).unwrap().flatten();
    let left = left.filter(|f| f.file_name().to_string_lossy().contains("tmp"));
    assert_eq!(left.count(), 0);
}

/// Wherever a turn on a bundle is killed: the message was not accepted, or it is answered once.
#[test]
fn a_bundle_survives_every_point() {
    let mut world = World::new(REJOIN);
    let file = world.root().join("talk");
    let _first = send(&world, &file, 1, &["-a", "demo"]).ok();
    let turn = [
        "after_accept",
        "after_begin",
        "mid_stream",
        "before_finish",
        "after_finish",
    ];
    let export = ["export_chunks", "export_rows", "import_rows"];
    let bundle = POINTS.iter().filter(|point| point.starts_with("bundle"));
    let mut said = vec![1];
    for (n, point) in (2..)
        .step_by(2)
        .zip(turn.iter().chain(&export).chain(bundle))
    {
        world.set("REJOIN_FAIL", point);
        let died = send(&world, &file, n, &[]);
        world.unset("REJOIN_FAIL");
        assert_eq!(died.code, -9, "{point}: {died:?}");
        wait_for("its agent to end", 20, || {
            world.leftovers().is_empty().then_some(())
        });
        let before = ["import_rows", "bundle_begun", "bundle_read"];
        if !before.contains(point) {
            said.push(n);
        }
        let next = send(&world, &file, n + 1, &[]).ok().json();
        said.push(n + 1);
        let text = next["text"].as_str().unwrap();
        let told: Vec<usize> = (1..=n + 1).filter(|n| text.contains(&user(*n))).collect();
        assert_eq!(told, said, "{point}: {text}");
        assert_eq!(
            text.matches("userword-").count(),
            said.len(),
            "{point}: {text}"
        );
        assert_eq!(beside(&file), Vec::<PathBuf>::new(), "{point}");
        assert_eq!(world.leftovers(), [], "{point}");
    }
    assert_statuses(&world, &file);
}

fn assert_statuses(world: &World, file: &Path) {
    let shown = import(world, file, &[]).ok().json();
    let id = shown["conversation_id"].as_str().unwrap();
    let shown = world.run(&["show", id, "--json"]).ok().json();
    for turn in shown["turns"].as_array().unwrap() {
        assert_eq!(turn["status"], "succeeded", "{turn}");
    }
}

/// Killed with its message, changed by somebody else, and nobody's words are lost.
#[test]
fn what_was_killed_and_what_came_meanwhile_are_both_kept() {
    let mut world = World::new(REJOIN);
    let file = world.root().join("talk");
    let _first = send(&world, &file, 1, &["-a", "demo"]).ok();
    let theirs = world.root().join("theirs");
    std::fs::copy(&file, &theirs).unwrap();
    let elsewhere = World::new(REJOIN);
    let _theirs = send(&elsewhere, &theirs, 22, &[]).ok();
    world.set("REJOIN_FAIL", "bundle_next");
    assert_eq!(send(&world, &file, 2, &[]).code, -9);
    world.unset("REJOIN_FAIL");
    std::fs::rename(&theirs, &file).unwrap();
    let changed = std::fs::read(&file).unwrap();
    let refused = send(&world, &file, 3, &[]);
    assert_diverged(&world, &refused, &file, &changed);
    // The next one goes on with what is there.
    let text = send(&world, &file, 4, &[]).ok().json()["text"].to_string();
    assert!(
        text.contains(&user(22)) && !text.contains(&user(3)),
        "{text}"
    );
}

#[track_caller]
pub(super) fn assert_diverged(world: &World, refused: &Done, file: &Path, changed: &[u8]) {
    assert_eq!(refused.code, 4, "{refused:?}");
    assert_eq!(std::fs::read(file).unwrap(), changed, "it was touched");
    let ours = PathBuf::from(format!("{}.ours-1", file.display()));
    let said = format!("{}{}", refused.stdout, refused.stderr);
    assert!(said.contains(path(&ours)), "{refused:?}");
    let copy = import(world, &ours, &["--as-copy"]).ok().json();
    let shown: Value = world
        .run(&["show", copy["handle"].as_str().unwrap(), "--json"])
        .ok()
        .json();
    let shown = shown["messages"].to_string();
    assert!(
        shown.contains(&user(2)) && !shown.contains(&user(22)),
        "{shown}"
    );
}
