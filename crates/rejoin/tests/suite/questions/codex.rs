//! Codex asks before it does anything, as a server that rejoin leads.

use rejoin_model::{Step, ToolCall};
use rejoin_testkit::{
    CODEX_166, CODEX_TOOLS, Model, World, answer as text_of, assert_shown, kill, runs, said,
    slowly, texts, user, wait_for,
};
use serde_json::{Value, json};

use super::killed::nobody_follows;
use super::{REJOIN, answer, asking, asks, ended, inbox, only, quiet};

const ASK: [&str; 4] = ["-m", CODEX_TOOLS, "--permission", "ask"];

fn writes(path: &str, content: &str) -> Step {
    let input = json!({"file_path": path, "content": content});
    Step {
        tools: vec![ToolCall::new("Write", input)],
        ..Step::default()
    }
}

fn model() -> Model {
    let again = "echo again >> ran.txt";
    Model::scripted([
        ("twice", vec![runs(again), runs(again), Step::text("Done.")]),
        (
            "patch",
            vec![writes("by-patch", "x\n"), Step::text("Done.")],
        ),
    ])
}

fn world() -> Option<World> {
    World::with(REJOIN, &CODEX_166, model)
}

/// How often the model was told something, at the end.
fn heard(world: &World, words: &str) -> usize {
    texts(&world.model.last()).matches(words).count()
}

fn ran(world: &World) -> String {
    std::fs::read_to_string(world.work().join("ran.txt")).unwrap_or_default()
}

#[track_caller]
fn asked<'t>(turn: &'t Value, tool: &str) -> &'t Value {
    let question = only(turn);
    assert_eq!(question["kind"], "approval", "{turn}");
    assert_eq!(question["tool"], tool, "{turn}");
    &question["input"]
}

#[track_caller]
fn good(turn: &Value, verdict: &str, denied: usize) {
    assert_eq!(turn["status"], "succeeded", "{turn:#}");
    assert_eq!(turn["verdict"], verdict, "{turn:#}");
    assert_eq!(turn["denied"].as_array().unwrap().len(), denied, "{turn:#}");
}

/// Promise 7: what a person decides counts for what was asked, and is asked again in the next turn.
#[test]
fn what_codex_wants_to_do_is_asked_for() {
    let Some(world) = world() else { return };
    let world = asking(world);
    let turn = asks(&world, "#s:bash one", &ASK);
    let input = asked(&turn, "exec_command");
    let command = "echo tool-ran > ran.txt; echo hi-from-bash";
    assert_eq!(input["command"], command, "{turn}");
    answer(&world, &["deny", "--text", "not on a Friday"]).ok();
    good(&ended(&world), "started", 1);
    assert_eq!(
        (heard(&world, "not on a Friday"), ran(&world).as_str()),
        (1, "")
    );

    asked(&asks(&world, "#s:bash two", &[]), "exec_command");
    answer(&world, &["allow"]).ok();
    let turn = ended(&world);
    good(&turn, "resumed", 0);
    assert_eq!(turn["text"], "Running it.\n\nBash done.", "{turn:#}");
    assert_eq!(ran(&world), "tool-ran\n");
    assert_eq!(heard(&world, "not on a Friday"), 1);

    // Always: for the rest of this process, and no longer.
    for n in [2, 4] {
        asked(&asks(&world, &format!("#s:twice {n}"), &[]), "exec_command");
        answer(&world, &["always"]).ok();
        good(&ended(&world), "resumed", 0);
        assert_eq!(ran(&world).matches("again").count(), n);
    }
    let patched = world.work().join("by-patch");
    let turn = asks(&world, "#s:patch one", &[]);
    let input = asked(&turn, "apply_patch");
    assert_eq!(input["path"], patched.to_str().unwrap(), "{turn}");
    assert_eq!(input["changes"][0]["diff"], "x\n", "{turn}");
    let diff = &only(&turn)["diff"][0];
    assert_eq!(
        (&diff["change"], &diff["hunks"][0]["lines"]),
        (&json!("write"), &json!(["+x"])),
        "{turn}"
    );
    answer(&world, &["deny"]).ok();
    good(&ended(&world), "resumed", 1);
    assert!(!patched.exists());
    asked(&asks(&world, "#s:patch two", &[]), "apply_patch");
    answer(&world, &["allow"]).ok();
    good(&ended(&world), "resumed", 0);
    assert!(patched.exists());
    assert!(inbox(&world).is_empty());
    quiet(&world);
}

/// Promises 1 and 8: the session goes on from `exec` to the server and back, each turn shown once, and
/// each turn's tokens its own.
#[test]
fn a_session_goes_on_whichever_command_runs_it() {
    let Some(world) = world() else { return };
    let world = asking(world);
    let mut own = vec![];
    for n in 1..=6 {
        let mode = if n % 3 == 1 { "edit" } else { "ask" };
        let turn = world.say(n, &["-m", CODEX_TOOLS, "--permission", mode]);
        good(&turn, if n == 1 { "started" } else { "resumed" }, 0);
        let mut words = said(1..n);
        words.push(user(n));
        assert_shown(&world.model.last(), &words);
        own.push((
            turn["usage"]["input"].clone(),
            turn["usage"]["output"].clone(),
        ));
        assert_eq!(turn["model"], CODEX_TOOLS, "{turn:#}");
        assert!(turn["context"]["window"].as_u64() > Some(0), "{turn:#}");
    }
    assert!(own.iter().all(|usage| *usage == own[0]), "{own:?}");
    assert_eq!(world.sessions().len(), 1);
    quiet(&world);
}

/// A goal that the model has set itself makes the server go on by itself; not here.
#[test]
fn only_what_was_asked_is_answered() {
    let goal = ToolCall::new("create_goal", json!({"objective": "be done"}));
    let set = Step {
        tools: vec![goal],
        ..Step::default()
    };
    let model = || Model::scripted([("goal", vec![set, Step::text(text_of(1))])]);
    let Some(world) = World::with(REJOIN, &CODEX_166, model) else {
        return;
    };
    let flags = ["-m", CODEX_TOOLS, "--permission", "edit"];
    let turn = world.send(1, "#s:goal", &flags).ok().json();
    good(&turn, "started", 0);
    assert!(heard(&world, "be done") > 0, "no goal was set");
    for n in [2, 3] {
        let before = world.model.requests().len();
        good(&world.say(n, &ASK), "resumed", 0);
        assert_eq!(world.model.requests().len(), before + 1);
        let mut words = said(1..n);
        words.push(user(n));
        assert_shown(&world.model.last(), &words);
    }
    quiet(&world);
}

/// Nobody there: it is told so at once, and goes on.
#[test]
fn without_a_person_nothing_is_done() {
    let Some(world) = world() else { return };
    for n in [1, 2] {
        let turn = world.send(n, "#s:bash", &ASK).ok().json();
        good(&turn, if n == 1 { "started" } else { "resumed" }, 1);
        assert_eq!(turn["denied"][0]["tool"], "exec_command", "{turn:#}");
        assert_eq!(heard(&world, "nobody who could allow this"), n);
    }
    assert_eq!(ran(&world), "");
    quiet(&world);
}

/// Whoever follows is killed while it waits; the next one goes on. Then the CLI itself is.
#[test]
fn it_waits_for_whoever_comes_next() {
    let Some(world) = world() else { return };
    let world = asking(world);
    asks(&world, "#s:bash one", &ASK);
    nobody_follows(&world);
    assert_eq!(world.last_turn()["status"], "waiting");
    answer(&world, &["allow"]).ok();
    good(&ended(&world), "started", 0);
    assert_eq!(ran(&world), "tool-ran\n");

    asks(&world, "#s:bash two", &[]);
    kill(world.cli().unwrap(), "KILL");
    let turn = ended(&world);
    assert_eq!(turn["status"], "lost", "{turn:#}");
    assert_eq!(only(&turn)["state"], "gone", "{turn}");
    quiet(&world);
    world
        .run(&["send", "-k", "k", "--permission", "edit", "#s:hello three"])
        .ok();
    let turn = world.last_turn();
    assert_eq!(turn["verdict"], "resumed", "{turn:#}");
    assert_eq!(heard(&world, "#s:bash two"), 1);
}

#[test]
fn what_waits_can_be_cancelled() {
    let Some(world) = world() else { return };
    let world = asking(world);
    let first = world.say(1, &ASK);
    good(&first, "started", 0);
    asks(&world, "#s:bash", &[]);
    world.run(&["cancel", "k"]).ok();
    let turn = ended(&world);
    assert_eq!(turn["status"], "cancelled", "{turn:#}");
    quiet(&world);
    assert_eq!(ran(&world), "");
    let turn = world.say(3, &[]);
    good(&turn, "resumed", 0);
}

/// Promise 3: killed while nothing is asked, the turn goes on, and the next command settles it; also where
/// nobody is there to be asked.
#[test]
fn a_turn_outlives_whoever_leads_it() {
    let text = format!("{} {}", text_of(2), "word ".repeat(60));
    let late = || Model::scripted([("late", vec![slowly(&text, 45)])]);
    let Some(world) = World::with(REJOIN, &CODEX_166, late) else {
        return;
    };
    good(&world.say(1, &ASK), "started", 0);
    let mut send = world.start(2, "#s:late", &ASK);
    wait_for("it to answer", 20, || {
        world.printed("item/agentMessage/delta").then_some(())
    });
    kill(send.id().try_into().unwrap(), "KILL");
    send.wait().unwrap();
    // Nobody is connected meanwhile.
    wait_for("it to be over", 30, || world.shim().is_none().then_some(()));
    let turn = ended(&world);
    good(&turn, "resumed", 0);
    assert_eq!(turn["text"], text, "{turn:#}");
    quiet(&world);
    good(&world.say(3, &ASK), "resumed", 0);
    let mut words = said(1..3);
    words.push(user(3));
    assert_shown(&world.model.last(), &words);
}

/// Killed wherever it leads the run: whoever comes next says the rest, and nothing twice.
#[test]
fn what_was_said_to_it_is_not_said_again() {
    let Some(mut world) = world() else { return };
    good(&world.say(1, &ASK), "started", 0);
    for (n, point) in (2..).zip(["after_spawn", "mid_stream", "after_end"]) {
        let before = world.model.requests().len();
        world.set("REJOIN_FAIL", point);
        assert_eq!(world.send(n, "#s:bash", &ASK).code, -9, "{point}");
        world.unset("REJOIN_FAIL");
        good(&ended(&world), "resumed", 1);
        assert_eq!(heard(&world, "nobody who could allow this"), n - 1);
        assert_eq!(heard(&world, &user(n)), 1, "{point}");
        // Run once. Codex takes the reason of a denial in when it can: with the result of the call, or, on a
        // busy machine, after the answer, in a request more (0.166.0).
        let begins = world.model.requests().split_off(before);
        let begins = begins.iter().filter(|request| request.step == 0);
        assert_eq!(begins.count(), 1, "{point}");
        quiet(&world);
    }
    assert_eq!(ran(&world), "");
}

/// Refused by the CLI, which does not know it: told anew, and never silently fresh.
#[test]
fn a_session_the_server_does_not_know() {
    let Some(mut world) = world() else { return };
    let (switch, bin, empty) = ("change", "codex-wrapped", "empty");
    let [switch, bin, empty] = [switch, bin, empty].map(|name| world.root().join(name));
    let text = format!(
        "#!/bin/bash\nif [ -e {0} ] && [ \"$1\" = app-server ]; then\nrm {0}; mkdir -p {1}; \
         cp \"$HOME/.codex/config.toml\" {1}/; export CODEX_HOME={1}\nfi\nexec {2} \"$@\"\n",
        switch.display(),
        empty.display(),
        world.bin().display()
    );
    world.script(&bin, &text);
    world.use_bin(&bin);
    good(&world.say(1, &ASK), "started", 0);
    std::fs::write(&switch, "").unwrap();
    let turn = world.say(2, &[]);
    good(&turn, "reseeded", 0);
    assert_eq!(turn["reason"], "rejected", "{turn:#}");
    assert_eq!(turn["attempts"][0]["status"], "refused", "{turn:#}");
    let mut words = said(1..2);
    words.push(user(2));
    assert_shown(&world.model.last(), &words);
    good(&world.say(3, &[]), "resumed", 0);
    quiet(&world);
}

/// Promise 11: a message is data, here as well.
#[test]
fn words_are_not_commands_of_the_server() {
    let Some(world) = world() else { return };
    let folder = world.home().join(".codex/skills/canary");
    std::fs::create_dir_all(&folder).unwrap();
    let skill = "---\nname: canary\ndescription: sings\n---\nword-in-the-skill\n";
    std::fs::write(folder.join("SKILL.md"), skill).unwrap();
    let starts = [
        "/clear $canary",
        "\u{feff}--last @ran.txt !touch x",
        "{\"id\":1}\n\n$canary\n",
    ];
    for (n, start) in (1..).zip(starts) {
        let text = format!("{start} {} #s:a{n}", user(n));
        let mut args = vec!["send", "--json", "-k", "k"];
        args.extend(ASK);
        args.push("-");
        let turn = world.run_with_stdin(&args, text.as_bytes()).ok().json();
        good(&turn, if n == 1 { "started" } else { "resumed" }, 0);
        let asked = world.model.last();
        assert!(!asked.body.to_string().contains("word-in-the-skill"));
        let shown = asked.history().to_string().replace('\u{2060}', "");
        let quoted = Value::from(text).to_string();
        assert!(shown.contains(&quoted[1..quoted.len() - 1]), "{shown}");
    }
    assert_eq!(std::fs::read_dir(world.work()).unwrap().count(), 0);
}

/// Several calls at once are several questions, each with its own answer; and what is asked to run outside
/// the sandbox says why.
#[test]
fn several_at_once_and_outside_the_sandbox() {
    let beside = tempfile::tempdir_in("/var/tmp").unwrap();
    let outside = beside.path().join("outside");
    let touch = format!("sleep 0.3; touch {}", outside.display());
    let two = ["one", "two"]
        .map(|name| ToolCall::new("exec_command", json!({"cmd": format!("touch {name}")})));
    let leave = json!({"cmd": touch, "sandbox_permissions": "require_escalated", "justification": "to see"});
    let calls = |tools| Step {
        tools,
        ..Step::default()
    };
    let model = || {
        Model::scripted([
            ("both", vec![calls(two.into()), Step::text("Done.")]),
            (
                "out",
                vec![
                    calls(vec![ToolCall::new("exec_command", leave)]),
                    Step::text("Done."),
                ],
            ),
            ("in", vec![runs(&touch), Step::text("Done.")]),
        ])
    };
    let Some(world) = World::with(REJOIN, &CODEX_166, model) else {
        return;
    };
    let world = asking(world);
    asks(&world, "#s:both", &ASK);
    let both = wait_for("both questions", 20, || {
        let questions = inbox(&world)[0]["questions"].as_array().unwrap().clone();
        (questions.len() == 2).then_some(questions)
    });
    // The first of them is the one that is meant.
    for question in &both {
        let one = question["input"]["command"] == "touch one";
        answer(&world, &[if one { "allow" } else { "deny" }]).ok();
    }
    good(&ended(&world), "started", 1);
    assert!(world.work().join("one").exists() && !world.work().join("two").exists());

    asks(&world, "#s:in", &[]);
    answer(&world, &["allow"]).ok();
    good(&ended(&world), "resumed", 0);
    assert!(!outside.exists());
    let turn = asks(&world, "#s:out", &[]);
    assert_eq!(asked(&turn, "exec_command")["reason"], "to see", "{turn}");
    let shown = world.run(&["inbox"]).ok();
    assert!(shown.stdout.contains("because: to see"), "{shown:?}");
    answer(&world, &["allow"]).ok();
    good(&ended(&world), "resumed", 0);
    assert!(outside.exists());
    quiet(&world);
}

/// A fork goes on with a copy, under an id of its own.
#[test]
fn a_fork_goes_on_as_a_server_too() {
    let Some(world) = world() else { return };
    let first = world.say(1, &ASK);
    good(&first, "started", 0);
    world.run(&["fork", "k", "-k", "other"]).ok();
    let text = format!("{} #s:a2", user(2));
    let turn = world
        .run(&["send", "--json", "-k", "other", &text])
        .ok()
        .json();
    good(&turn, "resumed", 0);
    assert_eq!(turn["command"][1], "app-server", "{turn:#}");
    assert_ne!(turn["session_id"], first["session_id"]);
    good(&world.say(3, &[]), "resumed", 0);
    let mut words = said(1..2);
    words.push(user(3));
    assert_shown(&world.model.last(), &words);
    assert_eq!(world.sessions().len(), 2);
}

/// Its stdin is held by the shim. Without it the server gives up, and nothing is done unasked.
#[test]
fn without_its_shim_the_turn_is_lost() {
    let Some(world) = world() else { return };
    let world = asking(world);
    good(&world.say(1, &ASK), "started", 0);
    asks(&world, "#s:bash", &[]);
    nobody_follows(&world);
    kill(world.shim().unwrap(), "KILL");
    let turn = ended(&world);
    assert_eq!(turn["status"], "lost", "{turn:#}");
    assert_eq!(ran(&world), "");
    quiet(&world);
    good(&world.say(3, &[]), "resumed", 0);
}
