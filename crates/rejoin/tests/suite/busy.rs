//! One writer: at most one turn of a conversation runs at a time, and a session that somebody else
//! is writing is not touched.

use std::process::{Child, Command, Stdio};

use rejoin_testkit::{
    CLAUDE_NEW, CLAUDE_OLD, Done, Model, Talk, World, answer, kill, slowly, user, wait_for,
};
use serde_json::Value;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

fn late(version: &str) -> Option<World> {
    let script = || vec![slowly(&answer(2), 12)];
    World::claude_with(REJOIN, version, || Model::scripted([("late", script())]))
}

/// One turn done, a second one answering slowly.
fn second_runs(version: &str) -> Option<(Talk, Child)> {
    let mut talk = Talk::begin(late(version)?);
    talk.good("started", &["-m", "sonnet"]);
    let send = talk.world.start(2, "#s:late", &[]);
    wait_for("the answer to begin", 20, || {
        talk.world.printed("text_delta").then_some(())
    });
    talk.n += 1;
    talk.words.extend([user(2), answer(2)]);
    Some((talk, send))
}

/// When a turn began to run and when it ended, in microseconds.
fn times(turn: &Value) -> (jiff::Timestamp, jiff::Timestamp) {
    let began: jiff::Timestamp = turn["started_at"].as_str().unwrap().parse().unwrap();
    let took = turn["duration_ms"].as_i64().unwrap();
    (began, began + std::time::Duration::from_millis(took as u64))
}

#[test]
fn the_second_message_waits_for_the_first() {
    for version in [CLAUDE_OLD, CLAUDE_NEW] {
        let Some((mut talk, first)) = second_runs(version) else {
            return;
        };
        // Two that wait: they run in the order in which they came.
        let asked = |turns: usize| {
            let shown = talk.world.show();
            (shown["turns"].as_array().unwrap().len() == turns).then_some(shown)
        };
        let second = talk.world.start(3, "#s:a3", &[]);
        let shown = wait_for("the second to be accepted", 10, || asked(3));
        assert_eq!(shown["turns"][2]["status"], "queued");
        let messages = shown["messages"].as_array().unwrap();
        assert_eq!(messages.last().unwrap()["state"], "queued");
        talk.words.extend([user(3), answer(3)]);
        talk.n += 1;
        let last = talk.good("resumed", &[]);
        let (first, second) = (Done::of(first).ok().json(), Done::of(second).ok().json());
        assert_eq!(
            (&first["text"], &second["text"]),
            (&answer(2).into(), &answer(3).into())
        );
        for (before, after) in [(&first, &second), (&second, &last)] {
            assert!(times(before).1 <= times(after).0, "{before} {after}");
        }
        talk.world.assert_quiet();
    }
}

#[test]
fn or_is_told_so_and_not_kept() {
    let Some((mut talk, first)) = second_runs(CLAUDE_OLD) else {
        return;
    };
    let busy = talk.world.send(3, "#s:a3", &["--if-busy", "fail"]);
    assert_eq!(busy.code, 4, "{busy:?}");
    assert_eq!(busy.json()["error"]["code"], "busy");
    let _first = Done::of(first).ok();
    assert_eq!(talk.world.messages().len(), 4);
    talk.good("resumed", &[]);
}

/// Who stops waiting takes the message back; the turn before it goes on.
#[test]
fn ctrl_c_while_waiting_takes_the_message_back() {
    for sender_dies in [false, true] {
        let Some((mut talk, first)) = second_runs(CLAUDE_OLD) else {
            return;
        };
        if sender_dies {
            kill(first.id() as i32, "KILL");
        }
        let second = talk.world.start(3, "#s:a3", &[]);
        wait_for("the second to be accepted", 10, || {
            (talk.world.show()["turns"].as_array().unwrap().len() == 3).then_some(())
        });
        kill(second.id() as i32, "INT");
        let done = Done::of(second);
        assert_eq!(done.code, 130, "{done:?}");
        assert_eq!(done.json()["error"]["code"], "cancelled");
        assert_eq!(Done::of(first).code, if sender_dies { -9 } else { 0 });
        let turn = wait_for("the first to be settled", 20, || {
            let turn = talk.world.last_turn();
            (turn["status"] != "running").then_some(turn)
        });
        assert_eq!(
            (&turn["status"], &turn["text"]),
            (&"succeeded".into(), &answer(2).into())
        );
        talk.good("resumed", &[]);
        talk.world.assert_quiet();
    }
}

#[test]
fn ten_conversations_on_one_home_at_once() {
    let Some(world) = World::claude(REJOIN, CLAUDE_OLD) else {
        return;
    };
    let keys: Vec<String> = (0..10).map(|n| format!("k{n}")).collect();
    let send = |n: usize, agent: &str| {
        let text = format!("{} #s:a{}", user(n + 1), n + 1);
        world.spawn(&["send", "--json", "-k", &keys[n], "-a", agent, &text])
    };
    for round in 0..2 {
        let sends: Vec<Child> = (0..10)
            .map(|n| send(n, if n < 2 { "claude" } else { "demo" }))
            .collect();
        for (n, child) in sends.into_iter().enumerate() {
            let turn = Done::of(child).ok().json();
            let verdict = if round == 0 { "started" } else { "resumed" };
            assert_eq!(turn["verdict"], verdict, "{n}: {turn}");
        }
    }
    let listed = world.run(&["list", "--json"]).ok().json();
    let all = listed["conversations"].as_array().unwrap();
    assert_eq!(all.iter().filter(|c| c["state"] == "idle").count(), 10);
    world.assert_quiet();
}

#[test]
fn the_same_message_sent_many_times_under_one_key_runs_once() {
    let Some(world) = World::claude(REJOIN, CLAUDE_OLD) else {
        return;
    };
    let flags = ["-m", "sonnet", "--idempotency-key", "once"];
    let sends: Vec<Child> = (0..4).map(|_| world.start(1, "#s:a1", &flags)).collect();
    let turns: Vec<Value> = sends.into_iter().map(|s| Done::of(s).ok().json()).collect();
    let again = world.send(1, "#s:a1", &flags).ok().json();
    for turn in &turns {
        assert_eq!(
            (&turn["turn_id"], &turn["text"]),
            (&again["turn_id"], &answer(1).into())
        );
    }
    assert_eq!(world.model.requests().len(), 1);
    assert_eq!(world.messages().len(), 2);
    let other = world.send(2, "#s:a2", &flags);
    assert_eq!(other.code, 4, "{other:?}");
    assert_eq!(other.json()["error"]["code"], "key_reused");
    assert_eq!(world.messages().len(), 2);
    assert_eq!(world.model.requests().len(), 1);
}

/// Somebody goes on with the session by hand, slowly.
fn by_hand(talk: &Talk, session: &str) -> Child {
    let world = &talk.world;
    let child = Command::new(&world.env["REJOIN_AGENTS_CLAUDE_BIN"])
        .args([
            "-p",
            "--resume",
            session,
            "--model",
            "sonnet",
            "by hand #s:late",
        ])
        .current_dir(world.work())
        .env_clear()
        .envs(&world.env)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    world.wait_until_asked("by hand");
    child
}

#[test]
fn a_session_in_other_hands_is_not_touched() {
    for version in [CLAUDE_OLD, CLAUDE_NEW] {
        let Some(world) = late(version) else { return };
        let mut talk = Talk::begin(world);
        let first = talk.good("started", &["-m", "sonnet"]);
        let session = first["session_id"].as_str().unwrap();
        let hand = by_hand(&talk, session);
        let refused = talk.world.send(2, "#s:a2", &["--if-busy", "fail"]);
        assert_eq!(refused.code, 4, "{refused:?}");
        assert_eq!(refused.json()["error"]["code"], "in_use", "{refused:?}");
        assert_eq!(talk.world.messages().len(), 2);
        // The bare CLI still runs: who waits runs after it, and goes on from what was said there.
        let asked = talk.world.model.requests().len();
        talk.words.push(answer(2));
        talk.good("resumed", &[]);
        assert_eq!(talk.world.model.requests().len(), asked + 1);
        let hand = Done::of(hand).ok();
        assert_eq!(
            hand.stdout.trim(),
            answer(2),
            "the hand's turn was disturbed"
        );
    }
}

#[test]
fn ctrl_c_while_a_session_is_in_other_hands() {
    let Some(world) = late(CLAUDE_OLD) else {
        return;
    };
    let mut talk = Talk::begin(world);
    let first = talk.good("started", &["-m", "sonnet"]);
    let hand = by_hand(&talk, first["session_id"].as_str().unwrap());
    let send = talk.world.start(2, "#s:a2", &[]);
    wait_for("the turn to be claimed", 10, || {
        (talk.world.last_turn()["status"] == "running").then_some(())
    });
    kill(send.id() as i32, "INT");
    let done = Done::of(send);
    assert_eq!(done.code, 130, "{done:?}");
    assert_eq!(talk.world.messages().len(), 2);
    let _hand = Done::of(hand).ok();
}

/// The turn of a sender that died runs before ours. To stop waiting for it is not to cancel it.
#[test]
fn ctrl_c_does_not_cancel_the_turn_before() {
    let Some(world) = late(CLAUDE_OLD) else {
        return;
    };
    let mut talk = Talk::begin(world);
    talk.good("started", &["-m", "sonnet"]);
    talk.world.set("REJOIN_FAIL", "after_accept");
    let died = talk.world.send(2, "#s:late", &[]);
    assert_eq!(died.code, -9, "{died:?}");
    talk.world.unset("REJOIN_FAIL");
    let mine = talk.world.start(3, "#s:a3", &[]);
    talk.world.wait_until_asked(&user(2));
    kill(mine.id() as i32, "INT");
    let mine = Done::of(mine);
    assert_eq!(mine.code, 130, "{mine:?}");
    let before = talk.world.run(&["wait", "--json", "k"]).ok().json();
    assert_eq!(before["text"], answer(2), "{before}");
    let messages = talk.world.messages();
    assert_eq!(messages.len(), 4, "{messages:?}");
    talk.world.assert_quiet();
}
