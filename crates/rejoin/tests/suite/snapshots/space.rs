//! No room for what is kept, or for what is put back; a home that cannot be written. The turn is
//! answered or fails in one clear sentence, and nothing that is there by half is ever used.

use std::path::Path;

use rejoin_testkit::{CLAUDE_NEW, Chronicle, Continued, World};

use super::REJOIN;
use crate::suite::crashes::disk::Small;

#[track_caller]
fn assert_sound(world: &World) {
    let verified = world.run(&["snapshot", "verify", "--read-data"]);
    assert_eq!(verified.code, 0, "{verified:?}");
}

/// Answered, said, and made good once there is room. (B-15, B-26)
#[test]
fn no_room_to_keep_a_session() {
    let Some(mut world) = World::claude(REJOIN, CLAUDE_NEW) else {
        return;
    };
    let blobs = world.root().join("blobs");
    std::fs::create_dir(&blobs).unwrap();
    let Some(small) = Small::over(&blobs, "4m") else {
        return;
    };
    world.set(
        "REJOIN_BLOBS_URL",
        &format!("file:{}", blobs.to_str().unwrap()),
    );
    let mut story = Chronicle::begun(world);
    // From no room at all to room for a part.
    for leave in [0, 4 << 10, 8 << 10] {
        small.fill(leave);
        let turn = story.resumes(&[]);
        small.empty();
        if leave == 0 {
            assert_eq!(turn["saved"], "failed", "{turn:#}");
            let summary = turn["summary"].as_str().unwrap();
            assert!(summary.contains("not saved: "), "{summary}");
            assert!(summary.contains("No space left"), "{summary}");
        }
        assert_sound(&story.world);
    }
    // What was saved before that is whole, and what was said since is told.
    small.fill(0);
    story.world.lose_the_machine();
    let turn = story.restores(&[]);
    assert_eq!(turn["saved"], "failed", "{turn:#}");
    small.empty();
    assert_sound(&story.world);
    let turn = story.resumes(&[]);
    assert_eq!(turn["saved"], "stored", "{turn:#}");
    assert_sound(&story.world);
    story.world.lose_the_machine();
    let turn = story.restores(&[]);
    assert_eq!(turn["sent"]["caught_up"], 0, "{turn:#}");
}

/// The turn fails before the agent is started, in one clear sentence; what was said is kept for the
/// next, which finds the snapshot as it was.
#[track_caller]
fn cannot_restore(story: &mut Chronicle, (class, why, next): (&str, &str, &str)) {
    let requests = story.world.model.requests().len();
    let turn = story.fails("", &[]);
    assert_eq!(story.world.model.requests().len(), requests);
    let error = &turn["error"];
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("restoring the session: "), "{turn:#}");
    assert!(message.contains(why), "{turn:#}");
    assert_eq!(
        (&error["class"], &error["try"]),
        (&class.into(), &next.into()),
        "{turn:#}"
    );
    assert_eq!(half_restored(&story.world.home()), Vec::<String>::new());
    assert_sound(&story.world);
}

/// Everything of a session that lies in the agent's home.
fn half_restored(home: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(home) else {
        return vec![];
    };
    let beneath = |entry: std::fs::DirEntry| {
        if entry.file_type().unwrap().is_dir() {
            half_restored(&entry.path())
        } else {
            vec![entry.path().display().to_string()]
        }
    };
    let mut files: Vec<String> = entries.flatten().flat_map(beneath).collect();
    files.retain(|file| file.contains(".jsonl"));
    files
}

#[test]
fn no_room_to_put_it_back() {
    let Some(world) = World::claude(REJOIN, CLAUDE_NEW) else {
        return;
    };
    let mut story = Chronicle::new(world);
    story.turn(Continued::Started, &[]);
    story.resumes(&[]);
    story.world.lose_the_machine();
    let Some(small) = Small::over(&story.world.home(), "40m") else {
        return;
    };
    // No room for the folder, for the file, for all of it.
    for leave in [0, 4 << 10, 16 << 10] {
        small.fill(leave);
        cannot_restore(&mut story, ("disk_full", "No space left", "df -h"));
        small.empty();
    }
    story.restores(&[]);
    story.resumes(&[]);
}

#[test]
fn a_home_that_cannot_be_written() {
    let Some(world) = World::claude(REJOIN, CLAUDE_NEW) else {
        return;
    };
    let mut story = Chronicle::new(world);
    story.turn(Continued::Started, &[]);
    story.resumes(&[]);
    story.world.lose_the_machine();
    let Some(small) = Small::over(&story.world.home(), "40m") else {
        return;
    };
    small.writable(false);
    cannot_restore(
        &mut story,
        ("not_started", "Read-only file system", "rejoin doctor"),
    );
    small.writable(true);
    story.restores(&[]);
    story.resumes(&[]);
}
