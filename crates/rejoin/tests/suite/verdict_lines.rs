//! The last line of a turn on a terminal of 80 columns, and the line while it runs.

use rejoin_testkit::{CLAUDE_325, CODEX_166, Cli, Model, World, runs};

use super::terminal::{Terminal, steady, world};
use rejoin_model::Step;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

fn both() -> World {
    let scripts = [("slow", vec![runs("sleep 4"), Step::text("Done.")])];
    let clis: [&'static dyn Cli; 2] = [&CLAUDE_325, &CODEX_166];
    steady(World::of_all(REJOIN, &clis, Model::scripted(scripts)).unwrap())
}

/// The last line before the prompt.
#[track_caller]
fn last_line(screen: &str) -> String {
    let lines: Vec<&str> = screen.trim_end().lines().collect();
    lines[lines.len() - 2].to_owned()
}

/// The verdict, cost and time lead; the line is one row.
#[test]
fn a_verdict_is_one_row() {
    let world = both();
    let Some(terminal) = Terminal::open(&world) else {
        return;
    };
    let first = last_line(&terminal.run("rejoin send -k k '#s:a1'"));
    assert!(first.starts_with("started · $0."), "{first}");
    assert!(
        first.contains("s · claude opus-") || first.contains("s · claude"),
        "{first}"
    );
    let second = last_line(&terminal.run("rejoin send -k k '#s:a2'"));
    assert!(
        second.starts_with("resumed, knows all 2 messages · $0."),
        "{second}"
    );
    let handle = second.rsplit(" · ").next().unwrap();
    assert!(handle.ends_with(":4"), "{second}");

    // A second agent is no accident.
    let joined = last_line(&terminal.run("rejoin send -k k -a codex '#s:a3'"));
    assert!(
        joined.starts_with("joined: codex was told all 4 messages · "),
        "{joined}"
    );
    let explained = world.run(&["explain", "k"]).ok().stdout;
    assert!(
        explained.starts_with("joined: codex was told all 4 messages"),
        "{explained}"
    );
    assert!(!explained.contains("FAIL"), "{explained}");
    let shown = world.run(&["show", "k"]).ok().stdout;
    assert!(
        shown.contains("│ joined: codex was told all 4 messages · "),
        "{shown}"
    );
    // The cost and the time of each turn are on the row, whatever the width.
    for row in terminal
        .run("rejoin show k --no-pager")
        .lines()
        .filter(|row| row.contains("│ "))
    {
        assert!(row.ends_with('s') && row.len() <= 84, "{row}");
    }
    assert!(explained.contains("  -     session"), "{explained}");

    // The summary is the contract: in a pipe it stays as it is.
    let piped = world.run(&["send", "-k", "k", "#s:a4"]).ok();
    assert!(piped.stderr.starts_with("rejoin: resumed, "), "{piped:?}");
}

/// A failed turn is an error with a next step.
#[test]
fn a_failure_is_an_error() {
    let world = both();
    let Some(terminal) = Terminal::open(&world) else {
        return;
    };
    let screen = terminal.run("rejoin send -k k 'x #j:[{\"status\": 400}]#'");
    assert!(
        screen.contains("\nerror: the API refused the request"),
        "{screen}"
    );
    let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("kept, no tool ran)"), "{screen}");
    assert!(screen.contains("\n  try: rejoin explain "), "{screen}");
    assert!(!screen.contains("rejoin: failed"), "{screen}");
}

/// What runs is named while it runs.
#[test]
fn a_tool_is_named_while_it_runs() {
    let world = both();
    let Some(terminal) = Terminal::open(&world) else {
        return;
    };
    terminal.keys("rejoin send -k k --permission edit --tools shell '#s:slow'");
    terminal.wait_until(|screen| screen.contains(" Bash sleep 4 · 1s"));
    let screen = terminal.wait_until(|screen| screen.trim_end().ends_with("\n$"));
    assert!(screen.contains("  Bash sleep 4 · ok · "), "{screen}");
}

#[test]
fn a_turn_that_waits_for_another_says_so() {
    let world = world();
    let Some(terminal) = Terminal::open(&world) else {
        return;
    };
    let first = world
        .run(&["send", "-a", "demo", "-k", "k", "--detach", "wait 4s"])
        .ok();
    let handle = first.stdout.trim().split(':').next().unwrap().to_owned();
    terminal.keys("rejoin send -k k after");
    let words = format!("waiting for another turn of {handle} · ");
    terminal.wait_until(|screen| screen.contains(&words));
    terminal.wait_until(|screen| screen.trim_end().ends_with("\n$"));
}

/// The first turn with a program takes seconds, and says why.
#[test]
fn a_new_program_is_named_while_it_is_proven() {
    let mut world = both();
    let fresh = world.root().join("fresh");
    world.set("REJOIN_HOME", fresh.to_str().unwrap());
    let Some(terminal) = Terminal::open(&world) else {
        return;
    };
    terminal.keys("rejoin send -a claude -k k '#s:a1'");
    terminal.wait_until(|screen| {
        screen.contains("first time with ")
            && screen.contains("2.1.325: checking that it resumes… ")
    });
    let screen = terminal.wait_until(|screen| screen.trim_end().ends_with("\n$"));
    assert!(!screen.contains("first time with"), "{screen}");
}
