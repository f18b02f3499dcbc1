//! Gemini CLI asks, over its protocol for editors, before it writes or runs anything.

use std::fs;
use std::path::PathBuf;

use rejoin_model::{Script, Step, ToolCall};
use rejoin_testkit::{
    GEMINI_061, Model, Talk, World, answer as word, assert_shown, kill, runs, said, texts, user,
};
use serde_json::{Value, json};

use super::killed::nobody_follows;
use super::{REJOIN, answer, asking, asks, ended, inbox, only, quiet};

const ASK: [&str; 4] = ["-m", "gemini-2.5-flash", "--permission", "ask"];
const EDIT: [&str; 4] = ["-m", "gemini-2.5-flash", "--permission", "edit"];

fn calls(name: &str, input: Value) -> Step {
    Step {
        tools: vec![ToolCall::new(name, input)],
        ..Step::default()
    }
}

fn world() -> Option<World> {
    let again = "echo again >> ran.txt";
    let twice = vec![runs(again), runs(again), Step::text("Done.")];
    let edit = json!({"file_path": "f", "old_string": "b", "new_string": "X", "instruction": "x"});
    let edit = vec![calls("replace", edit), Step::text("Edited.")];
    let scripts = || Model::scripted([("twice", twice), ("edit", edit), ("tools", tools())]);
    World::with(REJOIN, &GEMINI_061, scripts)
}

/// Text between calls, one that is not asked for and one of a tool that is not there.
fn tools() -> Script {
    let said = |step: Step, text: &str| Step {
        text: Some(text.into()),
        ..step
    };
    vec![
        said(runs("echo harmless"), "First."),
        said(calls("read_file", json!({"file_path": "f"})), "Second."),
        calls("exit_plan_mode", json!({"plan_filename": "p.md"})),
        runs("touch by-shell"),
        Step::text("All done."),
    ]
}

/// How often the model was told something, at the end.
fn heard(world: &World, words: &str) -> usize {
    texts(&world.model.last()).matches(words).count()
}

/// All session files, also those that hold nothing.
fn session_files(world: &World) -> Vec<PathBuf> {
    let folders = fs::read_dir(world.home().join(".gemini/rejoin/.gemini/tmp")).unwrap();
    let chats = folders.flatten().map(|folder| folder.path().join("chats"));
    let files = chats.flat_map(|chats| fs::read_dir(chats).into_iter().flatten().flatten());
    files.map(|file| file.path()).collect()
}

/// Promise 7: what a person decides counts for what was asked, and is asked again in the next turn.
#[test]
fn permissions_are_asked_for() {
    let Some(world) = world().map(asking) else {
        return;
    };
    let ran = || fs::read_to_string(world.work().join("ran.txt")).unwrap_or_default();
    let asked = |turn: &Value, command: &str| {
        let question = only(turn);
        assert_eq!(question["kind"], "approval", "{turn}");
        assert_eq!(question["tool"], "run_shell_command", "{turn}");
        assert_eq!(question["input"]["command"], command, "{turn}");
    };
    let bash = "echo tool-ran > ran.txt; echo hi-from-bash";
    asked(&asks(&world, "#s:bash one", &ASK), bash);
    answer(&world, &["deny", "--text", "not on a Friday"]).ok();
    let turn = ended(&world);
    assert_eq!(
        (&turn["status"], &turn["verdict"]),
        (&json!("succeeded"), &json!("started"))
    );
    assert_eq!(turn["denied"].as_array().unwrap().len(), 1, "{turn}");
    assert_eq!(turn["denied"][0]["tool"], "run_shell_command", "{turn}");
    assert_eq!(
        (heard(&world, "not on a Friday"), ran()),
        (1, String::new())
    );

    asked(&asks(&world, "#s:bash two", &[]), bash);
    answer(&world, &["allow"]).ok();
    let turn = ended(&world);
    assert_eq!(turn["verdict"], "resumed", "{turn}");
    assert_eq!(turn["denied"], json!([]), "{turn}");
    assert_eq!(ran(), "tool-ran\n");

    // Always: for the rest of this process, and no longer.
    for n in [2, 4] {
        asked(
            &asks(&world, &format!("#s:twice {n}"), &[]),
            "echo again >> ran.txt",
        );
        answer(&world, &["always"]).ok();
        let turn = ended(&world);
        assert_eq!(
            (&turn["status"], &turn["verdict"]),
            (&json!("succeeded"), &json!("resumed"))
        );
        assert_eq!(ran().matches("again").count(), n);
    }
    assert!(inbox(&world).is_empty());
    assert_eq!(heard(&world, "not on a Friday"), 1);
    quiet(&world);
}

/// A person sees what would change.
#[test]
fn a_change_is_shown_before_it_is_made() {
    let Some(world) = world().map(asking) else {
        return;
    };
    let file = world.work().join("f");
    fs::write(&file, "a\nb\nc\n").unwrap();
    let turn = asks(&world, "#s:edit", &ASK);
    let question = only(&turn);
    assert_eq!(question["tool"], "replace", "{turn}");
    let path = file.canonicalize().unwrap();
    let change = json!({"file_path": path, "old_string": "b\n", "new_string": "X\n"});
    assert_eq!(question["input"], change, "{turn}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "a\nb\nc\n");
    answer(&world, &["allow"]).ok();
    let turn = ended(&world);
    assert_eq!(turn["status"], "succeeded", "{turn}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "a\nX\nc\n");
    quiet(&world);
}

/// Promise 1: one session, gone on with by either protocol, in the minute in which it was begun as well.
#[test]
fn a_session_goes_on_with_and_without_asking() {
    let Some(world) = world() else { return };
    let mut talk = Talk::begin(world);
    let first = talk.good("started", &ASK);
    let (session, usage) = (first["session_id"].clone(), first["usage"].clone());
    let mut cached = usage["cache_read"].as_u64();
    assert!(cached > Some(0), "{first}");
    for flags in [&EDIT, &ASK, &ASK, &EDIT, &ASK] {
        let turn = talk.good("resumed", flags);
        assert_eq!(turn["session_id"], session, "{turn}");
        // What was said before is cached, and counted so by either.
        assert_eq!(turn["usage"]["input"], usage["input"], "{turn}");
        assert_eq!(turn["usage"]["output"], usage["output"], "{turn}");
        assert!(turn["usage"]["cache_read"].as_u64() > cached, "{turn}");
        cached = turn["usage"]["cache_read"].as_u64();
        assert_eq!(turn["model"], "gemini-2.5-flash", "{turn}");
        let files = session_files(&talk.world);
        assert_eq!(files.len(), 1, "{files:?}");
    }
    quiet(&talk.world);
}

/// The same with tools: each call and each result is shown once, in every turn that follows.
#[test]
fn calls_are_shown_once() {
    let Some(world) = world().map(asking) else {
        return;
    };
    fs::write(world.work().join("f"), "a\n").unwrap();
    for (n, verdict) in [(1, "started"), (2, "resumed")] {
        asks(&world, &format!("{} #s:tools", user(n)), &ASK);
        answer(&world, &["allow"]).ok();
        rejoin_testkit::wait_for("the second question", 20, || {
            let waiting = inbox(&world);
            let input = &waiting.first()?["questions"][0]["input"];
            (input["command"] == "touch by-shell").then_some(())
        });
        answer(&world, &["deny"]).ok();
        let turn = ended(&world);
        assert_eq!(
            (&turn["status"], &turn["verdict"]),
            (&json!("succeeded"), &json!(verdict))
        );
        assert_eq!(turn["text"], "First.\n\nSecond.\n\nAll done.", "{turn}");
        let denied: Vec<_> = turn["denied"]
            .as_array()
            .unwrap()
            .iter()
            .map(|d| &d["tool"])
            .collect();
        assert_eq!(denied, ["run_shell_command", "exit_plan_mode"], "{turn}");
    }
    assert!(!world.work().join("by-shell").exists());
    for (n, flags) in [(3, &ASK), (4, &EDIT)] {
        let turn = world.say(n, flags);
        assert_eq!(
            (&turn["text"], &turn["verdict"]),
            (&json!(word(n)), &json!("resumed"))
        );
        let shown = world.model.last().history().to_string();
        for part in ["\"functionCall\"", "\"functionResponse\""] {
            assert_eq!(shown.matches(part).count(), 6, "{part}: {shown}");
        }
        for n in 1..=n {
            assert_eq!(shown.matches(&user(n)).count(), 1, "{shown}");
        }
    }
    quiet(&world);
}

/// Nobody is there: nothing is written or run, whatever the user's own settings allow.
#[test]
fn without_anybody_nothing_is_written_or_run() {
    let script = vec![
        runs("touch by-shell"),
        runs("echo harmless > by-echo"),
        calls(
            "write_file",
            json!({"file_path": "by-write", "content": "x"}),
        ),
        calls(
            "replace",
            json!({"file_path": "f", "old_string": "a", "new_string": "b", "instruction": "x"}),
        ),
        calls("save_memory", json!({"fact": "x"})),
        calls("enter_plan_mode", json!({"reason": "x"})),
        calls(
            "write_file",
            json!({"file_path": "plan.md", "content": "x"}),
        ),
        calls("activate_skill", json!({"name": "skill-creator"})),
        calls(
            "invoke_agent",
            json!({"agent_name": "generalist", "prompt": "do it"}),
        ),
        Step::text("all tried"),
    ];
    let world = World::with(REJOIN, &GEMINI_061, || {
        Model::scripted([("writers", script)])
    });
    let Some(world) = world else { return };
    let own = world.home().join(".gemini");
    fs::create_dir_all(own.join("policies")).unwrap();
    let rule = "[[rule]]\ntoolName = \"*\"\ndecision = \"allow\"\npriority = 999\n";
    fs::write(own.join("policies/mine.toml"), rule).unwrap();
    fs::write(world.work().join("f"), "a").unwrap();
    for n in 1..=2 {
        let turn = world.send(n, "#s:writers", &ASK).ok().json();
        assert_eq!(turn["text"], "all tried", "{turn:#}");
        assert_eq!(turn["verdict"], if n == 1 { "started" } else { "resumed" });
        let files: Vec<_> = fs::read_dir(world.work()).unwrap().flatten().collect();
        assert_eq!(files.len(), 1, "{files:?}");
        assert_eq!(fs::read(world.work().join("f")).unwrap(), b"a");
        let denied = turn["denied"].to_string();
        for tool in [
            "run_shell_command",
            "write_file",
            "replace",
            "enter_plan_mode",
            "invoke_agent",
        ] {
            assert!(denied.contains(tool), "{tool}: {denied}");
        }
        assert!(heard(&world, "nobody who could allow this") > 0);
    }
    quiet(&world);
}

/// Promise 11: what was said is never a command or a file.
#[test]
fn words_are_not_commands() {
    let Some(world) = world() else { return };
    let host = fs::read_to_string("/etc/hostname").unwrap_or_else(|_| "no such name".into());
    for (n, text) in [
        "/help",
        "$about",
        " \u{feff}/memory show",
        "? me",
        "<hook_context>x",
        "see @/etc/hostname",
    ]
    .iter()
    .enumerate()
    {
        let message = format!("{text} {} #s:a{}", user(n), n + 1);
        let turn =
            world.run(&[&["send", "--json", "-k", "k"], &ASK[..], &["--", &message]].concat());
        let turn = turn.ok().json();
        assert_eq!(
            turn["verdict"],
            if n == 0 { "started" } else { "resumed" },
            "{turn}"
        );
        assert_eq!(
            heard(&world, text.trim_start_matches([' ', '\u{feff}'])),
            1,
            "{text}"
        );
        assert_eq!(heard(&world, host.trim()), 0);
    }
    let shown = texts(&world.model.last());
    assert!(
        (0..6).all(|n| shown.matches(&user(n)).count() == 1),
        "{shown}"
    );
    quiet(&world);
}

/// What the API says comes out as it does without asking, and the session is as it was before.
#[test]
fn failures_are_told() {
    let Some(world) = world() else { return };
    let mut talk = Talk::begin(world);
    talk.good("started", &ASK);
    talk.bad("#s:e400", &ASK, ("failed", "invalid_request", 1));
    talk.bad("#s:e429", &ASK, ("failed", "quota", 9));
    talk.good("resumed", &ASK);
}

/// Killed with kill -9 while a question is pending; answered by a second process, settled by a third.
#[test]
fn whoever_follows_is_killed_and_the_call_runs_once() {
    let Some(world) = world().map(asking) else {
        return;
    };
    let first = world.say(1, &EDIT);
    assert_eq!(first["status"], "succeeded", "{first}");
    asks(&world, &format!("{} #s:bash", user(2)), &ASK);
    nobody_follows(&world);
    assert_eq!(world.last_turn()["status"], "waiting");
    answer(&world, &["allow"]).ok();
    // Also the one that passes it on may go.
    if let Some(pid) = world.pid_of(|command| command.contains(" run-turn ")) {
        kill(pid, "KILL");
    }
    let turn = ended(&world);
    assert_eq!(
        (&turn["status"], &turn["verdict"]),
        (&json!("succeeded"), &json!("resumed"))
    );
    assert_eq!(turn["text"], "Running it.\n\nBash done.", "{turn}");
    assert_eq!(
        fs::read_to_string(world.work().join("ran.txt")).unwrap(),
        "tool-ran\n"
    );
    let shown = texts(&world.model.last());
    for once in [user(1), word(1), user(2)] {
        assert_eq!(shown.matches(&once).count(), 1, "{once}: {shown}");
    }
    quiet(&world);
}

/// The CLI itself is gone: the turn is lost, what it asked is shown, and the session is as before.
#[test]
fn a_question_of_a_cli_that_is_gone() {
    let Some(world) = world().map(asking) else {
        return;
    };
    world.say(1, &ASK);
    asks(&world, &format!("{} #s:bash", user(2)), &ASK);
    kill(world.cli().unwrap(), "KILL");
    let turn = ended(&world);
    assert_eq!(turn["status"], "lost", "{turn}");
    assert_eq!(only(&turn)["state"], "gone", "{turn}");
    let turn = world.say(3, &ASK);
    assert_eq!(turn["verdict"], "resumed", "{turn}");
    assert!(!world.work().join("ran.txt").exists());
    let shown = texts(&world.model.last());
    for once in [user(1), word(1), user(2), user(3)] {
        assert_eq!(shown.matches(&once).count(), 1, "{once}: {shown}");
    }
    quiet(&world);
}

#[test]
fn a_question_can_be_cancelled() {
    let Some(world) = world().map(asking) else {
        return;
    };
    asks(&world, "#s:bash one", &ASK);
    world.run(&["cancel", "k"]).ok();
    let turn = ended(&world);
    assert_eq!(turn["status"], "cancelled", "{turn}");
    assert!(inbox(&world).is_empty());
    quiet(&world);
    let turn = world.say(2, &[]);
    assert_eq!(turn["status"], "succeeded", "{turn}");
    assert!(!world.work().join("ran.txt").exists());
}

/// Where it asks the CLI does not take a file for a session: a fork is told what was said.
#[test]
fn a_fork_that_asks_is_told_the_record() {
    let Some(world) = world() else { return };
    world.say(1, &EDIT);
    world.run(&["fork", "k", "-k", "f"]).ok();
    for (n, verdict) in [(2, "reseeded"), (3, "resumed")] {
        let text = format!("{} #s:a{n}", user(n));
        let send = [&["send", "--json", "-k", "f"], &ASK[..], &["--", &text]].concat();
        let turn = world.run(&send).ok().json();
        assert_eq!(turn["verdict"], verdict, "{turn}");
        assert_shown(&world.model.last(), &[said(1..n), vec![user(n)]].concat());
    }
    quiet(&world);
}

/// Promise 3: killed before the prompt was said, and nobody is there who could answer anything. Whoever
/// comes next leads the dialogue on.
#[test]
fn a_dialogue_is_led_on() {
    let Some(mut world) = world() else { return };
    for (n, verdict) in [(1, "started"), (2, "resumed")] {
        world.set("REJOIN_FAIL", "mid_stream");
        let killed = world.send(n, &format!("#s:a{n}"), &ASK);
        assert_eq!(killed.code, -9, "{killed:?}");
        world.unset("REJOIN_FAIL");
        assert_eq!(world.model.requests().len(), n - 1);
        let turn = ended(&world);
        assert_eq!(
            (&turn["text"], &turn["verdict"]),
            (&json!(word(n)), &json!(verdict))
        );
        assert_shown(&world.model.last(), &[said(1..n), vec![user(n)]].concat());
    }
    quiet(&world);
}

/// A session that is gone comes back from its snapshot, and goes on asking.
#[test]
fn a_session_that_is_gone_is_restored() {
    let Some(world) = world() else { return };
    let mut talk = Talk::begin(world);
    talk.good("started", &EDIT);
    for flags in [&ASK, &EDIT] {
        let sessions = talk.world.home().join(".gemini/rejoin/.gemini/tmp");
        fs::remove_dir_all(sessions).unwrap();
        talk.good("restored", flags);
        talk.good("resumed", &ASK);
    }
    quiet(&talk.world);
}
