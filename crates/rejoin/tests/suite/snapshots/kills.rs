//! `kill -9` at every step of capture and restore: nothing half-restored is ever resumed.

use rejoin_testkit::{CLAUDE_NEW, Chronicle, World, answer, assert_shown, user, wait_for};

use super::REJOIN;

pub(crate) const CAPTURING: [&str; 4] = [
    "after_chunks",
    "after_capture",
    "before_finish",
    "after_finish",
];
pub(crate) const RESTORING: [&str; 5] = [
    "restoring",
    "after_restored",
    "before_place",
    "after_place",
    "before_begin",
];

fn begun() -> Option<Chronicle> {
    let mut story = Chronicle::begun(World::claude(REJOIN, CLAUDE_NEW)?);
    story.resumes(&[]);
    Some(story)
}

/// The turn that died is settled by the next command, its answer included.
#[track_caller]
fn dies_at(story: &mut Chronicle, point: &str) {
    let n = story.next();
    story.world.set("REJOIN_FAIL", point);
    let died = story.world.send(n, &format!("#s:a{n}"), &[]);
    story.world.unset("REJOIN_FAIL");
    assert_eq!(died.code, -9, "{point}: {died:?}");
    wait_for("the turn to be settled or queued", 20, || {
        let _listed = story.world.run(&["list"]).ok();
        let turn = story.world.last_turn();
        (turn["status"] != "running").then_some(())
    });
    story.passed_over(vec![answer(n)]);
    if story.world.last_turn()["status"] == "queued" {
        // It runs before the next message.
        let n = story.next();
        let turn = story.world.say(n, &[]);
        assert_eq!(turn["status"], "succeeded", "{point}: {turn:#}");
        story.words.push(user(n));
        assert_shown(&story.world.model.last(), &story.words);
        story.words.pop();
        story.passed_over(vec![answer(n)]);
    }
}

#[test]
fn while_it_is_captured() {
    let Some(mut story) = begun() else { return };
    for point in CAPTURING {
        dies_at(&mut story, point);
        story.resumes(&[]);
        dies_at(&mut story, point);
        story.world.lose_the_machine();
        story.restores(&[]);
        verified(&story);
    }
}

#[test]
fn while_it_is_restored() {
    let Some(mut story) = begun() else { return };
    for point in RESTORING {
        story.world.lose_the_machine();
        dies_at(&mut story, point);
        story.resumes(&[]);
        story.world.lose_the_machine();
        dies_at(&mut story, point);
        story.world.lose_the_machine();
        story.restores(&[]);
        verified(&story);
    }
}

#[track_caller]
fn verified(story: &Chronicle) {
    let done = story.world.run(&["snapshot", "verify", "--read-data"]);
    assert_eq!(done.code, 0, "{done:?}");
}
