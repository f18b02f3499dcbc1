//! One writer, and conversations that do not get into each other's way.

use std::process::Child;

use rejoin_testkit::{Done, Talk, answer, user, wait_for};
use serde_json::Value;

use super::{second_turn, world};

#[test]
fn the_second_message_waits_for_the_first() {
    let Some((mut talk, first)) = second_turn("late") else {
        return;
    };
    let busy = talk.world.send(3, "#s:a3", &["--if-busy", "fail"]);
    assert_eq!(busy.code, 4, "{busy:?}");
    assert_eq!(busy.json()["error"]["code"], "busy");
    let second = talk.world.start(3, "#s:a3", &[]);
    wait_for("the second to be accepted", 20, || {
        let turns = talk.world.show()["turns"].as_array().unwrap().len();
        (turns == 3).then_some(())
    });
    let (first, second) = (Done::of(first).ok().json(), Done::of(second).ok().json());
    assert_eq!(first["text"], answer(2));
    assert_eq!(
        (&second["text"], &second["verdict"]),
        (&answer(3).into(), &"resumed".into())
    );
    talk.words.extend([user(2), answer(2), user(3)]);
    rejoin_testkit::assert_shown(&talk.world.model.last(), &talk.words);
    talk.world.assert_quiet();
}

/// The CLI itself lets two write at once; its database shows that somebody has it open.
#[test]
fn a_session_in_other_hands_is_not_touched() {
    let late = vec![rejoin_testkit::slowly("by hand done", 60)];
    let Some(world) = super::scripted([("slowhand", late)]) else {
        return;
    };
    let mut talk = Talk::begin(world);
    let first = talk.good("started", &[]);
    let session = first["session_id"].as_str().unwrap();
    let mut hand = talk.world.by_hand_command(session, "byhand#s:slowhand");
    let hand = hand.spawn().unwrap();
    super::wait_until_asked(&talk.world, "byhand");
    let refused = talk.world.send(2, "#s:a2", &["--if-busy", "fail"]);
    assert_eq!(refused.code, 4, "{refused:?}");
    assert_eq!(refused.json()["error"]["code"], "in_use", "{refused:?}");
    // Who waits runs after it, and goes on from what was said there.
    talk.good("resumed", &[]);
    let hand = Done::of(hand).ok();
    assert!(hand.stdout.contains("by hand done"), "{hand:?}");
}

/// E-16: ten conversations in one folder; no id is ever another's. Three at a time: each run takes
/// 600 MiB.
#[test]
#[ignore = "only with --long"]
fn ten_conversations_in_one_folder() {
    let Some(world) = world() else { return };
    let keys: Vec<String> = (0..10).map(|n| format!("k{n}")).collect();
    let mut sessions: Vec<Value> = vec![Value::Null; 10];
    for round in 0..2 {
        let all: Vec<usize> = (0..10).collect();
        for wave in all.chunks(3) {
            let start = |n: &usize| -> Child {
                let text = format!("{} #s:a{}", user(10 * round + n + 1), 10 * round + n + 1);
                world.spawn(&["send", "--json", "-k", &keys[*n], &text])
            };
            let running: Vec<(usize, Child)> = wave.iter().map(|n| (*n, start(n))).collect();
            for (n, child) in running {
                let turn = Done::of(child).ok().json();
                let verdict = if round == 0 { "started" } else { "resumed" };
                assert_eq!(turn["verdict"], verdict, "{n}: {turn}");
                assert_eq!(turn["text"], answer(10 * round + n + 1));
                let before = std::mem::replace(&mut sessions[n], turn["session_id"].clone());
                assert!(round == 0 || before == sessions[n], "{n}: {turn}");
            }
        }
        let mut ids: Vec<String> = sessions.iter().map(ToString::to_string).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 10, "{ids:?}");
    }
    // Each was shown its own words and nobody else's.
    for n in 0..10 {
        let requests = world.model.requests();
        let own = |r: &&rejoin_model::Request| r.history().to_string().contains(&user(11 + n));
        let last = requests.iter().rfind(own).unwrap();
        rejoin_testkit::assert_shown(last, &[user(n + 1), answer(n + 1), user(11 + n)]);
    }
    world.assert_quiet();
}
