//! No line that was typed is lost.

use rejoin_testkit::{World, wait_for};

use super::{LONG, Terminal, ended, prompt, turn, world};

/// Starts a chat that stores its process id in `pid`.
fn start(terminal: &Terminal, agent: &str) {
    terminal.keys(&format!(
        "sh -c 'echo $$ >pid; exec rejoin chat -k k -a {agent}'"
    ));
    terminal.wait_until(|screen| screen.contains("/help lists"));
}

fn signal(world: &World, signal: &str) {
    let pid = std::fs::read_to_string(world.work().join("pid")).unwrap();
    let sent = std::process::Command::new("kill")
        .args([signal, pid.trim()])
        .status();
    assert!(sent.unwrap().success());
}

fn drafts(world: &World) -> usize {
    std::fs::read_dir(world.data().join("drafts")).map_or(0, Iterator::count)
}

/// How often the person said a word, in the whole history.
fn said(world: &World, word: &str) -> usize {
    let shown = world.run(&["show", "k", "--json"]).ok().json();
    let messages = shown["messages"].as_array().unwrap().iter();
    let mine = messages.filter(|m| m["role"] == "user");
    mine.filter(|m| m["text"].as_str().unwrap().contains(word))
        .count()
}

/// Claude is not installed: the line stands at the prompt again, also after `kill -9`, and is sent once.
#[test]
fn a_line_that_was_not_accepted_is_offered_again() {
    let world = world();
    let Some(terminal) = Terminal::open(&world) else {
        return;
    };
    start(&terminal, "claude");
    prompt(&terminal);
    terminal.keys("first UWORD1");
    terminal.wait_until(|screen| {
        screen.contains("not installed") && screen.trim_end().ends_with("claude> first UWORD1")
    });
    assert_eq!(drafts(&world), 1);
    signal(&world, "-9");
    terminal.wait_until(|screen| screen.contains("Killed"));
    // Killed in the middle of a line, it could not set the terminal back.
    terminal.type_in("stty sane");
    terminal.press(&["C-j"]);
    terminal.wait_until(|screen| screen.trim_end().ends_with("$ $"));
    terminal.clear();

    start(&terminal, "claude");
    let screen = terminal.wait_until(|screen| screen.trim_end().ends_with("claude> first UWORD1"));
    assert!(screen.contains("in an earlier chat"), "{screen}");
    // A command first: the line is offered again.
    terminal.press(&["C-u"]);
    terminal.keys("/agent demo");
    terminal.wait_until(|screen| screen.trim_end().ends_with("demo> first UWORD1"));
    terminal.press(&["Enter"]);
    turn(&world, &terminal, 1);
    assert_eq!((said(&world, "UWORD1"), drafts(&world)), (1, 0));
}

/// Lines that are typed while an answer runs are sent after it, also if the answer is interrupted.
#[test]
fn lines_typed_ahead_are_sent_in_their_order() {
    let world = world();
    let Some(terminal) = Terminal::open(&world) else {
        return;
    };
    start(&terminal, "demo");
    terminal.keys(&format!("wait 600s {LONG} UWORD1"));
    wait_for("the turn to run", 60, || {
        let list = world.run(&["list", "--json"]).ok().json();
        (list["conversations"][0]["state"] == "running").then_some(())
    });
    // The terminal receives the keys in this order. The progress line may cover their echo.
    terminal.keys("ahead UWORD2");
    terminal.keys("ahead UWORD3");
    terminal.press(&["C-c"]);
    turn(&world, &terminal, 3);
    let shown = world.run(&["show", "k", "--json"]).ok().json();
    let texts: Vec<_> = (shown["messages"].as_array().unwrap().iter())
        .filter(|m| m["role"] == "user")
        .map(|m| m["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(texts[1..], ["ahead UWORD2", "ahead UWORD3"]);
    assert_eq!(ended(&world)[0]["status"], "cancelled");
}

/// A line without Enter is kept when the terminal or the system ends the chat.
#[test]
fn a_line_in_the_making_outlives_a_signal() {
    let world = world();
    let Some(terminal) = Terminal::open(&world) else {
        return;
    };
    start(&terminal, "demo");
    terminal.keys("hello");
    turn(&world, &terminal, 1);
    terminal.type_in("half a UWORD1");
    terminal.wait_until(|screen| screen.trim_end().ends_with("half a UWORD1"));
    signal(&world, "-TERM");
    wait_for("the draft", 30, || (drafts(&world) == 1).then_some(()));
    terminal.wait_until(|screen| screen.trim_end().ends_with('$'));
    terminal.press(&["Enter"]);
    terminal.clear();
    start(&terminal, "demo");
    terminal.wait_until(|screen| screen.trim_end().ends_with("demo> half a UWORD1"));
    // Ctrl-C gives the line up; the history of the editor has it.
    terminal.press(&["C-c"]);
    terminal.wait_until(|screen| screen.trim_end().ends_with("demo>"));
    terminal.press(&["Up"]);
    terminal.wait_until(|screen| screen.trim_end().ends_with("demo> half a UWORD1"));
    terminal.press(&["Enter"]);
    turn(&world, &terminal, 2);
    assert_eq!((said(&world, "UWORD1"), drafts(&world)), (1, 0));
}
