//! Output that cannot be written, and arguments that are not text.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::os::unix::ffi::OsStrExt as _;

use rejoin_testkit::{Done, World};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// Runs a command whose stdout is a full disk.
fn on_full_disk(world: &World, args: &[&str]) -> Done {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    Done::of(world.command(args).stdout(full).spawn().unwrap())
}

/// B4: the answer is not lost without a word.
#[test]
fn a_full_disk_is_an_error_and_the_answer_is_kept() {
    let world = World::new(REJOIN);
    let done = on_full_disk(&world, &["send", "-a", "demo", "-k", "k", "word-77"]);
    assert_eq!(done.code, 6, "{done:?}");
    let unwritten =
        "error: the answer could not be written: No space left on device (os error 28); it is kept";
    assert!(done.stderr.contains(unwritten), "{done:?}");
    let next = done
        .stderr
        .lines()
        .find_map(|l| l.trim().strip_prefix("try: rejoin show "));
    let shown = world.run(&["show", next.unwrap()]).ok();
    assert!(shown.stdout.contains("word-77"), "{shown:?}");

    for args in [
        &["list"][..],
        &["list", "--json"],
        &["show", "k"],
        &["show", "k", "--markdown"],
        &["explain", "k"],
        &["doctor"],
        &["--help"],
        &["send", "--help"],
        &["--version"],
        &["send", "-k", "k", "--json", "again"],
        &["send", "-k", "k", "--stream", "again"],
        &["show", "nothing", "--json"],
    ] {
        let done = on_full_disk(&world, args);
        let expected = if args.contains(&"nothing") { 3 } else { 6 };
        assert_eq!(done.code, expected, "{args:?} {done:?}");
        assert!(done.stderr.contains("error: "), "{args:?} {done:?}");
    }
}

/// A reader that has enough is no error.
#[test]
fn a_reader_may_leave() {
    let world = World::new(REJOIN);
    world.run(&["send", "-a", "demo", "-k", "k", "hello"]).ok();
    let mut child = world.spawn(&["show", "k"]);
    drop(child.stdout.take());
    let done = Done::of(child);
    assert_eq!((done.code, done.stderr.as_str()), (0, ""));
}

/// B5: no panic.
#[test]
fn arguments_that_are_not_text_are_refused() {
    let world = World::new(REJOIN);
    let odd = OsStr::from_bytes(b"caf\xe9");
    for args in [
        &["send", "-a", "demo"][..],
        &["show"],
        &["send", "-k"],
        &["edit", "tmqx:1"],
        &[],
        &["--hub"],
    ] {
        let mut command = world.command(args);
        command.arg(odd);
        let done = Done::of(command.spawn().unwrap());
        assert_eq!(done.code, 2, "{args:?} {done:?}");
        assert!(done.stderr.starts_with("error: "), "{args:?} {done:?}");
        assert!(!done.stderr.contains("panicked"), "{args:?} {done:?}");
    }
}

/// B14: what would run with no model or no tools is refused before it is paid for.
#[test]
fn an_empty_model_and_unknown_tools_are_refused() {
    let world = World::new(REJOIN);
    let done = world.run(&["send", "-a", "demo", "-m", "", "hello"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stderr.contains("a model has a name"), "{done:?}");
    let list = world.run(&["list", "--json"]).ok().json();
    assert_eq!(list["conversations"], serde_json::json!([]));
}
