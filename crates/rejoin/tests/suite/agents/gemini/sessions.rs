//! What the CLI does with its sessions, and what must not come of it.

use std::fs;
use std::path::{Path, PathBuf};

use rejoin_model::Step;
use rejoin_testkit::{Chronicle, Continued, Talk, World, answer, answering, runs, sql};
use serde_json::json;

use super::{begun, calls, results, scripted, world};

/// 0.61.0 sends each result twice when it resumes a session with tools, and the API (here the strict
/// model) refuses that: the session is mended before it is confirmed.
#[test]
fn a_session_with_tools_is_resumed_with_each_result_once() {
    let both = Step {
        tools: [runs("echo result-one"), runs("echo result-two")]
            .into_iter()
            .flat_map(|step| step.tools)
            .collect(),
        ..Step::text("Running both.")
    };
    let read = calls("list_directory", json!({"dir_path": "."}));
    let Some(world) = scripted([("tools", vec![both, read, Step::text(answer(2))])]) else {
        return;
    };
    let mut talk = begun(world, &SHELL);
    talk.n += 1;
    let turn = talk.world.send(talk.n, "#s:tools", &SHELL).ok().json();
    assert_eq!(turn["status"], "succeeded", "{turn:#}");
    talk.words = rejoin_testkit::said(1..=2);
    shows_each_result_once(&mut talk, 3);
    // In a later minute the CLI keeps more of what it noted, and repeats it in another way.
    let file = talk.world.sessions().pop().unwrap();
    fs::rename(&file, file.with_file_name(older(&file))).unwrap();
    shows_each_result_once(&mut talk, 3);
    shows_each_result_once(&mut talk, 3);
    talk.n += 1;
    let script = rejoin_testkit::steps(
        talk.n,
        &json!([{"tools": [{"name": "Bash", "input": {"command": "echo result-three", "description": "x"}}]},
                {"text": answer(talk.n)}]),
    );
    let turn = talk.world.send(talk.n, &script, &SHELL).ok().json();
    assert_eq!(turn["verdict"], "resumed", "{turn:#}");
    talk.words
        .extend([rejoin_testkit::user(talk.n), answer(talk.n)]);
    shows_each_result_once(&mut talk, 4);
}

const SHELL: [&str; 2] = ["--tools", "shell,read"];

#[track_caller]
fn shows_each_result_once(talk: &mut Talk, expected: usize) {
    talk.good("resumed", &SHELL);
    assert_eq!(results(&talk.world), expected);
    let history = talk.world.model.last().history().to_string();
    for word in ["result-one", "result-two"] {
        // In the call and in its result.
        assert_eq!(history.matches(word).count(), 2, "{word} in {history}");
    }
}

/// The name of a session file as if it had been begun some time ago.
fn older(file: &Path) -> String {
    let name = file.file_name().unwrap().to_str().unwrap();
    format!("session-2026-01-01T00-00{}", &name[24..])
}

/// A script that stands in front of the real CLI, which it knows as `$real`.
fn wrapper(world: &World, name: &str, body: &str) -> PathBuf {
    let path = world.root().join(name);
    let real = world.bin();
    world.script(
        &path,
        &format!("#!/bin/bash\nreal={}\n{body}\n", real.display()),
    );
    path
}

/// A-35, A-50: our own look finds the session as it was, the CLI does not find it at all.
#[test]
fn a_refused_session_is_retried_once_as_a_record() {
    let Some(mut world) = world() else { return };
    let empty = world.root().join("empty");
    fs::create_dir_all(empty.join(".gemini")).unwrap();
    let own = world.home().join(".gemini/settings.json");
    fs::copy(own, empty.join(".gemini/settings.json")).unwrap();
    let body = format!(
        r#"for arg; do
             if [ "$arg" = --resume ] && [ -e "{0}/refuse" ]; then export GEMINI_CLI_HOME="{0}"; fi
           done
           exec "$real" "$@""#,
        empty.display()
    );
    let bin = wrapper(&world, "forgetful", &body);
    world.use_bin(&bin);
    let mut story = Chronicle::begun(world);
    fs::write(empty.join("refuse"), "").unwrap();
    let asked = story.world.model.requests().len();
    story.turn(Continued::Reseeded("rejected"), &[]);
    assert_eq!(story.world.model.requests().len(), asked + 1);
    fs::remove_file(empty.join("refuse")).unwrap();
    story.resumes(&[]);
}

/// A CLI that starts afresh instead of resuming is noticed by its first event, and stopped.
#[test]
fn a_cli_that_starts_afresh_is_noticed() {
    let Some(mut world) = world() else { return };
    let flag = world.root().join("afresh");
    let body = format!(
        r#"args=()
           while [ $# -gt 0 ]; do
             if [ "$1" = --resume ] && [ -e "{}" ]; then
               shift 2
               # As late as the model of a slow machine.
               "$real" "${{args[@]}}" "$@"
               exit
             fi
             args+=("$1"); shift
           done
           exec "$real" "${{args[@]}}""#,
        flag.display()
    );
    let bin = wrapper(&world, "afresh.sh", &body);
    world.use_bin(&bin);
    let mut story = Chronicle::begun(world);
    fs::write(&flag, "").unwrap();
    let turn = story.turn(Continued::Reseeded("rejected"), &[]);
    assert_eq!(turn["attempts"][0]["verdict"], "resumed", "{turn:#}");
    fs::remove_file(&flag).unwrap();
    story.resumes(&[]);
}

/// Ids that are none, or another's, are never given to the CLI: `latest`, an index and the empty
/// text would silently start afresh or open the wrong session.
#[test]
fn no_other_id_reaches_the_cli() {
    let Some(world) = world() else { return };
    let mut talk = begun(world, &[]);
    for other in ["latest", "1", "5ba2cd4e"] {
        let last = talk.world.last_turn();
        let session = last["session_id"].as_str().unwrap();
        sql(
            &talk.world.data().join("rejoin.db"),
            &format!(
                "update pins set session_id = '{other}', confirmed = replace(confirmed, '{session}', '{other}')
                 where session_id = '{session}'"
            ),
        );
        let turn = talk.good("reseeded", &[]);
        let command = turn["command"].as_array().unwrap();
        assert!(!command.iter().any(|arg| arg == other), "{command:?}");
        assert_eq!(turn["attempts"].as_array().unwrap().len(), 1, "{turn}");
    }
    talk.good("resumed", &[]);
    talk.world.assert_quiet();
}

/// With its own settings the CLI deletes a session once another one is begun after a resume in a
/// later minute; in the overlay it does not, and the user's settings stay as they are.
#[test]
fn sessions_are_not_tidied_away() {
    let Some(world) = world() else { return };
    let own = world.home().join(".gemini/settings.json");
    let before = fs::read(&own).unwrap();
    let mut story = Chronicle::begun(world);
    // As if the session had been begun some time ago: a resume now leaves a stub beside it, with
    // which the next start would delete both.
    let file = story.session_file();
    let older = file.with_file_name(older(&file));
    fs::rename(&file, &older).unwrap();
    story.resumes(&[]);
    let args = [
        "send",
        "--json",
        "-k",
        "other",
        "-m",
        "gemini-2.5-flash",
        "hi #s:hello",
    ];
    let other = story.world.run(&args);
    assert_eq!(other.code, 0, "{other:?}");
    assert!(older.exists());
    let files = fs::read_dir(file.parent().unwrap()).unwrap().count();
    assert_eq!(files, 2, "the stub is gone");
    story.resumes(&[]);
    assert_eq!(fs::read(&own).unwrap(), before);
}

/// Tokens are the turn's own; money is not known.
#[test]
fn usage_is_the_turns_own() {
    let Some(world) = world() else { return };
    let mut story = Chronicle::new(world);
    let first = story.scripted(Continued::Started, &answering(1, 50_000, 700), &[]);
    let second = story.scripted(Continued::Resumed, &answering(2, 40, 7), &[]);
    for (turn, input, output) in [(first, 50_000, 700), (second, 40, 7)] {
        let usage = &turn["usage"];
        assert!(
            usage["cache_write"].is_null(),
            "the CLI counts no writes: {usage}"
        );
        assert_eq!(
            (&usage["input"], &usage["output"]),
            (&input.into(), &output.into()),
            "{turn:#}"
        );
        assert_eq!(turn["cost_usd"], serde_json::Value::Null);
    }
}
