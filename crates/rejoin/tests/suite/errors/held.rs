//! Errors that need something else going on: another turn, another hand, a signal, a broken machine.

use std::process::{Child, Command, Stdio};

use insta::assert_snapshot;
use rejoin_testkit::{CLAUDE_OLD, Done, Model, World, answer, kill, slowly, wait_for};

use super::{REJOIN, both, said, saying};
use crate::suite::terminal::{steady, world};

/// The conversation `k`; `#s:late` answers it slowly.
fn late() -> Option<World> {
    let mut late = slowly(&answer(2), 12);
    late.delay_ms = Some(500);
    let model = || Model::scripted([("late", vec![late])]);
    World::claude_with(REJOIN, CLAUDE_OLD, model).map(steady)
}

#[test]
fn busy_and_cancelled() {
    let Some(world) = late() else { return };
    let first = world.start(1, "#s:late", &["-m", "sonnet"]);
    wait_for("the answer to begin", 20, || {
        world.printed("text_delta").then_some(())
    });
    assert_snapshot!(said(&world, &["send", "-k", "k", "--if-busy", "fail", "hi"]), @r#"
    exit 4, busy
    error: the conversation is busy with another turn; this message was not kept
      try: rejoin send --if-busy wait …
    "#);
    let called_off = |args: &[&str]| {
        let send = world.spawn(args);
        wait_for("the second to be accepted", 10, || {
            (world.messages().len() == 2).then_some(())
        });
        kill(send.id() as i32, "INT");
        let done = Done::of(send);
        assert_eq!(world.messages().len(), 1, "it was kept");
        done
    };
    let done = called_off(&["send", "-k", "k", "hi"]);
    let json = called_off(&["send", "-k", "k", "--json", "hi"]);
    assert_snapshot!(saying(&world, &done, &json), @r#"
    exit 130, cancelled
    cancelling…
    error: cancelled before it ran; the message was not kept
      try: rejoin list
    but as JSON: error: cancelled before it ran; the message was not kept
      try: rejoin list
    "#);
    let _first = Done::of(first).ok();
}

/// Somebody goes on with the session by hand, slowly.
fn by_hand(world: &World, session: &str) -> Child {
    let child = Command::new(&world.env["REJOIN_AGENTS_CLAUDE_BIN"])
        .args(["-p", "--resume", session, "--model", "sonnet"])
        .arg("by hand #s:late")
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
fn in_use() {
    let Some(world) = late() else { return };
    let first = world.say(1, &["-m", "sonnet"]);
    let hand = by_hand(&world, first["session_id"].as_str().unwrap());
    let text = said(&world, &["send", "-k", "k", "--if-busy", "fail", "hi"]);
    let pid = hand.id().to_string();
    assert_snapshot!(text.replace(&pid, "4711"), @r#"
    exit 4, in_use
    error: process 4711 is using this session; nothing was sent and the message was not kept
      try: rejoin send --if-busy wait …, or end that process
    "#);
    let _hand = Done::of(hand).ok();
}

#[test]
fn internal() {
    let mut world = world();
    world.run(&["send", "-a", "demo", "-k", "k", "hi"]).ok();
    world.unset("HOME");
    assert_snapshot!(said(&world, &["explain", "k", "--next"]), @r#"
    exit 1, internal
    error: something is wrong inside rejoin: demo has no home: HOME is not set
      try: rejoin doctor
    "#);
}

/// A prefix of two handles, which differ from run to run, and a mistyped one.
#[test]
fn ambiguous() {
    let world = world();
    let mut handles: Vec<String> = vec![];
    // Seventeen handles begin with sixteen letters.
    let (mut first, mut second) = loop {
        let turn = world.run(&["send", "-a", "demo", "--json", "hi"]).ok();
        let handle = turn.json()["handle"].as_str().unwrap().to_owned();
        let handle = handle.split(':').next().unwrap().to_owned();
        if let Some(before) = handles.iter().find(|h| h[..1] == handle[..1]) {
            break (before.clone(), handle);
        }
        handles.push(handle);
    };
    let letter = first[..1].to_owned();
    let json = world.run(&["show", &letter, "--json"]);
    let text = both(&world.run(&["show", &letter]), &json);
    if text.find(&first) > text.find(&second) {
        std::mem::swap(&mut first, &mut second);
    }
    let text = text.replace(&first, "tmqx").replace(&second, "tzol");
    let text = text.replace(&format!("`{letter}`"), "`t`");
    assert_snapshot!(text, @r#"
    exit 3, ambiguous
    error: `t` could be tmqx, tzol
      try: rejoin list
    "#);
    let typed = format!("{}e{}", &handles[0][..2], &handles[0][3..]);
    let done = world.run(&["show", &typed]);
    let meant = format!(
        "error: there is no conversation `{typed}`; did you mean `{}`?\n",
        handles[0]
    );
    assert!(done.stderr.starts_with(&meant), "{done:?}");
}
