//! A person at a terminal.

use super::answer;
use crate::suite::terminal::{Terminal, world};

/// Is it asked whether this may be run? The command line that was typed stands further left.
fn asks(screen: &str, command: &str) -> bool {
    screen.contains(&format!("\n    {command}\n")) && screen.contains("allow, always or deny?")
}

#[test]
fn is_asked_there_and_answers_there() {
    let world = world();
    let Some(terminal) = Terminal::open(&world) else {
        return;
    };
    terminal.keys("rejoin send -a demo -k k 'ask: Which colour? Red | Blue'");
    let screen = terminal.wait_until(|screen| screen.contains("or deny:"));
    assert!(
        screen.contains("  1  Red") && screen.contains("  2  Blue"),
        "{screen}"
    );
    terminal.keys("2");
    let screen = terminal.wait_until(|screen| screen.trim_end().ends_with("\n$"));
    assert!(screen.contains("You answered Blue."), "{screen}");

    terminal.clear();
    terminal.keys("rejoin send -k k 'approve: rm -r x'");
    terminal.wait_until(|screen| asks(screen, "rm -r x"));
    terminal.keys("perhaps");
    terminal.wait_until(|screen| screen.matches("allow, always or deny?").count() == 2);
    terminal.keys("deny not today");
    let screen = terminal.wait_until(|screen| screen.trim_end().ends_with("\n$"));
    assert!(screen.contains("You said no (not today)."), "{screen}");

    // Somebody else is faster.
    terminal.clear();
    terminal.keys("rejoin send -k k 'approve: rm -r y'");
    terminal.wait_until(|screen| asks(screen, "rm -r y"));
    answer(&world, &["k", "allow"]).ok();
    let screen = terminal.wait_until(|screen| screen.trim_end().ends_with("\n$"));
    assert!(screen.contains("You allowed it."), "{screen}");

    terminal.clear();
    terminal.keys("rejoin send -k k 'approve: rm -r z'");
    terminal.wait_until(|screen| asks(screen, "rm -r z"));
    terminal.press(&["C-c"]);
    terminal.wait_until(|screen| screen.trim_end().ends_with("\n$"));
    assert_eq!(world.last_turn()["status"], "cancelled");
}

/// Whoever leaves without an answer finds the question in the inbox.
#[test]
fn may_leave_and_answer_later() {
    let world = world();
    let Some(terminal) = Terminal::open(&world) else {
        return;
    };
    terminal.keys("rejoin send -a demo -k k 'approve: rm -r x'");
    terminal.wait_until(|screen| asks(screen, "rm -r x"));
    terminal.press(&["C-d"]);
    let screen = terminal.wait_until(|screen| screen.trim_end().ends_with("\n$"));
    assert!(screen.contains("waiting for a person"), "{screen}");
    terminal.clear();
    terminal.keys("rejoin wait k");
    terminal.wait_until(|screen| asks(screen, "rm -r x") && !screen.contains("waiting for"));
    terminal.keys("allow");
    let screen = terminal.wait_until(|screen| screen.trim_end().ends_with("\n$"));
    assert!(screen.contains("You allowed it."), "{screen}");
}
