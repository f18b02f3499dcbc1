//! A conversation of many pages: streamed, and shown by a pager on a terminal.

use std::time::{Duration, Instant};

use rejoin_testkit::World;
use rejoin_testkit::populate::Population;
use serde_json::Value;

use super::super::terminal::{Terminal, world};

/// A store with a conversation `long` of that many turns.
fn long(turns: u64) -> World {
    let world = world();
    world.run(&["list"]).ok();
    let population = Population {
        conversations: 3,
        messages: 2,
        long: turns,
    };
    let file = world.data().join("rejoin.db");
    population.fill_sqlite(&file).unwrap();
    world
}

fn seqs(shown: &Value) -> Vec<i64> {
    let messages = shown["messages"].as_array().unwrap();
    let seq = |message: &Value| message["seq"].as_i64().unwrap();
    messages.iter().map(seq).collect()
}

#[test]
fn every_message_and_turn_is_shown_once() {
    let world = long(130);
    let json = |args: &[&str]| world.run(&[&["show", "--json"], args].concat()).ok().json();
    let whole = json(&["long"]);
    assert_eq!(seqs(&whole), (1..=260).collect::<Vec<_>>());
    assert_eq!(whole["turns"].as_array().unwrap().len(), 130);
    assert_eq!(whole["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(whole["conversation"]["key"], "long");
    let some = json(&["long:31-210"]);
    assert_eq!(seqs(&some), (31..=210).collect::<Vec<_>>());
    assert_eq!(some["turns"].as_array().unwrap().len(), 90);
    let last = json(&["long", "-n", "150"]);
    assert_eq!(seqs(&last), (111..=260).collect::<Vec<_>>());
    let text = world.run(&["show", "long"]).ok().stdout;
    assert!(
        text.lines().nth(1).unwrap().contains("260 messages"),
        "{text}"
    );
    assert_eq!(text.matches(":260  ").count(), 1, "{text}");
    assert_eq!(text.matches("│ resumed").count(), 130);
    let text = world.run(&["show", "long:31-210"]).ok().stdout;
    assert!(
        text.lines().nth(1).unwrap().contains("180 of 260 messages"),
        "{text}"
    );
    let document = world.run(&["show", "long", "--markdown"]).ok().stdout;
    assert_eq!(document.matches("\n## ").count(), 260);
    assert_eq!(document.matches("\nConversation `").count(), 1);
}

/// What a command holds does not depend on the length of the conversation.
#[test]
fn memory_does_not_grow() {
    let world = long(3000);
    for args in [
        &["show", "long"][..],
        &["show", "long", "--json"],
        &["show", "long", "--markdown"],
    ] {
        let command = world.command(args);
        // The data of a process: what it allocates, without its program.
        let limit = 24 * 1024 * 1024;
        let shell = format!("ulimit -d {}; exec \"$0\" \"$@\"", limit / 1024);
        let mut limited = std::process::Command::new("sh");
        limited
            .args(["-c", &shell])
            .arg(command.get_program())
            .args(command.get_args());
        limited.env_clear().current_dir(world.work());
        limited.envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        let done = limited.output().unwrap();
        assert!(
            done.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        assert!(done.stdout.len() > 300_000, "{args:?}");
    }
}

#[test]
fn a_terminal_gets_a_pager() {
    let world = long(130);
    let terminal = Terminal::open(&world).unwrap();
    // Without one: all of it has passed when the prompt comes back.
    let screen = terminal.run("rejoin show long");
    assert!(screen.contains(":260  demo"), "{screen}");
    terminal.clear();
    terminal.keys("REJOIN_PAGER='less -RX' rejoin show long; echo left with $?");
    let first = terminal.wait_until(|screen| screen.contains(":2  "));
    assert!(
        first.contains("260 messages") && !first.contains("left with"),
        "{first}"
    );
    // The interrupt key is for the pager, which forgets what was typed before it: the next key is pressed again.
    terminal.press(&["C-c"]);
    let mut pressed = Instant::now();
    let left = terminal.wait_until(|screen| {
        let left = screen.contains("left with");
        if !left && pressed.elapsed() > Duration::from_millis(500) {
            terminal.press(&["q"]);
            pressed = Instant::now();
        }
        left
    });
    assert!(left.contains("left with 0"), "{left}");
    terminal.keys("clear; rejoin show long --no-pager | tail -n 1; rejoin show long | cat >/dev/null; echo piped $?");
    terminal.wait_until(|screen| screen.contains("piped 0"));
    terminal
        .keys("clear; REJOIN_PAGER='head -n 3; echo enough' rejoin show long; echo left with $?");
    let left = terminal.wait_until(|screen| screen.contains("left with 0"));
    assert!(left.contains("enough"), "{left}");
}
