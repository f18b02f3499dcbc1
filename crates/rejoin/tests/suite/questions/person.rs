//! A person at a terminal.

use rejoin_testkit::{CLAUDE_NEW, World};
use serde_json::json;

use super::{REJOIN, answer};
use crate::suite::terminal::{Terminal, steady, world};

/// Is it asked whether this may be run? The command line that was typed stands further left.
fn asks(screen: &str, command: &str) -> bool {
    screen.contains(&format!("\n    {command}\n")) && screen.contains("[a]llow [A]lways [d]eny [?]")
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
    // B7: no such option, which is not an answer in other words.
    terminal.keys("3");
    let screen = terminal.wait_until(|screen| screen.matches("or deny:").count() == 2);
    assert!(screen.contains("`3` is none of its 2 options"), "{screen}");
    terminal.keys("2");
    let screen = terminal.wait_until(|screen| screen.trim_end().ends_with("\n$"));
    assert!(screen.contains("You answered Blue."), "{screen}");

    terminal.clear();
    terminal.keys("rejoin send -k k 'approve: rm -r x'");
    terminal.wait_until(|screen| asks(screen, "rm -r x"));
    terminal.keys("?");
    let screen =
        terminal.wait_until(|screen| screen.matches("[a]llow [A]lways [d]eny [?]").count() == 2);
    assert!(screen.contains("a: allow this once"), "{screen}");
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

/// B3: a person sees what would be written, at the terminal, in the inbox and in the conversation.
#[test]
fn sees_the_change_before_allowing_it() {
    let world = World::claude(REJOIN, CLAUDE_NEW).unwrap();
    let mut world = steady(world);
    std::fs::write(
        world.work().join("main.rs"),
        "fn main() {}\nfn other() {}\n",
    )
    .unwrap();
    let read = json!({"name": "Read", "input": {"file_path": world.work().join("main.rs")}});
    let edit = json!({"name": "Edit", "input": {
        "file_path": world.work().join("main.rs"),
        "old_string": "fn main() {}", "new_string": "fn main() { evil-41() }",
    }});
    let script = json!([{"tools": [read]}, {"tools": [edit]}, {"text": "done-41"}]);
    let Some(terminal) = Terminal::open(&world) else {
        return;
    };
    std::fs::write(world.work().join("ask"), format!("#j:{script}#")).unwrap();
    terminal.keys("rejoin send -k k --permission ask --file ask 'edit it'");
    let shown = |screen: &str| {
        screen.contains("- fn main() {}") && screen.contains("+ fn main() { evil-41() }")
    };
    let screen = terminal.wait_until(|screen| screen.contains("[a]llow [A]lways [d]eny [?]"));
    assert!(screen.contains("claude wants to edit"), "{screen}");
    assert!(shown(&screen), "{screen}");
    world.set("COLUMNS", "80");
    for command in [&["inbox"][..], &["show", "k"]] {
        let done = world.run(command).ok();
        assert!(shown(&done.stdout), "{done:?}");
    }
    let inbox = world.run(&["inbox", "--json"]).ok().json();
    let diff = &inbox["turns"][0]["questions"][0]["diff"][0];
    assert_eq!(diff["change"], "edit", "{inbox:#}");
    let lines = json!(["-fn main() {}", "+fn main() { evil-41() }"]);
    assert_eq!(diff["hunks"][0]["lines"], lines, "{inbox:#}");
    terminal.keys("d not on a Friday");
    let screen = terminal.wait_until(|screen| screen.trim_end().ends_with("\n$"));
    assert!(screen.contains("done-41"), "{screen}");
    assert!(screen.contains("· denied"), "{screen}");
    assert!(!screen.contains("· failed"), "{screen}");
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
