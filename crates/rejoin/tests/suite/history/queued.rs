//! Changes, and messages whose sender died before anything was started; words said by hand in between.

use std::io::Write;
use std::process::Stdio;

use rejoin_testkit::World;
use serde_json::{Value, json};

use super::{demo, did, id_of, say, texts};

/// `rejoin …` that dies at a named point.
#[track_caller]
fn dies(world: &World, point: &str, args: &[&str]) {
    let done = world
        .command(args)
        .env("REJOIN_FAIL", point)
        .output()
        .unwrap();
    assert!(!done.status.success(), "{done:?}");
}

/// Goes on with a session of the demo agent by hand.
#[track_caller]
fn by_hand(world: &World, session: &str, text: &str) {
    let args = ["demo-agent", "--resume", session];
    let mut hand = world.command(&args);
    let mut hand = hand.stdin(Stdio::piped()).spawn().unwrap();
    let prompt = json!({"id": format!("hand-{text}"), "context": null, "message": text});
    let mut stdin = hand.stdin.take().unwrap();
    stdin.write_all(prompt.to_string().as_bytes()).unwrap();
    drop(stdin);
    assert!(hand.wait().unwrap().success());
}

/// Texts of the user, in order.
fn by_user(world: &World) -> Vec<String> {
    let messages = world.messages().into_iter();
    let own = messages.filter(|(role, state, _)| role == "user" && state != "queued");
    own.map(|(_, _, text)| text).collect()
}

fn places(world: &World) -> Vec<i64> {
    let shown = world.show();
    let messages = shown["messages"].as_array().unwrap();
    messages.iter().filter_map(|m| m["seq"].as_i64()).collect()
}

fn session(turn: &Value) -> String {
    turn["session_id"].as_str().unwrap().to_owned()
}

/// What is queued has no place: what is said meanwhile comes before it, and it is told.
#[test]
fn a_queued_message_has_no_place() {
    for point in ["after_claim", "after_look", "before_begin"] {
        let world = demo(&["one"]);
        let own = session(&world.last_turn());
        dies(&world, point, &["send", "-k", "k", "two"]);
        by_hand(&world, &own, "by hand");
        did(&world, &["explain", "k", "--next"]);
        assert_eq!(by_user(&world), ["one", "by hand"], "{point}");
        let turn = say(&world, "three");
        assert_eq!(by_user(&world), ["one", "by hand", "two", "three"]);
        assert!(
            turn["text"]
                .as_str()
                .unwrap()
                .contains("“one”, “by hand”, “two”"),
            "{turn:#}"
        );
        assert_eq!(places(&world), [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}

#[test]
fn a_queued_message_can_be_cancelled_and_leaves_no_gap() {
    let world = demo(&["one"]);
    dies(&world, "after_claim", &["send", "-k", "k", "two"]);
    did(&world, &["edit", &id_of(&world, 1), "uno"]);
    world.run(&["cancel", "k"]);
    assert_eq!(by_user(&world), ["uno"]);
    say(&world, "three");
    assert_eq!(places(&world), [1, 2, 3, 4]);
    did(&world, &["undo", "k"]);
    assert_eq!(by_user(&world), ["one", "three"]);
}

/// A message that is run again was there before: cancelling that does not delete it.
#[test]
fn a_queued_retry_is_taken_back_whole() {
    let world = demo(&["one", "two"]);
    let before = texts(&world);
    dies(&world, "after_claim", &["retry", "k"]);
    for args in [["undo", "k"], ["reset", "k"]] {
        let refused = world.run(&args);
        assert_eq!(refused.code, 4, "{refused:?}");
    }
    world.run(&["cancel", "k"]);
    assert_eq!(texts(&world), before);
    assert_eq!(
        world.run(&["undo", "k"]).code,
        4,
        "there is nothing to take back"
    );
    say(&world, "three");
    assert_eq!(by_user(&world), ["one", "two", "three"]);
}

/// And if it is not cancelled it is answered once, before the next message.
#[test]
fn a_queued_retry_runs_once() {
    let world = demo(&["one", "two"]);
    dies(&world, "before_begin", &["retry", "k"]);
    say(&world, "three");
    assert_eq!(by_user(&world), ["one", "two", "three"]);
    assert_eq!(places(&world), [1, 2, 3, 4, 5, 6]);
    did(&world, &["undo", "k"]);
    assert_eq!(by_user(&world), ["one", "two"]);
}

/// What was said by hand goes with what follows the message, and comes back with it.
#[test]
fn a_retry_after_something_was_said_by_hand() {
    let world = demo(&["one", "two"]);
    by_hand(&world, &session(&world.last_turn()), "by hand");
    did(&world, &["retry", "k:3"]);
    assert_eq!(by_user(&world), ["one", "two"]);
    did(&world, &["undo", "k"]);
    assert_eq!(by_user(&world), ["one", "two", "by hand"]);
    assert_eq!(places(&world), [1, 2, 3, 4, 5, 6]);
}

/// In whichever session of the conversation it was said.
#[test]
fn words_in_an_older_session_are_taken_in() {
    let world = demo(&["one", "two"]);
    let older = session(&world.last_turn());
    did(&world, &["edit", &id_of(&world, 3), "dos"]);
    say(&world, "three");
    did(&world, &["undo", "k"]);
    by_hand(&world, &older, "by hand");
    say(&world, "four");
    assert_eq!(by_user(&world), ["one", "two", "three", "by hand", "four"]);
    // That session is not used again, but still read.
    by_hand(&world, &older, "once more");
    let turn = say(&world, "five");
    let all = [
        "one",
        "two",
        "three",
        "by hand",
        "four",
        "once more",
        "five",
    ];
    assert_eq!(by_user(&world), all);
    let text = turn["text"].as_str().unwrap();
    for word in all {
        assert_eq!(
            text.matches(&format!("“{word}”")).count(),
            1,
            "{word} in {text}"
        );
    }
}

#[test]
fn a_key_that_somebody_else_has_now() {
    let world = demo(&["one"]);
    let id = world.show()["conversation"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    did(&world, &["set", &id, "key="]);
    say(&world, "of another conversation");
    let undone = did(&world, &["undo", &id]);
    assert!(
        undone["note"]
            .as_str()
            .unwrap()
            .contains("another conversation"),
        "{undone:#}"
    );
    assert_eq!(world.run(&["undo", &id]).code, 4);
}

/// A replay returns the turn as it stands, whatever became of its message.
#[test]
fn a_replay_after_changes() {
    let world = demo(&[]);
    let send = [
        "send",
        "-k",
        "k",
        "-a",
        "demo",
        "--idempotency-key",
        "once",
        "hello",
    ];
    let first = did(&world, &send);
    did(&world, &["edit", &id_of(&world, 1), "goodbye"]);
    assert_eq!(did(&world, &send)["turn_id"], first["turn_id"]);
    did(&world, &["truncate", &id_of(&world, 1)]);
    assert_eq!(did(&world, &send)["turn_id"], first["turn_id"]);
    did(&world, &["send", "-k", "into", "-a", "demo", "x"]);
    did(&world, &["merge", "k", "into"]);
    assert_eq!(did(&world, &send)["turn_id"], first["turn_id"]);
    let other = ["send", "-k", "k", "--idempotency-key", "once", "another"];
    assert_eq!(world.run(&other).code, 4);
}

/// Promise 7: run again as it was sent, unless something else is asked for.
#[test]
fn a_retry_is_not_wider_than_what_was_sent() {
    let world = demo(&["one"]);
    did(
        &world,
        &["send", "-k", "k", "--permission", "read-only", "two"],
    );
    let turn = did(&world, &["retry", "k"]);
    assert_eq!(turn["policy"]["permission"], "read-only", "{turn:#}");
    let turn = did(&world, &["retry", "k", "--permission", "edit"]);
    assert_eq!(turn["policy"]["permission"], "edit");
}

/// Over two merges, and away with all of them.
#[test]
fn merged_twice() {
    let world = demo(&["one"]);
    for key in ["b", "c"] {
        did(&world, &["send", "-a", "demo", "-k", key, key]);
    }
    did(&world, &["merge", "k", "b"]);
    did(&world, &["merge", "b", "c"]);
    assert_eq!(by_user(&world), ["one", "b", "c"]);
    did(&world, &["undo", "c"]);
    assert_eq!(by_user(&world), ["one", "b"]);
    did(&world, &["merge", "b", "c"]);
    did(&world, &["delete", "c", "--yes"]);
    say(&world, "anew");
    assert_eq!(by_user(&world), ["anew"]);
}
