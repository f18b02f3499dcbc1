//! Suggested commands (`try: …`): each is one that a person can type.

mod typed;

use std::process::Command;

use rejoin_testkit::{Done, World};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// A world with the conversation `k` of the demo agent, which is the default.
fn world() -> World {
    let mut world = World::new(REJOIN);
    world.set("REJOIN_DEFAULT_AGENT", "demo");
    world.run(&["send", "-k", "k", "hello"]).ok();
    world
}

/// Types a line in a shell, with the tested binary on the path.
fn typed(world: &World, line: &str) -> Done {
    let mut command = Command::new("sh");
    let bin = std::path::Path::new(REJOIN).parent().unwrap();
    let path = format!("{}:{}", bin.display(), world.env["PATH"]);
    command.args(["-c", line]).current_dir(world.work());
    command.env_clear().envs(&world.env).env("PATH", path);
    command.stdin(std::process::Stdio::null());
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    Done::of(command.spawn().unwrap())
}

/// The suggestion of a command that fails, as it is in the JSON document.
#[track_caller]
fn suggestion(world: &World, args: &[&str]) -> String {
    let done = world.run(&[args, &["--json"]].concat());
    assert_ne!(done.code, 0, "{args:?} {done:?}");
    done.json()["error"]["try"].as_str().unwrap().to_owned()
}

/// Types what is suggested: it is understood, and does not block.
#[track_caller]
fn works(world: &World, args: &[&str], expected: &str) -> Done {
    let next = suggestion(world, args);
    assert_eq!(next, expected, "{args:?}");
    let done = typed(world, &next);
    assert_ne!(done.code, 2, "{next}: {done:?}");
    done
}

#[test]
fn words_of_other_tools_are_understood() {
    let world = world();
    for (word, command) in [("ls", "list"), ("status", "list"), ("log", "show")] {
        let args = |word| {
            if word == "log" || word == "show" {
                vec![word, "k"]
            } else {
                vec![word]
            }
        };
        let (short, long) = (world.run(&args(word)).ok(), world.run(&args(command)).ok());
        assert_eq!(short.stdout, long.stdout);
    }
}

/// B13: nothing is suggested that blocks, trusts, logs out, deletes, or is not near.
#[test]
fn mistyped_commands() {
    let world = world();
    works(&world, &["lst"], "rejoin list");
    works(&world, &["shwo"], "rejoin show");
    works(&world, &["config", "shw"], "rejoin config show");
    for word in [
        "servr",
        "model-servr",
        "trst",
        "truts",
        "logot",
        "delet",
        "opn",
        "xyzzy",
    ] {
        works(&world, &[word], "rejoin --help");
    }
}

/// B13: a flag is not sent as a message.
#[test]
fn unknown_flags() {
    let world = world();
    let help = "rejoin send --help";
    works(&world, &["send", "--bogus"], help);
    works(&world, &["send", "--max-cost", "-1", "hi"], help);
    works(&world, &["list", "--bogus"], "rejoin list --help");
    let done = works(
        &world,
        &["reply", "-c", "k", "hi"],
        "rejoin send -c k \"…\"",
    );
    assert_eq!(done.code, 0, "{done:?}");
    let done = world.run(&["send", "--bogus"]);
    assert!(
        done.stderr.contains("begins with a dash goes behind `--`"),
        "{done:?}"
    );
}

#[test]
fn folders() {
    let world = world();
    let gone = world.root().join("gone");
    std::fs::create_dir(&gone).unwrap();
    let folder = gone.to_str().unwrap();
    let first = world
        .run(&["send", "-k", "wdk", "-w", folder, "--json", "word-5"])
        .ok()
        .json();
    let handle = first["handle"].as_str().unwrap().split(':').next().unwrap();
    std::fs::remove_dir(&gone).unwrap();
    let next = format!("rejoin send -c {handle} -w . --relocate \"…\"");
    let done = works(&world, &["send", "-k", "wdk", "again"], &next);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(
        done.stdout.contains("word-5"),
        "the same conversation: {done:?}"
    );
    let next = format!("rejoin set {handle} workdir=.");
    let done = works(&world, &["set", "wdk", "workdir=/nope"], &next);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(
        suggestion(&world, &["send", "-w", "/nope", "hi"]),
        "the same with -w DIR"
    );
}

#[test]
fn agents() {
    let mut world = world();
    for args in [
        &["send", "-a", "foo", "hi"][..],
        &["open", "k", "-a", "foo"],
        &["adopt", "--agent", "foo"],
        &["explain", "k", "--next", "-a", "foo"],
    ] {
        works(&world, args, "rejoin doctor");
    }
    // Without any, how to install it; with another one, that.
    let empty = world.root().join("empty");
    std::fs::create_dir(&empty).unwrap();
    world.set("PATH", empty.to_str().unwrap());
    let next = suggestion(&world, &["send", "-a", "claude", "hi"]);
    assert_eq!(next, "npm install -g @anthropic-ai/claude-code");
    world.script(&empty.join("codex"), "#!/bin/sh\n");
    let next = suggestion(&world, &["send", "-a", "claude", "hi"]);
    assert_eq!(
        next,
        "rejoin send -a codex \"…\", or npm install -g @anthropic-ai/claude-code"
    );
    // A wrong program in the configuration is not installed again.
    world.set("REJOIN_AGENTS_CLAUDE_BIN", "/nope/claude");
    let next = suggestion(&world, &["send", "-a", "claude", "hi"]);
    assert_eq!(
        next,
        "rejoin config show, to see where the program is named"
    );
}

#[test]
fn a_damaged_store_leads_to_doctor() {
    let world = world();
    for file in ["rejoin.db", "rejoin.db-wal"] {
        let path = world.data().join(file);
        if path.exists() {
            std::fs::write(path, "x".repeat(20_000)).unwrap();
        }
    }
    let done = works(&world, &["list"], "rejoin doctor");
    assert!(done.stdout.contains("rejoin.db"), "{done:?}");
}

/// `explain --bundle` suggests what works on the bundle.
#[test]
fn a_bundle_is_named_again() {
    let world = world();
    world.run(&["send", "--bundle", "b", "hello"]).ok();
    let shown = world.run(&["explain", "--bundle", "b"]).ok();
    let next = shown
        .stdout
        .lines()
        .find(|line| line.starts_with("next"))
        .unwrap();
    let command = next.split(['(', ')']).nth(1).unwrap();
    assert_eq!(command, "rejoin explain --next --bundle b");
    let done = typed(&world, command);
    assert_eq!(done.code, 0, "{done:?}");
}

/// A command of another tool, and a misspelt one, leads to the one that is meant, with its arguments.
#[test]
fn the_line_that_was_meant() {
    let world = world();
    for (args, expected) in [
        (
            &["reply", "fix", "the", "bug"][..],
            "rejoin reply \"fix the bug\"",
        ),
        (
            &["send", "-k", "k", "fix", "it"],
            "rejoin send -k k \"fix it\"",
        ),
        (&["resume"], "rejoin reply \"…\""),
        (&["resume", "k"], "rejoin send -c k \"…\""),
        (&["continue", "k"], "rejoin send -c k \"…\""),
        (&["history", "k"], "rejoin show k"),
        (&["version"], "rejoin --version"),
        (&["sned", "-k", "k", "hi"], "rejoin send -k k hi"),
        (&["sned", "fix", "the bug"], "rejoin send \"fix the bug\""),
        (&["shwo", "k"], "rejoin show k"),
        (&["show", "k", "1"], "rejoin show k:1"),
        (&["edit", "k", "1", "$x"], "rejoin edit k:1 '$x'"),
    ] {
        let done = works(&world, args, expected);
        assert_eq!(done.code, 0, "{expected}: {done:?}");
    }
    assert_eq!(suggestion(&world, &["approve"]), "rejoin answer allow");
    assert_eq!(
        suggestion(&world, &["approve", "k"]),
        "rejoin answer k allow"
    );
    assert_eq!(
        suggestion(&world, &["send", "it's", "`x`"]),
        r"rejoin send 'it'\''s `x`'"
    );
}

/// The message of an error names what was meant.
#[test]
fn what_was_meant() {
    let world = world();
    for (args, expected) in [
        (&["send", "-a", "codx", "hi"][..], "did you mean `codex`?"),
        (
            &["send", "--permission", "readonly", "hi"],
            "did you mean `read-only`?",
        ),
        (&["edit", "1", "x"], "a message is CONV:N"),
        (&["config"], "rejoin config needs a subcommand: "),
        (&["answer"], "nothing waits for an answer"),
    ] {
        let done = world.run(args);
        assert_ne!(done.code, 0, "{done:?}");
        assert!(done.stderr.contains(expected), "{args:?}: {done:?}");
    }
}
