//! Lines from a pipe: one message each, up to the first turn that does not succeed.

use super::{ended, world};

#[test]
fn each_line_is_a_message() {
    let world = world();
    let input = "one UWORD1\n\n/fresh\ntwo \\\nUWORD2\n\"\"\"\nthree\n\n  UWORD3\n\"\"\"\n/help\nfour UWORD4";
    let done = world.run_with_stdin(&["chat", "-k", "k", "-a", "demo"], input.as_bytes());
    let done = done.ok();
    assert_eq!(done.stdout.matches("You said").count(), 4, "{done:?}");
    let turns = ended(&world);
    let verdicts: Vec<_> = turns.iter().map(|t| t["verdict"].clone()).collect();
    assert_eq!(verdicts, ["started", "reseeded", "resumed", "resumed"]);
    let shown = world.run(&["show", "k", "--json"]).ok().json();
    let texts: Vec<_> = (shown["messages"].as_array().unwrap().iter())
        .filter(|m| m["role"] == "user")
        .map(|m| m["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        texts,
        [
            "one UWORD1",
            "two \nUWORD2",
            "three\n\n  UWORD3",
            "four UWORD4"
        ]
    );
    // As documents: one turn in a line.
    let done = world
        .run_with_stdin(&["chat", "-k", "k", "--json"], b"five\nsix\n")
        .ok();
    let turns: Vec<serde_json::Value> = (done.stdout.lines())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(turns.len(), 2);
    assert!(turns.iter().all(|t| t["status"] == "succeeded"));
}

#[test]
fn the_first_failure_ends_it() {
    let world = world();
    let done = world.run_with_stdin(&["chat", "-k", "k", "-a", "demo"], b"one\n/nonsense\ntwo\n");
    assert_eq!(done.code, 2, "{done:?}");
    assert!(
        done.stderr
            .contains("chat has no command `/nonsense`; nothing was sent")
    );
    assert_eq!(ended(&world).len(), 1);
    let done = world.run_with_stdin(&["chat", "-k", "k"], b"/agent claude\nthree\nfour\n");
    assert_eq!(done.code, 3, "{done:?}");
    assert!(done.stderr.contains("claude is not installed"), "{done:?}");
    assert_eq!(ended(&world).len(), 1);
    let done = world.run_with_stdin(&["chat", "-c", "nowhere"], b"five\n");
    assert_eq!(done.code, 3, "{done:?}");
    let done = world.run_with_stdin(&["chat", "-k", "k"], b"caf\xe9\n");
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains("not UTF-8"), "{done:?}");
}

/// The history is changed without leaving the chat, and every suggestion can be typed in it.
#[test]
fn the_history_is_changed_in_a_chat() {
    let world = world();
    let chat =
        |input: &str| world.run_with_stdin(&["chat", "-k", "k", "-a", "demo"], input.as_bytes());
    let tries = |input: &str| {
        let done = chat(input);
        assert_ne!(done.code, 0, "{done:?}");
        let next = done.stderr.rsplit_once("  try: ").unwrap().1;
        next.trim_end().to_owned()
    };
    chat("one UWORD1\ntwo UWORD2\n").ok();
    assert_eq!(
        tries("/undo\n"),
        "/truncate, which removes the last exchange; or /edit N TEXT, which changes message N"
    );
    let done = chat("/truncate\n").ok();
    assert!(done.stdout.contains("2 messages removed"), "{done:?}");
    assert!(done.stdout.contains(" · /undo"), "{done:?}");
    // The turn that was removed is the newest one; the one that is explained is in the history.
    let explained = chat("/explain\n").ok().stdout;
    assert!(explained.contains(":2"), "{explained}");
    assert!(!explained.contains("resumed"), "{explained}");
    chat("/undo\n/edit 1 UWORD3  and more\n").ok();
    let shown = world.run(&["show", "k", "--json"]).ok().json();
    let text = |n: usize| shown["messages"][n]["text"].clone();
    assert_eq!(text(0), "UWORD3  and more");
    assert_eq!(text(2), "two UWORD2");

    assert_eq!(
        tries("/agent claude\nx\n"),
        "/quit, then npm install -g @anthropic-ai/claude-code"
    );
    assert_eq!(tries("/retry --bogus\n"), "/help");
    assert_eq!(tries("/show 99\n"), "/show");
    assert!(tries("/quti\n").starts_with("/help"));
}
