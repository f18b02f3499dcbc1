//! `send --bundle`: a conversation that needs neither daemon nor database.

use std::path::{Path, PathBuf};

use rejoin_testkit::{
    CLAUDE_OLD, Done, Model, World, answer, assert_shown, on_every_quick_cli, said, slowly, user,
};
use serde_json::Value;

use super::killed::assert_diverged;
use super::{REJOIN, code, demo, export, path};

/// Sends message N to the conversation `k` in a file.
pub(super) fn send(world: &World, file: &Path, n: usize, more: &[&str]) -> Done {
    world.send(
        n,
        &format!("#s:a{n}"),
        &[&["--bundle", path(file)], more].concat(),
    )
}

/// What lies beside a bundle, and is not it.
pub(super) fn beside(file: &Path) -> Vec<PathBuf> {
    let name = file.file_name().unwrap().to_str().unwrap();
    let all = std::fs::read_dir(file.parent().unwrap()).unwrap().flatten();
    let all = all.map(|entry| entry.path());
    let is_of_it = |path: &PathBuf| {
        let other = path.file_name().unwrap().to_str().unwrap();
        other != name && other.trim_start_matches('.').starts_with(name)
    };
    all.filter(is_of_it).collect()
}

/// Another machine: nothing but the file is the same.
fn wipe(world: &mut World) {
    world.lose_the_machine();
    std::fs::remove_dir_all(world.data()).unwrap();
    std::fs::create_dir(world.data()).unwrap();
}

/// B-01, B-05, B-29: two turns, everything but the file gone, and the session goes on.
fn only_the_file_is_left(mut world: World) {
    let file = world.root().join("talk");
    let first = send(&world, &file, 1, &[]).ok().json();
    assert_eq!(
        (&first["verdict"], &first["saved"]),
        (&"started".into(), &"stored".into())
    );
    for n in 2..=3 {
        wipe(&mut world);
        let turn = send(&world, &file, n, &[]).ok().json();
        assert_eq!(turn["verdict"], "restored", "{turn}");
        let words: Vec<String> = said(1..n).into_iter().chain([user(n)]).collect();
        assert_shown(&world.model.last(), &words);
    }
    assert_eq!(beside(&file), Vec::<PathBuf>::new());
    assert_eq!(world.leftovers(), []);
    drop(world);
}

on_every_quick_cli!(only_the_file_is_left);

#[test]
fn the_demo_agent_knows_what_was_said() {
    let world = World::new(REJOIN);
    let file = world.root().join("talk");
    for n in 1..=4 {
        let turn = send(&world, &file, n, &["-a", "demo"]).ok().json();
        let text = turn["text"].as_str().unwrap();
        assert_eq!(text.matches("userword-").count(), n, "{text}");
        assert_eq!(beside(&file), Vec::<PathBuf>::new());
    }
    // Nothing was kept elsewhere.
    assert!(!world.data().join("rejoin.db").exists());
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn an_idempotency_key_travels_along() {
    let world = World::new(REJOIN);
    let file = world.root().join("talk");
    let key = ["-a", "demo", "--idempotency-key", "once"];
    let first = send(&world, &file, 1, &key).ok().json();
    let bytes = std::fs::read(&file).unwrap();
    let again = send(&world, &file, 1, &key).ok().json();
    assert_eq!(first["turn_id"], again["turn_id"]);
    assert_eq!(
        std::fs::read(&file).unwrap(),
        bytes,
        "nothing was to be written"
    );
    let reused = send(&world, &file, 2, &key);
    assert_eq!(code(&reused), (4, "key_reused".into()));
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
    assert_eq!(beside(&file), Vec::<PathBuf>::new());
}

/// It is looked at where it lies, and stays as it is.
#[test]
fn a_look_at_it() {
    let world = World::new(REJOIN);
    let file = world.root().join("talk");
    let none = world.run(&["show", "--bundle", path(&file), "--json"]);
    assert_eq!(code(&none), (3, "not_found".into()));
    let turn = send(&world, &file, 1, &["-a", "demo"]).ok().json();
    let bytes = std::fs::read(&file).unwrap();
    let shown = world
        .run(&["show", "--bundle", path(&file), "--json"])
        .ok()
        .json();
    assert_eq!(shown["messages"].as_array().unwrap().len(), 2);
    let explained = world.run(&["explain", "--bundle", path(&file), "--json"]);
    assert_eq!(explained.ok().json()["turn_id"], turn["turn_id"]);
    let next = world.run(&["explain", "--next", "--bundle", path(&file), "--json"]);
    assert_eq!(next.ok().json()["verdict"], "resumed");
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
    assert_eq!(beside(&file), Vec::<PathBuf>::new());
}

#[test]
fn an_archive_is_a_bundle_and_a_bundle_an_archive() {
    let world = demo(1);
    let file = export(&world);
    let elsewhere = World::new(REJOIN);
    let turn = send(&elsewhere, &file, 2, &[]).ok().json();
    assert_eq!(turn["verdict"], "restored", "{turn}");
    let taken = super::import(&world, &file, &[]).ok().json();
    assert_eq!(taken["outcome"], "taken_over");
    let text = world.say(3, &[])["text"].to_string();
    assert_eq!(text.matches("userword-").count(), 3, "{text}");
}

#[test]
fn what_is_refused_leaves_the_file_alone() {
    let world = World::new(REJOIN);
    let file = world.root().join("talk");
    let missing = send(&world, &file, 1, &["-a", "nobody"]);
    assert_eq!(code(&missing), (3, "agent_not_found".into()));
    assert!(!file.exists());
    assert_eq!(beside(&file), Vec::<PathBuf>::new());
    let _first = send(&world, &file, 1, &["-a", "demo"]).ok();
    let bytes = std::fs::read(&file).unwrap();
    let other = world.run(&[
        "send",
        "-k",
        "other",
        "--bundle",
        path(&file),
        "--json",
        "hello",
    ]);
    assert_eq!(code(&other), (4, "conflict".into()));
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
    let nowhere = world.root().join("no/such/talk");
    assert_eq!(
        code(&send(&world, &nowhere, 1, &["-a", "demo"])),
        (2, "usage".into())
    );
    assert!(!world.root().join("no").exists());
    let conflicting = world.run(&[
        "send",
        "-c",
        "x",
        "--bundle",
        path(&file),
        "--json",
        "hello",
    ]);
    assert_eq!(conflicting.code, 2);
    // Cut short, and something else altogether.
    for (damaged, exit) in [
        (&bytes[..bytes.len() - 9], 11),
        (&b"hello"[..], 2),
        (b"", 2),
    ] {
        std::fs::write(&file, damaged).unwrap();
        let done = send(&world, &file, 2, &[]);
        assert_eq!(done.code, exit, "{done:?}");
        assert_eq!(std::fs::read(&file).unwrap(), damaged);
        assert_eq!(beside(&file), Vec::<PathBuf>::new());
    }
    // Whole at its end, and not before.
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 1;
    std::fs::write(&file, &flipped).unwrap();
    assert_eq!(send(&world, &file, 2, &[]).code, 11);
    assert_eq!(std::fs::read(&file).unwrap(), flipped);
    assert_eq!(beside(&file), Vec::<PathBuf>::new());
}

/// A turn that fails is in the bundle as well: its message stays, unanswered.
#[test]
fn a_turn_that_fails_is_kept() {
    let Some(world) = World::claude(REJOIN, CLAUDE_OLD) else {
        return;
    };
    let file = world.root().join("talk");
    let _first = send(&world, &file, 1, &[]).ok();
    let failed = world.send(2, "#s:e400", &["--bundle", path(&file)]);
    assert_ne!(failed.code, 0);
    let third = send(&world, &file, 3, &[]).ok().json();
    let shown = world.model.last().history().to_string();
    assert!(shown.contains(&user(2)), "{third} {shown}");
}

/// A folder that somebody else put there is not written into.
#[test]
fn a_link_where_its_store_would_be() {
    let world = World::new(REJOIN);
    let file = world.root().join("talk");
    let elsewhere = world.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, world.root().join("talk.rejoin")).unwrap();
    let refused = send(&world, &file, 1, &["-a", "demo"]);
    assert_eq!(code(&refused), (6, "unavailable".into()));
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
    // Behind a link of one's own lies the file that is meant.
    std::fs::remove_file(world.root().join("talk.rejoin")).unwrap();
    let _first = send(&world, &file, 1, &["-a", "demo"]).ok();
    let link = world.root().join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let _second = send(&world, &link, 2, &[]).ok();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    let text = send(&world, &file, 3, &[]).ok().json()["text"].to_string();
    assert_eq!(text.matches("userword-").count(), 3, "{text}");
}

/// Two at once: one after the other, or the second one not at all.
#[test]
fn two_at_once() {
    let model = || Model::scripted([("late", vec![slowly(&answer(2), 20)])]);
    let Some(world) = World::claude_with(REJOIN, CLAUDE_OLD, model) else {
        return;
    };
    let file = world.root().join("talk");
    let _first = send(&world, &file, 1, &[]).ok();
    let running = world.start(2, "#s:late", &["--bundle", path(&file)]);
    world.wait_until_asked(&user(2));
    let busy = send(&world, &file, 3, &["--if-busy", "fail"]);
    assert_eq!(code(&busy), (4, "busy".into()));
    let third = send(&world, &file, 3, &[]).ok().json();
    Done::of(running).ok();
    assert_eq!(third["text"], answer(3));
    let words: Vec<String> = said(1..=2).into_iter().chain([user(3)]).collect();
    assert_shown(&world.model.last(), &words);
    assert_eq!(beside(&file), Vec::<PathBuf>::new());
}

/// The file is another one when the turn is done: the answer is told, nothing is overwritten.
#[test]
fn changed_while_the_turn_ran() {
    let model = || Model::scripted([("late", vec![slowly(&answer(2), 20)])]);
    let Some(world) = World::claude_with(REJOIN, CLAUDE_OLD, model) else {
        return;
    };
    let file = world.root().join("talk");
    let _first = send(&world, &file, 1, &[]).ok();
    let theirs = world.root().join("theirs");
    std::fs::copy(&file, &theirs).unwrap();
    let elsewhere = World::of(REJOIN, world.cli).unwrap();
    let _theirs = send(&elsewhere, &theirs, 22, &[]).ok();
    let running = world.start(2, "#s:late", &["--bundle", path(&file)]);
    world.wait_until_asked(&user(2));
    std::fs::rename(&theirs, &file).unwrap();
    let changed = std::fs::read(&file).unwrap();
    let done = Done::of(running);
    let turn: Value = done.json();
    assert_eq!(
        (&turn["text"], &turn["saved"]),
        (&answer(2).into(), &"failed".into())
    );
    assert_diverged(&world, &done, &file, &changed);
}

/// No room for it: the answer is told, what was said is kept beside it and taken in next time.
#[test]
fn a_file_that_cannot_be_written() {
    let mut world = World::new(REJOIN);
    let file = world.root().join("talk");
    let _first = send(&world, &file, 1, &["-a", "demo"]).ok();
    world.set("REJOIN_FAIL", "bundle_begun");
    assert_eq!(send(&world, &file, 2, &[]).code, -9);
    world.unset("REJOIN_FAIL");
    let mut command = world.command(&[
        "send",
        "-k",
        "k",
        "--json",
        "--bundle",
        path(&file),
        "userword-2-end",
    ]);
    // A folder where the next one would be put: it cannot be made.
    let folder = PathBuf::from(format!("{}.rejoin", file.display()));
    std::fs::create_dir(folder.join("next")).unwrap();
    let done = Done::of(command.spawn().unwrap());
    let turn = done.json();
    assert_eq!(
        (done.code, &turn["saved"]),
        (0, &"failed".into()),
        "{done:?}"
    );
    assert!(done.stderr.contains("is kept in"), "{done:?}");
    let unsaved = send(&world, &file, 3, &["--must-save"]);
    assert_eq!(unsaved.code, 10, "{unsaved:?}");
    std::fs::remove_dir(folder.join("next")).unwrap();
    let saved = send(&world, &file, 4, &["--must-save"]).ok().json();
    let text = saved["text"].to_string();
    assert_eq!(text.matches("userword-").count(), 4, "{text}");
    assert_eq!(beside(&file), Vec::<PathBuf>::new());
}
