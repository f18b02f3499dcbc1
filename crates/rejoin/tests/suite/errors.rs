//! Each class of error at 80 columns: for people, and as JSON.

use std::fmt::Write as _;

use insta::assert_snapshot;
use rejoin_testkit::World;

use super::terminal::{masked, world};

/// The error as a person reads it and as a script does; both with the same exit code.
fn said(world: &World, args: &[&str]) -> String {
    let done = world.run(args);
    let json = world.run(&[args, &["--json"]].concat());
    assert_eq!(
        (done.code, done.stdout.as_str()),
        (json.code, ""),
        "{done:?} {json:?}"
    );
    assert_ne!(done.code, 0, "{args:?}");
    let error = &json.json()["error"];
    let mut text = format!(
        "exit {}, {}\n{}",
        done.code,
        error["code"].as_str().unwrap(),
        done.stderr
    );
    let people = format!(
        "error: {}\n  try: {}\n",
        error["message"].as_str().unwrap(),
        error["try"].as_str().unwrap()
    );
    if people != done.stderr {
        let _ = write!(text, "but as JSON: {people}");
    }
    masked(world, &text)
}

#[test]
fn usage() {
    let world = world();
    assert_snapshot!(said(&world, &["lst"]), @r#"
    exit 2, usage
    error: unrecognized subcommand 'lst'; did you mean `list`?
      try: rejoin list
    "#);
    assert_snapshot!(said(&world, &["send", "--agnt", "x"]), @r#"
    exit 2, usage
    error: unexpected argument '--agnt' found; did you mean `--agent`?
      try: rejoin send --help
    "#);
    assert_snapshot!(said(&world, &["send", "--colour of money"]), @r#"
    exit 2, usage
    error: unexpected argument '--colour of money' found
      try: rejoin send -- '--colour of money'
    "#);
    assert_snapshot!(said(&world, &["completions", "bahs"]), @r#"
    exit 2, usage
    error: invalid value 'bahs' for '<SHELL>' [possible values: bash, zsh, fish]; did you mean `bash`?
      try: rejoin completions --help
    "#);
    assert_snapshot!(said(&world, &["completions"]), @r#"
    exit 2, usage
    error: the following required arguments were not provided: <SHELL>
      try: rejoin completions --help
    "#);
    assert_snapshot!(said(&world, &["send", "--timeout", "soon", "hi"]), @r#"
    exit 2, usage
    error: invalid value 'soon' for '--timeout <TIME>': a time is a number with ms, s, m or h, e.g. 90s
      try: rejoin send --help
    "#);
    assert_snapshot!(said(&world, &["send", "--permission", "red", "hi"]), @r#"
    exit 2, usage
    error: invalid value 'red' for '--permission <MODE>': `red` is none of read-only, edit, full, ask
      try: rejoin send --help
    "#);
    assert_snapshot!(said(&world, &["send", "-a", "demo", " "]), @r#"
    exit 2, usage
    error: the message is empty
      try: rejoin send "your message"
    "#);
    assert_snapshot!(said(&world, &["send", "-a", "demo", "-w", "/no/such/folder", "hi"]), @r#"
    exit 2, usage
    error: the working folder /no/such/folder cannot be used: failed to canonicalize path `/no/such/folder`: No such file or directory (os error 2)
      try: name a folder that exists with -w
    "#);
    assert_snapshot!(said(&world, &["list", "--cursor", "x"]), @r#"
    exit 2, usage
    error: that is not a cursor; --json prints one as next_cursor
      try: rejoin list --json
    "#);
    assert_snapshot!(said(&world, &["list", "--state", "sleeping"]), @r#"
    exit 2, usage
    error: invalid value 'sleeping' for '--state <STATE>' [possible values: idle, queued, running, waiting]
      try: rejoin list --help
    "#);
}

#[test]
fn not_found() {
    let world = world();
    assert_snapshot!(said(&world, &["reply", "hi"]), @r#"
    exit 3, not_found
    error: there is no conversation yet
      try: rejoin send "hello"
    "#);
    assert_snapshot!(said(&world, &["show", "nobody"]), @r#"
    exit 3, not_found
    error: there is no conversation `nobody`
      try: rejoin list
    "#);
    world
        .run(&["send", "-a", "demo", "-k", "review-42", "hi"])
        .ok();
    assert_snapshot!(said(&world, &["show", "reviw-42"]), @r#"
    exit 3, not_found
    error: there is no conversation `reviw-42`; did you mean `review-42`?
      try: rejoin list
    "#);
    assert_snapshot!(said(&world, &["show", "review-42:9"]), @r#"
    exit 3, not_found
    error: tmqx has no message 9; its last is 2
      try: rejoin show tmqx
    "#);
    assert_snapshot!(said(&world, &["explain", "review-42:9"]), @r#"
    exit 3, not_found
    error: there is no turn `review-42:9`
      try: rejoin list
    "#);
    assert_snapshot!(said(&world, &["send", "-a", "nobody", "hi"]), @r#"
    exit 3, agent_not_found
    error: there is no agent `nobody`
      try: rejoin send -a claude|codex|demo "…"
    "#);
    let elsewhere = world.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let mut command = world.command(&["reply", "hi"]);
    command.current_dir(&elsewhere);
    let done = rejoin_testkit::Done::of(command.spawn().unwrap());
    assert_snapshot!(masked(&world, &done.stderr), @r#"
    error: no conversation was used in this folder; the newest elsewhere is tmqx in /world/work
      try: rejoin list
    "#);
}

/// A mistyped handle, and a prefix of two.
#[test]
fn handles_that_are_not_quite_right() {
    let world = world();
    let mut handles: Vec<String> = vec![];
    // Seventeen handles begin with sixteen letters.
    let shared = loop {
        let turn = world
            .run(&["send", "-a", "demo", "--json", "hi"])
            .ok()
            .json();
        handles.push(
            turn["handle"]
                .as_str()
                .unwrap()
                .split(':')
                .next()
                .unwrap()
                .to_owned(),
        );
        let first = handles.last().unwrap()[..1].to_owned();
        if handles.iter().filter(|h| h.starts_with(&first)).count() > 1 {
            break first;
        }
    };
    let done = world.run(&["show", &shared]);
    assert_eq!(done.code, 3);
    assert!(
        done.stderr
            .starts_with(&format!("error: `{shared}` could be {shared}")),
        "{done:?}"
    );
    assert!(done.stderr.ends_with("\n  try: rejoin list\n"), "{done:?}");
    let typed = format!("{}e{}", &handles[0][..2], &handles[0][3..]);
    let done = world.run(&["show", &typed]);
    let meant = format!(
        "error: there is no conversation `{typed}`; did you mean `{}`?\n",
        handles[0]
    );
    assert!(done.stderr.starts_with(&meant), "{done:?}");
}

#[test]
fn agents() {
    let mut world = world();
    world.set("PATH", "/nowhere");
    assert_snapshot!(said(&world, &["send", "hello"]), @r#"
    exit 3, agent_missing
    error: claude is not installed: `claude` was not found; nothing was sent
      try: npm install -g @anthropic-ai/claude-code
    "#);
    assert_snapshot!(said(&world, &["send", "-a", "demo", "--tools", "Bash", "hi"]), @r#"
    exit 5, envelope
    error: the demo agent has no tools to choose from; leave out --tools; nothing was sent and the message was not kept
      try: rejoin send --help
    "#);
    world.set("REJOIN_AGENTS_CLAUDE_BIN", "/usr/bin/true");
    assert_snapshot!(said(&world, &["send", "hello"]), @r#"
    exit 3, agent_missing
    error: `/usr/bin/true` does not answer like claude: --version says “true (GNU coreutils) 9.1”
      try: rejoin doctor
    "#);
}

#[test]
fn conflicts_and_refusals() {
    let world = world();
    world
        .run(&[
            "send",
            "-a",
            "demo",
            "-k",
            "k",
            "--idempotency-key",
            "once",
            "hi",
        ])
        .ok();
    assert_snapshot!(said(&world, &["send", "-a", "demo", "-k", "k", "--idempotency-key", "once", "ho"]), @r#"
    exit 4, key_reused
    error: the key `once` was used before with another message; this message was not kept
      try: rejoin send --idempotency-key OTHER "…"
    "#);
    assert_snapshot!(said(&world, &["cancel", "k"]), @r#"
    exit 4, conflict
    error: the turn has ended already: succeeded
      try: rejoin explain k
    "#);
    std::fs::remove_dir_all(world.home().join(".rejoin-demo")).unwrap();
    assert_snapshot!(said(&world, &["send", "-c", "k", "--no-reseed", "hi"]), @r#"
    exit 5, would_reseed
    error: the session cannot be resumed (session_missing), and --no-reseed forbids telling a new one; nothing was sent and the message was not kept
      try: rejoin explain --next, or the same without --no-reseed
    "#);
    std::fs::write(
        world.work().join("rejoin.toml"),
        "[agents.claude]\nbin = \"/bin/evil\"\n",
    )
    .unwrap();
    assert_snapshot!(said(&world, &["send", "hi"]), @r#"
    exit 5, untrusted
    error: /world/work/rejoin.toml sets agents.claude.bin, which counts only once you trust it; nothing was run and no message was kept
      try: rejoin trust
    "#);
}

#[test]
fn configuration_and_store() {
    let mut world = world();
    std::fs::write(world.work().join("c.toml"), "[resume]\nbraker = 2\n").unwrap();
    assert_snapshot!(said(&world, &["--config", "c.toml", "list"]), @r#"
    exit 2, config
    error: c.toml, line 2: unknown key `resume.braker`; did you mean `resume.breaker`?
      try: ${EDITOR:-vi} +2 c.toml
    "#);
    world.set("REJOIN_HOME", "/proc/nowhere");
    let done = world.run(&["list"]);
    assert_eq!(done.code, 6);
    assert_snapshot!(done.stderr, @r#"
    error: /proc/nowhere cannot be made: No such file or directory (os error 2)
      try: export REJOIN_HOME=/a/folder/you/can/write
    "#);
    let data = world.root().join("damaged");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(
        data.join("rejoin.db"),
        "this is no database, and long enough to be looked at as one",
    )
    .unwrap();
    world.set("REJOIN_HOME", data.to_str().unwrap());
    let done = world.run(&["list"]);
    assert_eq!(done.code, 6);
    assert_snapshot!(done.stderr.replace(data.to_str().unwrap(), "/data"), @r#"
    error: the store could not be opened at /data/rejoin.db: the store does not answer: error returned from database: (code: 26) file is not a database
      try: export REJOIN_HOME=/a/folder/you/can/write
    "#);
}

/// A turn that fails prints itself, with its error; the message is kept.
#[test]
fn a_turn_that_fails() {
    let world = world();
    std::fs::write(world.home().join(".rejoin-demo"), "in the way").unwrap();
    let done = world.run(&["send", "-a", "demo", "hi"]);
    assert_eq!((done.code, done.stdout.as_str()), (1, ""));
    assert_snapshot!(masked(&world, &done.stderr), @r#"
    rejoin: failed, unknown: failed to create directory `/world/home/.rejoin-demo/sessions`: Not a directory (os error 20) · tmqx:1 kept, no tool ran · demo demo
      try: rejoin explain tmqx
    "#);
    let turn = world.run(&["reply", "--json", "hi again"]);
    assert_snapshot!(super::terminal::masked_json(&world, &turn.json()["error"]), @r#"
    {
      "class": "unknown",
      "message": "failed to create directory `/world/home/.rejoin-demo/sessions`: Not a directory (os error 20)",
      "try": "rejoin explain tmqx"
    }
    "#);
}
