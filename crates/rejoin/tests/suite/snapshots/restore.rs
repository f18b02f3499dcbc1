//! The session is gone, stale or damaged, and comes back.

use std::fs;
use std::path::Path;

use rejoin_testkit::{CLAUDE_NEW, Chronicle, Talk, World, on_every_cli};
use serde_json::Value;

use super::REJOIN;

on_every_cli!(home_and_folder_vanish);
rejoin_testkit::on_cli!(claude_2_1_20, CLAUDE_20, home_and_folder_vanish);

mod quick {
    use super::{into_another_folder, what_is_damaged_is_put_back};
    rejoin_testkit::on_every_quick_cli!(into_another_folder, what_is_damaged_is_put_back);
}

/// B-01, B-05, B-06: only the store is left.
fn home_and_folder_vanish(world: World) {
    let mut story = Chronicle::begun(world);
    story.resumes(&[]);
    let file = story.session_file();
    let captured = fs::read(&file).unwrap();
    story.world.lose_the_machine();
    assert!(!file.exists());
    // Byte for byte what was captured, before anybody goes on with it.
    let done = story
        .world
        .run(&["snapshot", "restore", "k", "--json"])
        .ok();
    assert_eq!(done.json()["restored"], true, "{done:?}");
    assert!(fs::read(&file).unwrap() == captured);
    story.resumes(&[]);
    story.world.lose_the_machine();
    let turn = story.restores(&[]);
    assert!(
        turn["summary"]
            .as_str()
            .unwrap()
            .starts_with("rejoin: restored from snapshot ")
    );
    assert_eq!(turn["saved"], "stored");
    story.resumes(&[]);
}

fn into_another_folder(world: World) {
    let mut story = Chronicle::begun(world);
    story.resumes(&[]);
    story.world.lose_the_machine();
    let other = story.world.root().join("another folder, named differently");
    fs::create_dir(&other).unwrap();
    let there = other.to_str().unwrap().to_owned();
    let turn = story.restores(&["-w", &there]);
    let summary = turn["summary"].as_str().unwrap();
    assert!(summary.contains(", folder moved"), "{summary}");
    story.resumes(&["-w", &there]);
    // The folder it came from is another one now, and the session is here.
    let turn = story.turn(
        rejoin_testkit::Continued::Reseeded("other_folder"),
        &["-w", story.world.work().to_str().unwrap()],
    );
    assert_eq!(turn["sent"]["left_out"], 0);
}

fn what_is_damaged_is_put_back(world: World) {
    let mut story = Chronicle::begun(world);
    story.resumes(&[]);
    let file = story.session_file();
    let older = fs::read(&file).unwrap();
    story.resumes(&[]);
    // An older state of it: nothing is lost, so nothing is kept aside.
    fs::write(&file, &older).unwrap();
    story.restores(&[]);
    assert_eq!(beside(&file), Vec::<String>::new());

    fs::remove_file(&file).unwrap();
    story.restores(&[]);

    // Bytes that are nowhere else are kept.
    fs::write(&file, "somebody's own").unwrap();
    let turn = story.restores(&[]);
    let [aside] = &beside(&file)[..] else {
        panic!("{:?}", beside(&file))
    };
    assert!(turn["summary"].as_str().unwrap().contains(aside.as_str()));
    let aside = file.parent().unwrap().join(aside);
    assert_eq!(fs::read(aside).unwrap(), b"somebody's own");
    story.resumes(&[]);
}

/// What lies beside a session under its name.
fn beside(file: &Path) -> Vec<String> {
    let name = file.file_name().unwrap().to_str().unwrap();
    let entries = fs::read_dir(file.parent().unwrap()).unwrap().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|other| other.starts_with(name) && other != name)
        .collect();
    names.sort();
    names
}

/// B-03: what its sub-agents said and long results come along.
#[test]
fn what_else_belongs_to_it_comes_along() {
    let Some(world) = World::claude(REJOIN, CLAUDE_NEW) else {
        return;
    };
    let mut story = Chronicle::begun(world);
    let file = story.session_file();
    let session = story.sessions.last().unwrap().clone();
    let part = file.with_extension("").join("subagents");
    let tasks = story.world.home().join(".claude/tasks").join(&session);
    for (folder, name, text) in [
        (&part, "agent-1.jsonl", "{\"isSidechain\":true}\n"),
        (&part, "agent-1.meta.json", "{}"),
        (&tasks, "1.json", "{\"subject\":\"x\"}"),
    ] {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join(name), text).unwrap();
    }
    // A link is not followed, and not kept.
    std::os::unix::fs::symlink("/etc/hostname", part.join("link")).unwrap();
    story.resumes(&[]);
    story.resumes(&[]);
    story.world.lose_the_machine();
    // What lies there is somebody's.
    fs::create_dir_all(&tasks).unwrap();
    fs::write(tasks.join("1.json"), "mine").unwrap();
    story.restores(&[]);
    assert_eq!(fs::read(tasks.join("1.json.aside-0")).unwrap(), b"mine");
    assert_eq!(
        fs::read(part.join("agent-1.jsonl")).unwrap(),
        b"{\"isSidechain\":true}\n"
    );
    assert_eq!(fs::read(part.join("agent-1.meta.json")).unwrap(), b"{}");
    assert_eq!(
        fs::read(tasks.join("1.json")).unwrap(),
        b"{\"subject\":\"x\"}"
    );
    assert!(!part.join("link").exists());
    story.resumes(&[]);
}

/// After a failed turn the session is cut back, and that is what comes back.
#[test]
fn after_a_failed_turn() {
    let Some(world) = World::claude(REJOIN, CLAUDE_NEW) else {
        return;
    };
    let mut talk = Talk::begin(world);
    talk.good("started", &[]);
    talk.bad("#s:e400", &[], ("failed", "invalid_request", 1));
    talk.world.lose_the_machine();
    talk.good("restored", &[]);
    talk.bad(
        "#s:slow",
        &["--timeout", "2s"],
        ("failed", "time_limit", 124),
    );
    talk.world.lose_the_machine();
    talk.good("restored", &[]);
    talk.good("resumed", &[]);
}

/// An older snapshot serves if the newest could not be taken; what came since is told.
#[test]
fn an_older_snapshot_is_caught_up() {
    let Some(world) = World::claude(REJOIN, CLAUDE_NEW) else {
        return;
    };
    let mut story = Chronicle::begun(world);
    story.resumes(&[]);
    story.world.set("REJOIN_SNAPSHOTS_ENABLED", "false");
    let turn = story.resumes(&[]);
    assert_eq!(turn["saved"], "local_only");
    story.world.unset("REJOIN_SNAPSHOTS_ENABLED");
    story.world.lose_the_machine();
    let turn: Value = story.restores(&[]);
    assert_eq!(turn["sent"]["resumed"], 4, "{turn:#}");
    assert_eq!(turn["sent"]["caught_up"], 2, "{turn:#}");
    story.resumes(&[]);
}

/// Without snapshots it is as before: told.
#[test]
fn switched_off() {
    let Some(mut world) = World::claude(REJOIN, CLAUDE_NEW) else {
        return;
    };
    world.set("REJOIN_SNAPSHOTS_ENABLED", "false");
    let mut story = Chronicle::begun(world);
    story.world.lose_the_machine();
    story.reseeds("session_missing", &[]);
}

/// A link that somebody planted in the place of the session's folder leads the write nowhere else.
#[test]
fn a_session_is_not_put_through_a_planted_link() {
    let Some(world) = World::claude(REJOIN, CLAUDE_NEW) else {
        return;
    };
    let story = Chronicle::begun(world);
    let file = story.session_file();
    let folder = file.parent().unwrap().to_path_buf();
    let elsewhere = story.world.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::rename(&folder, story.world.root().join("was")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &folder).unwrap();
    let done = story.world.send(2, "#s:a2", &[]);
    assert_ne!(done.code, 0, "{done:?}");
    let error = done.json()["error"]["message"].to_string();
    assert!(error.contains("is a link"), "{error}");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    // Without it, the session comes back; a link above the home stays the user's own.
    fs::remove_file(&folder).unwrap();
    let home = story.world.home().join(".claude");
    let moved = story.world.root().join("claude-home");
    fs::rename(&home, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &home).unwrap();
    let turn = story.world.say(3, &[]);
    assert_eq!(turn["verdict"], "restored", "{turn:#}");
}
