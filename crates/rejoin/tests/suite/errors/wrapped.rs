//! Classes of failed turns that the real CLI shows only on other machines, or never to us: a script
//! stands in front of it.

use insta::assert_snapshot;
use rejoin_model::Step;
use rejoin_testkit::{CLAUDE_OLD, Model, World, runs};

use super::REJOIN;
use super::turns::failing;
use crate::suite::terminal::steady;

/// Stands in front of the real binary and does what the file `mood` says.
fn moody(world: &mut World) {
    let real = &world.env["REJOIN_AGENTS_CLAUDE_BIN"];
    let mood = world.root().join("mood");
    let mood = mood.display();
    let body = format!(
        r#"#!/bin/bash
case "$(cat {mood} 2>/dev/null)" in
  root) echo '--dangerously-skip-permissions cannot be used with root/sudo privileges' >&2; exit 1;;
  used) echo 'Error: Session ID is already in use.' >&2; exit 1;;
  other)
    args=()
    while [ $# -gt 0 ]; do
      case $1 in
        --resume) args+=(--session-id 77ab0000-0000-4000-8000-000000000000); shift 2;;
        *) args+=("$1"); shift;;
      esac
    done
    # Says so only when it is over: one that says so at once is stopped before a tool runs.
    out=$(head -n 1 | {real} "${{args[@]}}"); echo "$out";;
  moves)
    {real} "$@" | sed -u '/"subtype":"init"/{{p;s/"session_id":"[^"]*"/"session_id":"moved"/}}';;
  aborts)
    {real} "$@" | sed -u '/"type":"result"/{{s/"success"/"error_during_execution"/
      s/"terminal_reason":"[^"]*"/"terminal_reason":"aborted_streaming"/;t
      s/"is_error":false/&,"terminal_reason":"aborted_streaming"/}}';;
  *) exec {real} "$@";;
esac
"#
    );
    let path = world.root().join("moody");
    world.script(&path, &body);
    world.use_claude(&path);
}

#[test]
fn what_the_cli_does_only_to_others() {
    let ran = vec![runs("echo ran"), Step::text("done")];
    let model = || Model::scripted([("ran", ran)]);
    let Some(mut world) = World::claude_with(REJOIN, CLAUDE_OLD, model).map(steady) else {
        return;
    };
    moody(&mut world);
    let flags = ["-m", "sonnet", "--tools", "Bash"];
    world.say(1, &flags);
    let mood = |mood: &str| std::fs::write(world.root().join("mood"), mood).unwrap();
    mood("root");
    assert_snapshot!(failing(&world, "", &[]), @r#"
    exit 5, turn envelope
    rejoin: failed, envelope: the CLI ended without a result: --dangerously-skip-permissions cannot be used with root/sudo privileges · tmqx:3 kept, no tool ran · claude sonnet · rejoin send --help
    {
      "class": "envelope",
      "message": "the CLI ended without a result: --dangerously-skip-permissions cannot be used with root/sudo privileges",
      "try": "rejoin send --help"
    }
    "#);
    mood("used");
    assert_snapshot!(failing(&world, "", &[]), @r#"
    exit 4, turn in_use
    rejoin: failed, in_use: the CLI ended without a result: Error: Session ID is already in use. · tmqx:4 kept, no tool ran · claude sonnet · rejoin explain tmqx --next
    {
      "class": "in_use",
      "message": "the CLI ended without a result: Error: Session ID is already in use.",
      "try": "rejoin explain tmqx --next"
    }
    "#);
    mood("aborts");
    assert_snapshot!(failing(&world, "#s:a2", &[]), @r#"
    exit 130, turn interrupted
    rejoin: failed, interrupted: it was interrupted · tmqx:5 kept, no tool ran · claude sonnet · rejoin send -c tmqx "please go on"
    {
      "class": "interrupted",
      "message": "it was interrupted",
      "try": "rejoin send -c tmqx \"please go on\""
    }
    "#);
    mood("other");
    assert_snapshot!(failing(&world, "#s:ran", &[]), @r#"
    exit 1, turn refused
    rejoin: failed, refused: the CLI opened the session 5e551043-0000-4000-8000-000000000000 instead of 5e551043-0000-4000-8000-000000000000 · tmqx:6 kept, 1 tool ran · claude sonnet · rejoin send -c tmqx "please go on"
    {
      "class": "refused",
      "message": "the CLI opened the session 5e551043-0000-4000-8000-000000000000 instead of 5e551043-0000-4000-8000-000000000000",
      "try": "rejoin send -c tmqx \"please go on\""
    }
    "#);
    mood("moves");
    assert_snapshot!(failing(&world, "#s:a2", &[]), @r#"
    exit 1, turn not_recorded
    rejoin: failed, not_recorded: the CLI went on in another session · tmqx:7 kept, no tool ran · claude sonnet · rejoin send -c tmqx "please go on"
    {
      "class": "not_recorded",
      "message": "the CLI went on in another session",
      "try": "rejoin send -c tmqx \"please go on\""
    }
    "#);
}
