//! External words and changes of the history.

use rejoin_testkit::{Chronicle, World, answer, said, user, words_in};

mod reset {
    use super::words_before_a_reset_stay;
    rejoin_testkit::on_every_cli!(words_before_a_reset_stay);
}

rejoin_testkit::on_both_claudes!(
    words_before_a_truncation_are_removed_and_come_back,
    words_before_a_retry_are_removed_and_come_back,
    words_before_an_edit_stay,
    a_fork_holds_words_that_were_said_before_it,
    a_merge_holds_words_of_both,
    words_after_a_reset_stay_and_undo_repeats_nothing,
);

fn words_before_a_reset_stay(world: World) {
    let mut story = Chronicle::begun(world);
    story.by_hand();
    story.world.run(&["reset", "k"]).ok();
    story.reseeds("session_retired", &[]);
}

/// The session is retired when its user goes on with it, and `undo` does not revive a session that
/// holds more than its pin says.
fn words_after_a_reset_stay_and_undo_repeats_nothing(world: World) {
    let mut story = Chronicle::begun(world);
    story.world.run(&["reset", "k"]).ok();
    story.by_hand();
    let next = story.world.run(&["explain", "k", "--next", "--json"]);
    assert_eq!(next.ok().json()["sent"]["transcribed"], 4);
    story.world.run(&["undo", "k"]).ok();
    story.reseeds("session_retired", &[]);
    story.by_hand();
    story.resumes(&[]);
}

/// Texts of the history, in order.
fn texts(world: &World) -> Vec<String> {
    let shown = world.run(&["show", "k", "--json"]).ok().json();
    let messages = shown["messages"].as_array().unwrap();
    let texts = messages.iter().map(|m| m["text"].as_str().unwrap());
    texts.flat_map(words_in).collect()
}

fn words_before_a_truncation_are_removed_and_come_back(world: World) {
    let mut story = Chronicle::begun(world);
    story.resumes(&[]);
    story.by_hand();
    story.world.run(&["truncate", "k:3"]).ok();
    assert_eq!(texts(&story.world), said([1]));
    story.world.run(&["undo", "k"]).ok();
    assert_eq!(texts(&story.world), said([1, 2, 3]));
    story.resumes(&[]);
}

fn words_before_a_retry_are_removed_and_come_back(world: World) {
    let mut story = Chronicle::begun(world);
    story.resumes(&[]);
    story.by_hand();
    story.world.run(&["retry", "k:3"]).ok();
    assert_eq!(texts(&story.world), said([1, 2]));
    story.world.run(&["undo", "k"]).ok();
    assert_eq!(texts(&story.world), said([1, 2, 3]));
    story.resumes(&[]);
}

fn words_before_an_edit_stay(world: World) {
    let mut story = Chronicle::begun(world);
    story.by_hand();
    story.world.run(&["edit", "k:1", &user(1)]).ok();
    assert_eq!(texts(&story.world), said([1, 2]));
    story.reseeds("history_changed", &[]);
}

fn a_fork_holds_words_that_were_said_before_it(world: World) {
    let mut story = Chronicle::begun(world);
    story.by_hand();
    story.world.run(&["fork", "k", "-k", "fork"]).ok();
    let shown = story.world.run(&["show", "fork", "--json"]).ok().stdout;
    assert!(
        shown.contains(&user(2)) && shown.contains(&answer(2)),
        "{shown}"
    );
    story.resumes(&[]);
}

fn a_merge_holds_words_of_both(world: World) {
    let mut story = Chronicle::begun(world);
    story.by_hand();
    let other = story
        .world
        .run(&["send", "--json", "-k", "other", "userword-8-end #s:a8"]);
    let session = other.ok().json()["session_id"].as_str().unwrap().to_owned();
    let done = story.world.by_hand(&session, "userword-9-end #s:a9");
    assert!(done.status.success(), "{done:?}");
    story.world.run(&["merge", "other", "k"]).ok();
    assert_eq!(texts(&story.world), said([1, 2, 8, 9]));
}
