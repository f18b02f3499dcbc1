//! Two machines, one store: each goes on where the other left.

use std::fs;

use rejoin_testkit::{Chronicle, World, on_both_claudes};

on_both_claudes!(
    what_was_said_by_hand_under_another_name_is_taken_in,
    what_a_turn_left_unsaved_is_not_taken_for_somebody_elses,
);

mod every {
    use super::{back_and_forth, back_on_the_first};
    rejoin_testkit::on_every_cli!(back_on_the_first);
    mod quick {
        use super::back_and_forth;
        rejoin_testkit::on_every_quick_cli!(back_and_forth);
    }
}

/// With its now stale files.
fn back_on_the_first(world: World) {
    let mut story = Chronicle::begun(world);
    story.resumes(&[]);
    let stale = story.session_file();
    story.world.go_to("second");
    story.restores(&["-w", &here(&story)]);
    story.resumes(&["-w", &here(&story)]);
    story.world.go_to("");
    let before = fs::read(&stale).unwrap();
    story.restores(&["-w", &here(&story)]);
    assert!(fs::read(&stale).unwrap() != before);
    story.resumes(&["-w", &here(&story)]);
}

/// Every turn on the other machine.
fn back_and_forth(world: World) {
    let mut story = Chronicle::begun(world);
    for turn in 0..5 {
        story.world.go_to(["second", "", "third"][turn % 3]);
        story.restores(&["-w", &here(&story)]);
    }
    story.resumes(&["-w", &here(&story)]);
}

/// A container gets a new name with every start, its home is kept.
fn what_was_said_by_hand_under_another_name_is_taken_in(mut world: World) {
    world.set("REJOIN_FAKE_MACHINE", "one");
    let mut story = Chronicle::begun(world);
    story.by_hand();
    story.world.set("REJOIN_FAKE_MACHINE", "two");
    story.resumes(&[]);
    story.by_hand();
    story.world.set("REJOIN_FAKE_MACHINE", "three");
    std::fs::remove_file(story.session_file()).unwrap();
    // What was only said there is gone with it, and was not heard of.
    story.words.truncate(story.words.len() - 2);
    story.restores(&[]);
}

/// The snapshot is older than what lies here, and the words behind it are known.
fn what_a_turn_left_unsaved_is_not_taken_for_somebody_elses(world: World) {
    let mut story = Chronicle::begun(world);
    story.world.set("REJOIN_SNAPSHOTS_ENABLED", "false");
    story.resumes(&[]);
    story.world.unset("REJOIN_SNAPSHOTS_ENABLED");
    // Another machine begins to restore what is saved, and dies.
    story.world.go_to("second");
    story.world.set("REJOIN_FAIL", "after_restored");
    let there = here(&story);
    let died = story
        .world
        .run(&["send", "-k", "k", "-w", &there, "never sent"]);
    assert_eq!(died.code, -9, "{died:?}");
    story.world.unset("REJOIN_FAIL");
    story.world.run(&["cancel", "k"]).ok();
    story.world.go_to("");
    let turn = story.restores(&["-w", &here(&story)]);
    assert_eq!(turn["sent"]["caught_up"], 2, "{turn:#}");
    story.resumes(&["-w", &here(&story)]);
}

fn here(story: &Chronicle) -> String {
    story.world.work().to_str().unwrap().to_owned()
}
