//! `rejoin chat`: a person types at a terminal of 80x24, or lines come from a pipe.

mod lines;
mod piped;

use rejoin_model::Step;
use rejoin_testkit::{CLAUDE_NEW, Model, World, slowly, texts, wait_for};
use serde_json::Value;

use super::terminal::{Terminal, steady, world};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// Longer than a quote of the demo agent, which recalls the first 60 characters of each message.
const LONG: &str = "a sentence that is longer than sixty characters and ends with";

/// The turns of conversation `k` that have ended, oldest first.
fn ended(world: &World) -> Vec<Value> {
    let shown = world.run(&["show", "k", "--json"]);
    if shown.code != 0 {
        return vec![];
    }
    let mut turns = shown.json()["turns"].as_array().unwrap().clone();
    let over = |turn: &Value| {
        let status = turn["status"].as_str().unwrap();
        !["queued", "running", "waiting"].contains(&status)
    };
    turns.retain(over);
    turns
}

/// Waits for the end of the n-th turn, then for the prompt. Returns the turn.
#[track_caller]
fn turn(world: &World, terminal: &Terminal, n: usize) -> Value {
    let turns = wait_for("the turn to end", 60, || {
        let turns = ended(world);
        (turns.len() >= n).then_some(turns)
    });
    prompt(terminal);
    assert_eq!(turns.len(), n, "{turns:?}");
    turns[n - 1].clone()
}

/// Waits until a line can be typed.
fn prompt(terminal: &Terminal) -> String {
    terminal.wait_until(|screen| screen.trim_end().ends_with('>'))
}

/// Ten turns with two agents, an approval, an interrupted answer and an undo. No word is lost or repeated.
#[test]
fn holds_a_conversation_of_ten_turns_with_two_agents() {
    let slow = vec![slowly(
        "This answer is never finished, because it is slow.",
        200,
    )];
    let plain = |n: usize| vec![Step::text(format!("ANSWER{n}"))];
    let model = || {
        Model::scripted([
            ("slow", slow.clone()),
            ("c3", plain(3)),
            ("c6", plain(6)),
            ("c10", plain(10)),
        ])
    };
    let Some(world) = World::claude_with(REJOIN, CLAUDE_NEW, model) else {
        return;
    };
    let world = steady(world);
    let Some(terminal) = Terminal::open(&world) else {
        return;
    };
    terminal.keys("rejoin chat -k k -a demo");
    let screen = prompt(&terminal);
    assert!(screen.contains("/help lists commands"), "{screen}");

    terminal.keys(&format!("{LONG} UWORD1"));
    assert_eq!(turn(&world, &terminal, 1)["verdict"], "started");
    terminal.keys(&format!("{LONG} two lines \\"));
    terminal.keys("UWORD2");
    assert_eq!(turn(&world, &terminal, 2)["verdict"], "resumed");

    terminal.keys("/agent claude");
    terminal.wait_until(|screen| screen.trim_end().ends_with("claude>"));
    terminal.keys("/permission ask");
    terminal.wait_until(|screen| screen.contains("permission ask from the next message on"));
    terminal.keys(&format!("#s:c3 {LONG} UWORD3"));
    let third = turn(&world, &terminal, 3);
    assert_eq!(
        (&third["agent"], &third["verdict"]),
        (&"claude".into(), &"reseeded".into())
    );

    terminal.keys(&format!("#s:bash {LONG} UWORD4"));
    terminal.wait_until(|screen| screen.contains("Bash") && screen.contains("llow"));
    terminal.keys("allow");
    let fourth = turn(&world, &terminal, 4);
    assert_eq!(
        (&fourth["status"], &fourth["denied"]),
        (&"succeeded".into(), &serde_json::json!([]))
    );
    let ran = std::fs::read_to_string(world.work().join("ran.txt")).unwrap();
    assert_eq!(ran, "tool-ran\n");

    terminal.keys(&format!("#s:slow {LONG} UWORD5"));
    terminal.wait_until(|screen| screen.contains("This answer"));
    terminal.press(&["C-c"]);
    terminal.wait_until(|screen| screen.contains("\ncancelling…\n"));
    let fifth = turn(&world, &terminal, 5);
    assert_eq!(fifth["status"], "cancelled");
    // Shown, and told to no agent.
    let partial = fifth["partial_text"].as_str().unwrap();
    assert!(partial.starts_with("This answer"), "{fifth}");
    let page = world.run(&["show", "k"]).ok().stdout;
    assert!(
        page.contains("│ not finished") && page.contains("│ This answer"),
        "{page}"
    );
    terminal.keys(&format!("#s:c6 {LONG} UWORD6"));
    assert_eq!(turn(&world, &terminal, 6)["status"], "succeeded");

    terminal.keys("/agent demo");
    terminal.wait_until(|screen| screen.contains("demo answers the next messages"));
    terminal.keys("approve: rm -r x");
    terminal.wait_until(|screen| screen.contains("\n    rm -r x\n") && screen.contains("llow"));
    terminal.keys("deny not today");
    assert_eq!(turn(&world, &terminal, 7)["status"], "succeeded");
    terminal.keys(&format!("{LONG} UWORD8"));
    assert_eq!(turn(&world, &terminal, 8)["agent"], "demo");

    // A retry removes the answer; undo brings it back.
    terminal.keys("/retry");
    turn(&world, &terminal, 9);
    terminal.keys("/undo");
    terminal.wait_until(|screen| screen.contains("taken back"));
    prompt(&terminal);

    // Without a wait: typed ahead.
    terminal.keys("/agent claude");
    terminal.keys("#s:c10 UWORD10");
    let screen = {
        turn(&world, &terminal, 10);
        terminal.screen()
    };
    assert!(screen.contains("ANSWER10"), "{screen}");
    let told = texts(&world.model.last());
    for n in [1, 2, 3, 4, 5, 6, 8, 10] {
        let word = format!("UWORD{n}");
        let times = told
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|said| **said == *word)
            .count();
        assert_eq!(times, 1, "{word} in {told}");
    }

    assert!(!told.contains("This answer"), "{told}");

    terminal.keys("/explain");
    prompt(&terminal);
    terminal.press(&["C-d"]);
    terminal.wait_until(|screen| screen.trim_end().ends_with("\n$"));
}

/// A command of a chat is not sent, whether or not there is one with its name.
#[test]
fn commands_are_never_sent() {
    let world = world();
    let Some(terminal) = Terminal::open(&world) else {
        return;
    };
    terminal.keys("rejoin chat -k k -a demo");
    prompt(&terminal);
    terminal.keys("/undo");
    let screen =
        terminal.wait_until(|screen| screen.contains("error:") && screen.trim_end().ends_with('>'));
    assert!(screen.contains("there is no conversation yet"), "{screen}");
    terminal.keys("/agnet codex");
    let screen = terminal
        .wait_until(|screen| screen.contains("/agnet`") && screen.trim_end().ends_with('>'));
    assert!(
        screen.contains("nothing was sent") && screen.contains("/agent, or /help"),
        "{screen}"
    );
    terminal.keys("/permission everything");
    terminal.wait_until(|screen| screen.contains("everything") && screen.trim_end().ends_with('>'));
    terminal.keys("/help");
    terminal.wait_until(|screen| {
        screen.contains("/permission MODE") && screen.trim_end().ends_with('>')
    });
    assert!(ended(&world).is_empty());

    // With a space before it, it is a message.
    terminal.keys(" /etc/hosts UWORD1");
    turn(&world, &terminal, 1);
    terminal.keys("/show 1");
    terminal.wait_until(|screen| {
        screen.matches("UWORD1").count() >= 3 && screen.trim_end().ends_with('>')
    });
    terminal.keys("/quit");
    terminal.wait_until(|screen| screen.trim_end().ends_with("\n$"));
}
