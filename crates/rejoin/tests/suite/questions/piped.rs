//! A person at a terminal, while stdin is a pipe.

use crate::suite::terminal::{Terminal, world};

/// The message comes from a pipe, the answer from the keyboard: `git diff | rejoin send -`.
#[test]
fn a_pipe_beside_a_terminal_asks_at_the_terminal() {
    let world = world();
    let terminal = Terminal::open(&world).unwrap();
    terminal.keys("echo 'approve: rm -r x' | rejoin send -a demo -k k -; echo code $?");
    terminal.wait_until(|screen| screen.contains("\n    rm -r x\n") && screen.contains("llow"));
    terminal.keys("deny not today");
    let screen = terminal.wait_until(|screen| screen.contains("code 0"));
    assert!(screen.contains("You said no (not today)."), "{screen}");
    // Without a terminal for its remarks nobody is asked.
    terminal.clear();
    terminal.keys("echo 'approve: rm -r y' | rejoin send -k k - 2>err; echo code $?");
    let screen = terminal.wait_until(|screen| screen.contains("code 0"));
    assert!(
        screen.contains("You said no") && !screen.contains("llow"),
        "{screen}"
    );
}
