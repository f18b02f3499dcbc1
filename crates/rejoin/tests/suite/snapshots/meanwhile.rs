//! Sessions captured while a turn runs, on a store that outlives the machine: used only where what was
//! confirmed before could not be saved, and never with what the turn had added. (B-01)

use std::path::Path;
use std::process::Child;

use rejoin_testkit::{
    CLAUDE_325, Chronicle, Continued, Done, World, kill, on_every_quick_cli, user, wait_for,
};
use serde_json::Value;

use super::REJOIN;

// OpenCode's database and Gemini's chats in the long run.
on_every_quick_cli!(what_could_not_be_saved_before);

/// The capture of a turn fails, and in the middle of the next one the machine is gone.
fn what_could_not_be_saved_before(world: World) {
    let Some(mut story) = here(world) else { return };
    story.world.set("REJOIN_BLOBS_URL", "file:/dev/null/no");
    let turn = story.resumes(&[]);
    assert_eq!(turn["saved"], "failed", "{turn:#}");
    story.world.unset("REJOIN_BLOBS_URL");
    let (send, open) = hangs(&story);
    assert_eq!(open["messages"], 4, "{open:#}");
    gone(&mut story, send);
    // The confirmed one is older than this.
    let turn = story.restores(&["-w", &folder(&story)]);
    assert_eq!(
        (&turn["sent"]["resumed"], &turn["sent"]["caught_up"]),
        (&4.into(), &1.into()),
        "{turn:#}"
    );
    // A confirmed one holds all of it now.
    assert_eq!(open_of(&story.world), None);
    story.resumes(&["-w", &folder(&story)]);
    story.world.run(&["snapshot", "verify", "--read-data"]).ok();
}

/// Where it was saved the confirmed one is used, and that of the turn is not even asked for.
#[test]
fn what_was_saved_before_is_used() {
    let Some(mut story) = World::of(REJOIN, &CLAUDE_325).and_then(here) else {
        return;
    };
    let (send, open) = hangs(&story);
    assert_eq!(open["messages"], 2, "{open:#}");
    gone(&mut story, send);
    let database = story.world.database.as_ref().unwrap();
    database.psql("update snapshots set manifest = 'nonsense' where state = 'open'");
    story.restores(&["-w", &folder(&story)]);
    story.resumes(&["-w", &folder(&story)]);
}

/// Chunks of what was confirmed were damaged: it is not used, whatever is behind them.
#[test]
fn one_that_is_damaged_is_not_used() {
    let Some(mut story) = World::of(REJOIN, &CLAUDE_325).and_then(here) else {
        return;
    };
    let (send, _) = hangs(&story);
    gone(&mut story, send);
    let database = story.world.database.as_ref().unwrap();
    database.psql("delete from snapshots where state = 'confirmed'");
    database.psql("update chunks set body = 'nonsense'");
    // Without a snapshot the folder is another one.
    let flags = ["-w", &folder(&story)];
    let turn = story.turn(Continued::Reseeded("other_folder"), &flags);
    let checks = turn["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["check"] == "snapshot");
    assert_eq!(check.unwrap()["ok"], false, "{turn:#}");
}

/// The end of the turn replaces it, however it ends; and with a file as store there is none.
#[test]
fn it_goes_with_its_turn() {
    let Some(mut story) = World::of(REJOIN, &CLAUDE_325).and_then(here) else {
        return;
    };
    let (send, _) = hangs(&story);
    kill(send.id() as i32, "INT");
    let done = Done::of(send);
    assert_eq!(done.code, 130, "{done:?}");
    story.unanswered();
    assert_eq!(open_of(&story.world), None);
    story.resumes(&[]);
    assert_eq!(snapshots(&story.world).len(), 2);

    let Some(mut world) = World::of(REJOIN, &CLAUDE_325) else {
        return;
    };
    world.set("REJOIN_FAKE_EVERY", "10");
    let mut story = Chronicle::begun(world);
    let turn = story.resumes(&[]);
    assert_eq!(turn["saved"], "stored");
    assert_eq!(snapshots(&story.world).len(), 2);
}

/// One turn behind it, on a server.
fn here(world: World) -> Option<Chronicle> {
    let mut world = world.on_server()?;
    world.set("REJOIN_FAKE_LEASE", "4000");
    world.set("REJOIN_FAKE_MACHINE", "here");
    world.set("REJOIN_FAKE_EVERY", "200");
    Some(Chronicle::begun(world))
}

/// Its turn gets no answer, and is captured with its prompt.
fn hangs(story: &Chronicle) -> (Child, Value) {
    let n = story.next();
    let send = story.world.start(n, "#s:hang", &[]);
    story.world.wait_until_asked(&user(n));
    let open = wait_for("the turn to be captured", 60, || {
        let open = open_of(&story.world)?;
        let to = tempfile::tempdir().unwrap();
        let (id, at) = (open["id"].as_str().unwrap(), to.path().to_str().unwrap());
        // It may be replaced meanwhile.
        let shown = story
            .world
            .run(&["snapshot", "restore", "--id", id, "--to", at, "--json"]);
        if shown.code != 0 {
            return None;
        }
        let file = shown.json()["files"][0].as_str()?.to_owned();
        // A database is kept as it was before the turn: it cannot be cut back.
        let whole = story.world.cli.agent() == "opencode" || holds(Path::new(&file), &user(n));
        whole.then_some(open)
    });
    (send, open)
}

fn holds(file: &Path, word: &str) -> bool {
    let bytes = std::fs::read(file).unwrap();
    bytes.windows(word.len()).any(|w| w == word.as_bytes())
}

/// The machine dies with all that ran on it; another one finds out.
fn gone(story: &mut Chronicle, send: Child) {
    for (pid, _) in story.world.leftovers() {
        kill(pid, "KILL");
    }
    drop(Done::of(send));
    story.unanswered();
    story.world.go_to("second");
    story.world.set("REJOIN_FAKE_MACHINE", "there");
    wait_for("the turn to be lost", 60, || {
        let _listed = story.world.run(&["list"]).ok();
        (story.world.last_turn()["status"] == "lost").then_some(())
    });
    assert!(open_of(&story.world).is_some());
}

fn snapshots(world: &World) -> Vec<Value> {
    let listed = world.run(&["snapshot", "list", "k", "--json"]).ok().json();
    listed["snapshots"].as_array().unwrap().clone()
}

fn open_of(world: &World) -> Option<Value> {
    let mut open = snapshots(world);
    open.retain(|snapshot| snapshot["state"] == "open");
    assert!(open.len() < 2, "{open:#?}");
    open.pop()
}

fn folder(story: &Chronicle) -> String {
    story.world.work().to_str().unwrap().to_owned()
}
