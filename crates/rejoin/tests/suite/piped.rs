//! Text on stdin beside a message.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rejoin_testkit::{Done, World};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// Runs a shell script in which `rejoin` is the tested binary.
fn shell(world: &World, script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(world.work());
    let bin = std::path::Path::new(REJOIN).parent().unwrap();
    let path = format!("{}:{}", bin.display(), world.env["PATH"]);
    command.env_clear().envs(&world.env).env("PATH", path);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn ran(mut command: Command) -> Done {
    Done::of(command.spawn().unwrap())
}

/// The user's messages of the conversation `k`.
fn said(world: &World) -> Vec<String> {
    let shown = world.run(&["show", "k", "--json"]).ok().json();
    let messages = shown["messages"].as_array().unwrap();
    let users = messages.iter().filter(|m| m["role"] == "user");
    users
        .map(|m| m["text"].as_str().unwrap().to_owned())
        .collect()
}

const SEND: &str = "rejoin send -a demo -k k";

#[test]
fn a_pipe_and_a_file_are_added_to_the_message() {
    let world = World::new(REJOIN);
    std::fs::write(world.work().join("notes"), "from-the-file\n").unwrap();
    ran(shell(
        &world,
        &format!("echo from-the-pipe | {SEND} 'word-1'"),
    ))
    .ok();
    ran(shell(&world, &format!("{SEND} 'word-2' <notes; true"))).ok();
    // Slow, but within the time.
    ran(shell(
        &world,
        &format!("(sleep 1; echo from-afar) | {SEND} 'word-3'"),
    ))
    .ok();
    assert_eq!(
        said(&world),
        [
            "word-1\n\n<file name=\"stdin\">\nfrom-the-pipe\n</file>",
            "word-2\n\n<file name=\"stdin\">\nfrom-the-file\n</file>",
            "word-3\n\n<file name=\"stdin\">\nfrom-afar\n</file>",
        ]
    );
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let world = World::new(REJOIN);
    let done = ran(shell(&world, &format!("printf '\\377' | {SEND} word")));
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains("stdin is not text"), "{done:?}");
    assert_eq!(world.run(&["show", "k"]).code, 3);
}

/// What belongs to the calling process is not taken from it.
#[test]
fn the_lines_of_a_loop_stay_with_the_loop() {
    let world = World::new(REJOIN);
    std::fs::write(world.work().join("list"), "one\ntwo\nthree\n").unwrap();
    let body = format!("while read -r line; do {SEND} \"$line\"; done");
    ran(shell(&world, &format!("{body} <list"))).ok();
    ran(shell(&world, &format!("cat list | {body}"))).ok();
    assert_eq!(said(&world), ["one", "two", "three", "one", "two", "three"]);
}

/// cron, CI, ssh and programs: nothing to read, a closed stdin, a device, a pipe that nobody writes.
#[test]
fn nothing_blocks_and_nothing_is_added_without_data() {
    let world = World::new(REJOIN);
    for redirection in ["", "</dev/null", "<&-", "</dev/zero"] {
        ran(shell(&world, &format!("{SEND} word {redirection}"))).ok();
    }
    ran(shell(&world, &format!("true | {SEND} word"))).ok();
    // A script whose stdin is an open pipe without data.
    let mut script = shell(&world, &format!("{SEND} word; true"));
    let mut child = script.stdin(Stdio::piped()).spawn().unwrap();
    let open = child.stdin.take();
    let since = Instant::now();
    Done::of(child).ok();
    assert!(since.elapsed() < Duration::from_mins(1));
    drop(open);
    // A pipe of its own that stays open: the message is sent, with a word about it.
    let args = ["send", "-a", "demo", "-k", "k", "word"];
    let mut child = world.command(&args).stdin(Stdio::piped()).spawn().unwrap();
    let open = child.stdin.take();
    let done = Done::of(child).ok();
    assert!(
        done.stderr.contains("nothing came on stdin in 5 s"),
        "{done:?}"
    );
    drop(open);
    assert_eq!(said(&world), ["word"; 7]);
}

/// A script's own stdin is not read, which is not a secret.
#[test]
fn data_that_is_not_read_is_mentioned() {
    let world = World::new(REJOIN);
    let mut script = shell(&world, &format!("{SEND} word; true"));
    let mut child = script.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"data\n").unwrap();
    let done = Done::of(child).ok();
    assert!(
        done.stderr.contains("belongs to the calling process"),
        "{done:?}"
    );
    let mut script = shell(&world, &format!("{SEND} --file /dev/stdin word; true"));
    let mut child = script.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"data-8\n").unwrap();
    Done::of(child).ok();
    let said = said(&world);
    assert_eq!(said[0], "word");
    assert!(said[1].contains("data-8"), "{said:?}");
}
