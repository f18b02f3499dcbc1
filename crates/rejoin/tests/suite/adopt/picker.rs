//! Choosing on a terminal.

use rejoin_testkit::World;
use serde_json::Value;

use super::together::{put_claude, put_codex};
use crate::suite::terminal::{Terminal, world};

const CLAUDE: &str = "b731fd0c-68de-4452-a02a-ef7d040b8069";
const KILLED: &str = "611c635e-2b13-4548-94f9-4fe03338281e";
const CODEX: &str = "01a1de49-2494-7391-a595-647f5b1aba14";

/// Three captured sessions, and a terminal; none without tmux.
fn ready() -> Option<(World, Terminal)> {
    let world = world();
    put_claude(&world, &format!("2.1.197/sessions/{CLAUDE}"), CLAUDE);
    put_claude(
        &world,
        &format!("2.1.197/sessions/killed_bash_{KILLED}"),
        KILLED,
    );
    put_codex(
        &world,
        "simple",
        &format!("rollout-2026-11-15T08-18-17-{CODEX}"),
    );
    let terminal = Terminal::open(&world)?;
    Some((world, terminal))
}

fn conversations(world: &World) -> Vec<Value> {
    let list = world.run(&["list", "--json"]).ok().json();
    list["conversations"].as_array().unwrap().clone()
}

fn ask(terminal: &Terminal) -> String {
    terminal.keys("clear; rejoin adopt");
    terminal.wait_until(|screen| screen.contains("3 of 3"))
}

#[test]
fn one_is_found_by_its_words() {
    let Some((world, terminal)) = ready() else {
        return;
    };
    let screen = ask(&terminal);
    assert!(
        screen.contains("esc leaves") && screen.contains("›[ ]"),
        "{screen}"
    );
    assert_eq!(screen.matches(" new ").count(), 3, "{screen}");
    terminal.press(&["k", "i", "l", "l"]);
    terminal.wait_until(|screen| screen.contains("1 of 3") && screen.contains("> kill"));
    terminal.press(&["BSpace", "BSpace", "BSpace", "BSpace"]);
    terminal.wait_until(|screen| screen.contains("3 of 3"));
    terminal.press(&["c", "o", "d", "e", "x"]);
    terminal.wait_until(|screen| screen.contains("1 of 3"));
    terminal.press(&["Enter"]);
    // The screen is as it was, with what was done.
    let after = terminal.wait_until(|screen| screen.contains("go on: rejoin send"));
    assert!(!after.contains("esc leaves"), "{after}");
    let all = conversations(&world);
    assert_eq!(all.len(), 1, "{all:#?}");
    assert_eq!(all[0]["agent"], "codex");
    let screen = ask(&terminal);
    assert!(screen.contains("already here"), "{screen}");
    terminal.press(&["Escape"]);
    terminal.wait_until(|screen| screen.trim_end().ends_with('$'));
    // The terminal is as it was: what is typed is seen.
    assert!(terminal.run("echo seen").contains("$ echo seen\nseen\n"));
}

#[test]
fn several_are_marked() {
    let Some((world, terminal)) = ready() else {
        return;
    };
    ask(&terminal);
    terminal.press(&["Space", "Down", "Space"]);
    let screen = terminal.wait_until(|screen| screen.contains("2 marked"));
    assert_eq!(screen.matches("[x]").count(), 2, "{screen}");
    terminal.press(&["Up", "Up", "Enter"]);
    terminal.wait_until(|screen| screen.matches(" message").count() >= 2);
    assert_eq!(conversations(&world).len(), 2);
}

#[test]
fn leaving_adopts_nothing() {
    let Some((world, terminal)) = ready() else {
        return;
    };
    for key in ["Escape", "C-c"] {
        ask(&terminal);
        terminal.press(&["Space", key]);
        terminal.wait_until(|screen| screen.trim() == "$");
    }
    assert_eq!(conversations(&world), [] as [Value; 0]);
}
