//! A vendor's bad release: for each row of the matrix a stand-in that breaks just that, in front of
//! the real CLI. The doctor must see it, and what cannot be relied on is not resumed.

use std::fs;

use rejoin_testkit::{CLAUDE_197, Chronicle, Continued, World};
use serde_json::Value;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// Puts a script in the CLI's place, which knows the real one as `$real`, the session it is told to
/// begin or resume as `$begin` and `$resume`, and a folder of its own that outlives homes as `$notes`.
fn stand_in(world: &mut World, body: &str) {
    let notes = world.root().join("notes");
    fs::create_dir(&notes).unwrap();
    let (real, path) = (world.bin(), world.root().join("stand-in"));
    let text = format!(
        "#!/bin/bash\nreal={}\nnotes={}\nresume=; begin=; before=\nfor arg; do\n  [ \"$before\" = --resume ] && resume=$arg\n  [ \"$before\" = --session-id ] && begin=$arg\n  before=$arg\ndone\nfiles() {{ find \"$HOME\" -name \"$1.jsonl\"; }}\n{body}\n",
        real.display(),
        notes.display(),
    );
    world.script(&path, &text);
    world.use_bin(&path);
}

fn proven(world: &World) -> Value {
    let done = world.run(&["doctor", "--prove", "claude", "--json"]);
    let report = done.json();
    let agents = report["agents"].as_array().unwrap();
    let claude = agents.iter().find(|a| a["name"] == "claude").unwrap();
    assert_eq!(done.code, 1, "{claude:#}");
    claude.clone()
}

/// The first broken row, and whether this binary may still resume.
#[track_caller]
fn breaks(body: &str, row: &str, resume: &str, evidence: &str) -> Option<World> {
    let mut world = World::of(REJOIN, &CLAUDE_197)?;
    stand_in(&mut world, body);
    let claude = proven(&world);
    let rows = claude["proof"]["rows"].as_array().unwrap();
    let broken: Vec<&Value> = rows.iter().filter(|r| r["state"] == "broken").collect();
    assert_eq!(broken[0]["what"], row, "{rows:#?}");
    let seen = broken[0]["evidence"].as_str().unwrap();
    assert!(seen.contains(evidence), "{seen}");
    assert_eq!(claude["resume"], resume, "{claude:#}");
    Some(world)
}

#[test]
fn a_resume_that_starts_afresh() {
    let fresh = r#"if [ -n "$resume" ]; then
          new=$(cat /proc/sys/kernel/random/uuid); args=()
          for arg; do
            case "$arg" in --resume) arg=--session-id ;; "$resume") arg=$new ;; esac
            args+=("$arg")
          done
          set -- "${args[@]}"
        fi
        exec "$real" "$@""#;
    let Some(world) = breaks(fresh, "resume", "absent", "") else {
        return;
    };
    // It degrades to transcripts instead of losing context.
    let mut story = Chronicle::begun(world);
    story.turn(Continued::Reseeded("no_capability"), &[]);
}

#[test]
fn a_dropped_message() {
    let drop = r#"if [ -n "$resume" ]; then
          for file in $(files "$resume"); do
            grep -v 'proof-answer-1-word' "$file" > "$file.new"; mv "$file.new" "$file"
          done
        fi
        exec "$real" "$@""#;
    breaks(drop, "resume", "absent", "“proof-");
}

#[test]
fn an_id_that_changes() {
    let other = r#""$real" "$@" | sed -u 's/"session_id":"[0-9a-f]\{8\}/"session_id":"00000000/'"#;
    breaks(other, "start", "absent", "");
}

#[test]
fn a_tool_list_that_is_ignored() {
    let wide = r#"args=(); skip=
        for arg; do
          case "$arg" in
            --tools|--disallowedTools|--permission-mode) skip=1 ;;
            *) [ -n "$skip" ] || args+=("$arg"); skip= ;;
          esac
        done
        exec "$real" "${args[@]}" --permission-mode acceptEdits --allowedTools Bash,Read"#;
    breaks(
        wide,
        "tool list obeyed on resume",
        "absent",
        "it offers Bash",
    );
}

#[test]
fn a_file_that_is_read_for_a_word() {
    let read = r#"sed -u 's/proof-message-1-word/& word-in-the-canary-file/' | "$real" "$@""#;
    breaks(read, "text is data", "proven", "was read");
}

#[test]
fn a_failed_turn_that_comes_back() {
    let keep = r#"if [ -n "$resume" ]; then
          for file in $(files "$resume"); do
            [ -e "$notes/tail" ] && cat "$notes/tail" >> "$file"
          done
        fi
        "$real" "$@"; code=$?
        if [ -n "$resume" ]; then
          for file in $(files "$resume"); do grep proof-400 "$file" > "$notes/tail"; done
        fi
        exit $code"#;
    breaks(keep, "cut back after a failed turn", "absent", "");
}

#[test]
fn a_refusal_in_other_words() {
    let mute = r#"if [ -n "$resume" ] && [ -z "$(files "$resume")" ]; then
          echo "something went wrong" >&2; exit 3
        fi
        exec "$real" "$@""#;
    breaks(mute, "refusal detected", "absent", "not recognised");
}

/// Nothing was shown, for or against: where an administrator forbids it, a good CLI runs nothing.
#[test]
fn tools_that_never_run() {
    let idle = r#"args=(); skip=
        for arg; do
          case "$arg" in
            --permission-mode) skip=1 ;;
            *) [ -n "$skip" ] || args+=("$arg"); skip= ;;
          esac
        done
        exec "$real" "${args[@]}" --permission-mode dontAsk --tools Read --disallowedTools Bash"#;
    let Some(mut world) = World::of(REJOIN, &CLAUDE_197) else {
        return;
    };
    stand_in(&mut world, idle);
    let done = world.run(&["doctor", "--prove", "claude", "--json"]).ok();
    let report = done.json();
    let agents = report["agents"].as_array().unwrap();
    let claude = agents.iter().find(|a| a["name"] == "claude").unwrap();
    assert_eq!(claude["resume"], "proven", "{claude:#}");
    for row in claude["proof"]["rows"].as_array().unwrap() {
        let tools = ["tool list obeyed on resume", "whole tree killed"];
        let tried = !tools.contains(&row["what"].as_str().unwrap());
        let state = if tried { "proven" } else { "not_tried" };
        assert_eq!(row["state"], state, "{row:#}");
    }
}

#[test]
fn a_session_that_needs_more_than_its_file() {
    let needy = r#"mark="$HOME/needed"
        if [ -z "$resume" ]; then touch "$mark"
        elif [ ! -e "$mark" ]; then echo "No conversation found with session ID: $resume" >&2; exit 1
        fi
        exec "$real" "$@""#;
    breaks(needy, "restore in an empty home", "proven", "rejected");
}

#[test]
fn a_session_that_stays_in_its_folder() {
    let bound = r#"if [ -n "$begin" ]; then pwd > "$notes/$begin"
        elif [ -f "$notes/$resume" ] && [ "$(pwd)" != "$(cat "$notes/$resume")" ]; then
          echo "No conversation found with session ID: $resume" >&2; exit 1
        fi
        exec "$real" "$@""#;
    breaks(bound, "restore in another folder", "proven", "rejected");
}

/// Only where the session is not known: otherwise it behaves.
#[test]
fn an_unknown_session_that_starts_afresh() {
    let fresh = r#"if [ -n "$resume" ] && [ -z "$(files "$resume")" ]; then
          args=()
          for arg; do
            case "$arg" in --resume) arg=--session-id ;; esac
            args+=("$arg")
          done
          set -- "${args[@]}"
        fi
        exec "$real" "$@""#;
    let Some(world) = breaks(fresh, "refusal detected", "absent", "not recognised") else {
        return;
    };
    let claude = world.run(&["doctor", "--json"]).json()["agents"][0].clone();
    let rows = claude["proof"]["rows"].as_array().unwrap();
    let silent = rows.iter().find(|r| r["what"] == "no silent fresh start");
    assert_eq!(silent.unwrap()["state"], "broken", "{rows:#?}");
}

#[test]
fn a_fork_that_writes_to_its_parent() {
    let same = r#"args=(); skip=; forks=
        for arg; do [ "$arg" = --fork-session ] && forks=1; done
        for arg; do
          if [ -n "$skip" ]; then skip=; continue; fi
          case "$arg" in
            --fork-session) ;;
            --session-id) [ -n "$forks" ] && skip=1 || args+=("$arg") ;;
            *) args+=("$arg") ;;
          esac
        done
        exec "$real" "${args[@]}""#;
    breaks(same, "fork", "proven", "its parent's session");
}

#[test]
fn counts_that_say_nothing() {
    let mute = r#""$real" "$@" | sed -u 's/"[a-z_]*_tokens":[0-9]*/"x":0/g; s/"total_cost_usd":[0-9.e-]*/"x":0/g'"#;
    breaks(mute, "scope of its totals", "proven", "not proven");
}
