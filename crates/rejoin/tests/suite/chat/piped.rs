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
