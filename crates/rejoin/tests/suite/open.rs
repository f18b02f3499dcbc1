//! `rejoin open`: the conversation goes on in the CLI's own terminal interface, and comes back.
#![expect(clippy::needless_pass_by_value, reason = "as every test on a world")]

use rejoin_testkit::{
    CLAUDE_OLD, Done, Model, World, answer, assert_shown, kill, on_cli, on_every_cli, said, slowly,
    user, wait_for,
};
use serde_json::Value;

use super::terminal::Terminal;

mod interface;
mod refused;

use interface::Interface;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// One turn done, and a terminal; none where there is no tmux.
fn begun(world: &World) -> Option<Interface<'_>> {
    interface::set_up(world);
    let terminal = Terminal::open(world)?;
    world.say(1, &["-m", world.cli.models()[0]]);
    Some(Interface::of(world, terminal))
}

/// Origin and text of each message.
fn messages(world: &World) -> Vec<(String, String)> {
    let text = |m: &Value, name: &str| m[name].as_str().unwrap_or_default().to_owned();
    let shown = world.show();
    let messages = shown["messages"].as_array().unwrap();
    messages
        .iter()
        .map(|m| (text(m, "origin"), text(m, "text")))
        .collect()
}

/// The next message is answered by the same session, which is shown all words once.
#[track_caller]
fn goes_on(world: &World, n: usize) -> Value {
    let turn = world.say(n, &["-m", world.cli.models()[0]]);
    assert_eq!(turn["verdict"], "resumed", "{turn}");
    let mut words = said(1..n);
    words.push(user(n));
    assert_shown(&world.model.last(), &words);
    turn
}

/// E-5: open, say something, come back. Before that: open and leave without a word.
fn what_is_said_there_is_part_of_the_conversation(world: World) {
    let Some(at) = begun(&world) else { return };
    at.open();
    let back = at.leave();
    assert!(back.contains("nothing was said"), "{back}");
    assert_eq!(messages(&world).len(), 2);
    at.open();
    at.say(2);
    let back = at.leave();
    assert!(back.contains("2 messages taken in"), "{back}");
    let taken = messages(&world).split_off(2);
    assert_eq!(
        taken,
        [
            ("outside".to_owned(), format!("{} #s:a2", user(2))),
            ("outside".to_owned(), answer(2)),
        ]
    );
    let session = world.show()["sessions"][0].clone();
    assert_eq!(session["state"], "confirmed");
    let turn = goes_on(&world, 3);
    assert_eq!(turn["session_id"], session["session_id"]);
    assert_eq!(world.cli(), None);
}

/// Kill -9 of rejoin while it is open: the CLI holds its session for as long as it lives, and the
/// next message takes in what was said.
fn what_was_said_survives_rejoin(world: World) {
    let Some(at) = begun(&world) else { return };
    at.open();
    at.say(2);
    // Shown is not yet written: what a CLI had not kept when it was killed, nobody can take in.
    at.enter_until(|_| interface::wrote(&world, &answer(2)));
    let cli = world.cli().unwrap();
    kill(at.rejoin(), "KILL");
    let next = world.run(&["explain", "k", "--next", "--json"]);
    // Without its terminal it may end by itself at any moment.
    if world.cli() == Some(cli) {
        let next = next.ok().json();
        assert_eq!(next["reason"], "in_use", "{next}");
    }
    let _gone = std::process::Command::new("kill")
        .args(["-KILL", &cli.to_string()])
        .output();
    wait_for("the CLI to be gone", 10, || {
        world.cli().is_none().then_some(())
    });
    goes_on(&world, 3);
    assert_eq!(messages(&world)[3], ("outside".to_owned(), answer(2)));
}

/// Kill -9 of the CLI in the middle of an answer: nothing is forgotten, and nothing is said twice.
fn what_was_not_answered_is_told_once(world: World) {
    let Some(at) = begun(&world) else { return };
    at.open();
    at.say(2);
    at.type_line(&format!("{} #s:late", user(3)));
    at.enter_until(|_| interface::wrote(&world, &user(3)));
    kill(world.cli().unwrap(), "KILL");
    let back = at.back();
    assert!(back.contains("killed by signal 9"), "{back}");
    // The terminal is as it was.
    assert!(at.terminal.run("echo it-$((1 + 1))").contains("\nit-2\n"));
    let turn = world.say(4, &["-m", world.cli.models()[0]]);
    assert_eq!(turn["status"], "succeeded", "{turn}");
    let mut words = said(1..3);
    words.extend([user(3), user(4)]);
    assert_shown(&world.model.last(), &words);
    goes_on_after_unanswered(&world);
}

fn goes_on_after_unanswered(world: &World) {
    let turn = world.say(5, &["-m", world.cli.models()[0]]);
    assert_eq!(turn["verdict"], "resumed", "{turn}");
    let mut words = said(1..3);
    words.extend([user(3), user(4), answer(4), user(5)]);
    assert_shown(&world.model.last(), &words);
}

on_every_cli!(what_is_said_there_is_part_of_the_conversation);

mod killed {
    use super::what_was_said_survives_rejoin;
    rejoin_testkit::on_every_quick_cli!(what_was_said_survives_rejoin);
}

/// An answer that takes its time.
fn late(cli: &'static dyn rejoin_testkit::Cli, test: fn(World)) {
    let mut late = slowly(&answer(3), 20);
    late.delay_ms = Some(500);
    let model = || Model::scripted([("late", vec![late])]);
    World::with(REJOIN, cli, model).map(test);
}

#[test]
fn claude_2_1_197_is_killed() {
    late(
        &rejoin_testkit::CLAUDE_197,
        what_was_not_answered_is_told_once,
    );
}

#[test]
fn claude_2_1_325_is_killed() {
    late(
        &rejoin_testkit::CLAUDE_325,
        what_was_not_answered_is_told_once,
    );
}

#[test]
fn codex_is_killed() {
    late(
        &rejoin_testkit::CODEX_166,
        what_was_not_answered_is_told_once,
    );
}

#[test]
#[ignore = "only with --long"]
fn gemini_is_killed() {
    late(
        &rejoin_testkit::GEMINI_061,
        what_was_not_answered_is_told_once,
    );
}

#[test]
#[ignore = "only with --long"]
fn opencode_is_killed() {
    late(
        &rejoin_testkit::OPENCODE,
        what_was_not_answered_is_told_once,
    );
}

/// One writer: a message sent meanwhile waits, or is told.
fn a_message_sent_meanwhile_waits(world: World) {
    let Some(at) = begun(&world) else { return };
    at.open();
    let refused = world.send(9, "#s:a9", &["--if-busy", "fail"]);
    assert_eq!(refused.code, 4, "{refused:?}");
    assert_eq!(refused.json()["error"]["code"], "busy");
    let again = world.run(&["open", "--json", "k"]);
    assert_eq!(again.json()["error"]["code"], "busy", "{again:?}");
    let waiting = world.start(3, "#s:a3", &[]);
    wait_for("the message to be accepted", 10, || {
        (messages(&world).len() == 3).then_some(())
    });
    at.say(2);
    at.leave();
    let turn = Done::of(waiting).ok().json();
    assert_eq!(turn["verdict"], "resumed", "{turn}");
    let mut words = said(1..3);
    words.push(user(3));
    assert_shown(&world.model.last(), &words);
}

on_cli!(meanwhile, CLAUDE_197, a_message_sent_meanwhile_waits);

/// A person at a terminal gets the same as JSON.
#[test]
fn as_json() {
    let Some(world) = World::claude(REJOIN, CLAUDE_OLD) else {
        return;
    };
    let Some(at) = begun(&world) else { return };
    at.open_with("rejoin open --json k");
    at.say(2);
    let screen = at.leave_for("taken_in").replace(' ', "");
    let (from, to) = (screen.rfind('{').unwrap(), screen.rfind('}').unwrap());
    let shown: Value = serde_json::from_str(&screen[from..=to]).unwrap();
    assert_eq!(shown["taken_in"], 2, "{shown}");
    assert_eq!(shown["usable"], true, "{shown}");
    assert_eq!(shown["agent"], "claude", "{shown}");
    let session = &world.show()["sessions"][0]["session_id"];
    assert_eq!(&shown["session_id"], session);
}
