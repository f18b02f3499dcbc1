//! Each class of error at 80 columns: for people, and as JSON.

mod covered;
mod held;
pub(super) mod turns;
mod wrapped;

use std::fmt::Write as _;

use insta::assert_snapshot;
use rejoin_testkit::{Done, World, sql};

use super::terminal::{masked, world};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

#[track_caller]
pub(super) fn said(world: &World, args: &[&str]) -> String {
    let json = [args, &["--json"]].concat();
    saying(world, &world.run(args), &world.run(&json))
}

#[track_caller]
fn saying(world: &World, done: &Done, json: &Done) -> String {
    masked(world, &both(done, json))
}

/// The error as a person reads it and as a script does; both with the same exit code.
#[track_caller]
fn both(done: &Done, json: &Done) -> String {
    assert_eq!(
        (done.code, done.stdout.as_str()),
        (json.code, ""),
        "{done:?} {json:?}"
    );
    assert_ne!(done.code, 0, "{done:?}");
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
    text
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
    error: unexpected argument '--colour of money' found; did you mean `--color`?
      try: rejoin send --help
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
    error: invalid value 'soon' for '--timeout <TIME>': a time is a number with ms, s, m, h, d or w, e.g. 90s
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
    assert_snapshot!(said(&world, &["send", "-a", "demo", "-w", "no/such/folder", "hi"]), @r#"
    exit 2, usage
    error: the working folder no/such/folder does not exist
      try: the same with -w DIR
    "#);
    std::fs::write(world.work().join("file"), "").unwrap();
    assert_snapshot!(said(&world, &["send", "-a", "demo", "-w", "file", "hi"]), @r#"
    exit 2, usage
    error: the working folder file is not a folder
      try: the same with -w DIR
    "#);
    let gone = world.root().join("gone");
    std::fs::create_dir(&gone).unwrap();
    world
        .run(&[
            "send",
            "-a",
            "demo",
            "-k",
            "gone",
            "-w",
            gone.to_str().unwrap(),
            "hi",
        ])
        .ok();
    std::fs::remove_dir(&gone).unwrap();
    assert_snapshot!(said(&world, &["send", "-k", "gone", "hi"]), @r#"
    exit 2, usage
    error: the working folder /world/gone does not exist
      try: rejoin send -c tmqx -w . --relocate "…"
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
    error: there is no agent `nobody`; there are claude, codex, gemini, opencode, demo
      try: rejoin doctor
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
    assert_snapshot!(said(&world, &["escalate", "k"]), @r#"
    exit 5, climb_refused
    error: the climb is refused: there is no higher tier; nothing was run
      try: rejoin escalate --dry-run
    "#);
    assert_snapshot!(said(&world, &["cancel", "k"]), @r#"
    exit 4, conflict
    error: the turn has ended already: succeeded
      try: rejoin explain k
    "#);
    std::fs::remove_dir_all(world.home().join(".rejoin-demo")).unwrap();
    sql(&world.data().join("rejoin.db"), "delete from snapshots");
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
    let refused = |world: &World| both(&world.run(&["list"]), &world.run(&["list", "--json"]));
    assert_snapshot!(refused(&world), @r#"
    exit 6, unavailable
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
    assert_snapshot!(refused(&world).replace(data.to_str().unwrap(), "/data"), @r#"
    exit 6, unavailable
    error: the store could not be opened at /data/rejoin.db: the store does not answer: file is not a database
      try: rejoin doctor
    "#);
}
