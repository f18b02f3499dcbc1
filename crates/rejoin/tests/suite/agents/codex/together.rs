//! One writer: two messages at once, and a session in other hands.

use rejoin_testkit::{Done, Model, Talk, answer, slowly, user, wait_for};

use super::{answers, scripted, second_turn};

fn late() -> Model {
    Model::scripted([("late", vec![slowly(&answer(2), 12)])])
}

#[test]
fn the_second_message_waits_for_the_first() {
    let Some(world) = scripted(late) else { return };
    let (mut talk, first) = second_turn(world, "#s:late", &[], |w| answers(w, 2));
    let busy = talk.world.send(3, "#s:a3", &["--if-busy", "fail"]);
    assert_eq!(busy.code, 4, "{busy:?}");
    assert_eq!(busy.json()["error"]["code"], "busy");
    talk.words.extend([user(2), answer(2)]);
    let second = talk.world.start(3, "#s:a3", &[]);
    wait_for("the second to be accepted", 10, || {
        (talk.world.show()["turns"].as_array().unwrap().len() == 3).then_some(())
    });
    talk.words.extend([user(3), answer(3)]);
    talk.n += 1;
    talk.good("resumed", &[]);
    let (first, second) = (Done::of(first).ok().json(), Done::of(second).ok().json());
    assert_eq!(first["text"], answer(2));
    assert_eq!(
        (&second["verdict"], &second["text"]),
        (&"resumed".into(), &answer(3).into())
    );
    talk.world.assert_quiet();
}

/// The lock of the CLI itself is seen, before anything is started.
#[test]
fn a_session_in_other_hands_is_not_touched() {
    let Some(world) = scripted(late) else { return };
    let mut talk = Talk::begin(world);
    // With the model that the hand will have: between families it compacts.
    let first = talk.good("started", &[]);
    let session = first["session_id"].as_str().unwrap();
    let hand = talk
        .world
        .by_hand_command(session, "by hand #s:late")
        .spawn();
    talk.world.wait_until_asked("by hand");
    let refused = talk.world.send(2, "#s:a2", &["--if-busy", "fail"]);
    assert_eq!(refused.code, 4, "{refused:?}");
    assert_eq!(refused.json()["error"]["code"], "in_use", "{refused:?}");
    assert_eq!(talk.world.messages().len(), 2);
    // Who waits runs after it, and goes on from what was said there.
    talk.words.push(answer(2));
    talk.good("resumed", &[]);
    let hand = Done::of(hand.unwrap()).ok();
    assert_eq!(
        hand.stdout.trim(),
        answer(2),
        "the hand's turn was disturbed"
    );
}
