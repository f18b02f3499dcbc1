//! The same with the other agents: Codex and Gemini CLI where they ask, OpenCode always.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rejoin_model::{Step, ToolCall};
use rejoin_testkit::{
    Daemon, Model, OPENCODE, World, answer, assert_shown, on_cli, on_slow_cli, said, slowly, steps,
    user, wait_for,
};
use serde_json::{Value, json};

use super::{process, verdict};
use crate::suite::serve::here;

on_cli!(
    codex_0_166_0,
    CODEX_166,
    one_process_where_it_asks,
    asked_there,
    beside_each_other,
    lost
);
on_cli!(
    gemini_0_61_0,
    GEMINI_061,
    one_process_where_it_asks,
    asked_there,
    beside_each_other,
    lost
);
on_cli!(
    opencode,
    OPENCODE,
    one_process,
    asked_there,
    the_same_is_allowed,
    with_arguments_of_the_user,
    lost
);
on_slow_cli!(
    opencode_long,
    OPENCODE,
    one_process_where_it_asks,
    beside_each_other,
    after_a_while
);

fn say(world: &World, daemon: &Daemon, n: usize, mode: &str) -> Value {
    let text = format!("{} #s:a{n}", user(n));
    let turn = daemon.say("k", &text, &[here(world), ("permission", json!(mode))]);
    assert_eq!(turn["status"], "succeeded", "{turn:#} {}", daemon.log());
    assert!(
        turn["text"].as_str().unwrap().contains(&answer(n)),
        "{turn:#}"
    );
    let mut words = said(1..n);
    words.push(user(n));
    assert_shown(&world.model.last(), &words);
    turn
}

fn one_process_where_it_asks(world: World) {
    held(&world, "ask");
}

fn one_process(world: World) {
    held(&world, "edit");
}

fn held(world: &World, mode: &str) {
    let daemon = world.serve(&[]);
    let first = say(world, &daemon, 1, mode);
    assert_eq!(verdict(&first), "started");
    let pid = process(world);
    assert!(pid.is_some(), "{}", daemon.log());
    for n in 2..=4 {
        let turn = say(world, &daemon, n, mode);
        assert_eq!(
            (verdict(&turn), &turn["reason"], &turn["session_id"]),
            ("live", &Value::Null, &first["session_id"]),
            "{turn:#}"
        );
        assert_eq!(turn["saved"], "stored", "{turn:#} {}", daemon.log());
        // Of this turn alone.
        assert_eq!(
            turn["usage"]["output"], first["usage"]["output"],
            "{turn:#}"
        );
        assert_eq!(turn["model"], first["model"]);
        assert_eq!(process(world), pid);
    }
    let done = daemon.post("/api/conversations/k/reload", &json!({})).ok();
    assert_eq!(done["ended"], 1, "{done}");
    assert_eq!(process(world), None);
    assert_eq!(verdict(&say(world, &daemon, 5, mode)), "resumed");
    assert_eq!(verdict(&say(world, &daemon, 6, mode)), "live");
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}

/// A shell command, as the model of this agent calls it.
fn shell(agent: &str, command: &str) -> Value {
    match agent {
        "codex" => json!({"name": "exec_command", "input": {"cmd": command}}),
        "gemini" => json!({"name": "run_shell_command", "input": {"command": command}}),
        _ => json!({"name": "bash", "input": {"command": command, "description": "x"}}),
    }
}

/// What is asked in a turn of a process that rested is answered there, and counts for that turn: what is
/// always allowed is asked again in the next.
fn asked_there(world: World) {
    let daemon = world.serve(&[]);
    let agent = say(&world, &daemon, 1, "ask")["agent"].clone();
    let mut ran = String::new();
    for (n, decision, verdict) in [
        (2, "deny", "live"),
        (3, "allow", "live"),
        (4, "always", "live"),
        (5, "allow", ""),
    ] {
        let call = shell(agent.as_str().unwrap(), "echo ran >> ran.txt");
        let text = steps(n, &json!([{"tools": [call]}, {"text": answer(n)}]));
        let text = format!("{} {text}", user(n));
        let asked = daemon.post("/api/send?wait=true", &json!({"key": "k", "text": text}));
        let asked = asked.ok();
        assert_eq!(asked["status"], "waiting", "{n}: {asked:#}");
        assert!(
            verdict.is_empty() || asked["verdict"] == verdict,
            "{n}: {asked:#}"
        );
        let path = format!("/api/turns/{}", asked["turn_id"].as_str().unwrap());
        let body = json!({"decision": decision});
        daemon.post(&format!("{path}/answer"), &body).ok();
        let turn = wait_for("the answer", 60, || {
            let turn = daemon.get(&path).ok();
            let over = !["running", "waiting"].contains(&turn["status"].as_str().unwrap());
            over.then_some(turn)
        });
        assert_eq!(turn["status"], "succeeded", "{n}: {turn:#}");
        let denied = turn["denied"].as_array().unwrap().len();
        assert_eq!(denied, usize::from(decision == "deny"), "{n}: {turn:#}");
        if decision != "deny" {
            ran.push_str("ran\n");
        }
        let file = std::fs::read_to_string(world.work().join("ran.txt")).unwrap_or_default();
        assert_eq!(file, ran, "{n}");
        let shown = world.model.last().history().to_string();
        for word in said(1..n).into_iter().chain([user(n)]) {
            assert_eq!(shown.matches(&word).count(), 1, "{n}: {word}");
        }
    }
    drop(daemon);
    world.assert_quiet();
}

/// Two conversations in one folder, and a turn without the daemon's processes in between.
fn beside_each_other(world: World) {
    let daemon = world.serve(&[]);
    let more = [here(&world), ("permission", json!("ask"))];
    let mut told = [vec![], vec![]];
    for n in 1..=6 {
        let at = n % 2;
        told[at].push(user(n));
        let turn = daemon.say(&format!("k{at}"), &format!("{} #s:a{n}", user(n)), &more);
        let expected = if n <= 2 { "started" } else { "live" };
        assert_eq!(verdict(&turn), expected, "{n}: {turn:#}");
        assert_shown(&world.model.last(), &told[at]);
        told[at].push(answer(n));
        if n % 2 == 0 {
            let text = format!("{} #s:a{}", user(n + 10), n + 10);
            let other = daemon.say(&format!("other{n}"), &text, &more[..1]);
            assert_eq!(other["status"], "succeeded", "{other:#}");
        }
    }
    drop(daemon);
    world.assert_quiet();
}

/// B-01, B-05: losing it costs nothing but time, and every guard of a resume holds.
fn lost(world: World) {
    let daemon = world.serve(&[]);
    say(&world, &daemon, 1, "ask");
    kill(Pid::from_raw(process(&world).unwrap()), Signal::SIGKILL).unwrap();
    assert_eq!(verdict(&say(&world, &daemon, 2, "ask")), "resumed");
    assert_eq!(verdict(&say(&world, &daemon, 3, "ask")), "live");
    // It is the next daemon's.
    daemon.kill();
    let daemon = world.serve(&[]);
    assert_eq!(verdict(&say(&world, &daemon, 4, "ask")), "live");
    for file in world.sessions() {
        std::fs::remove_file(file).unwrap();
    }
    assert_eq!(verdict(&say(&world, &daemon, 5, "ask")), "restored");
    assert_eq!(verdict(&say(&world, &daemon, 6, "ask")), "live");
    // Stopped in the middle.
    world.model.fail_next(1, slowly("never to be read", 600));
    let text = format!("{} #s:a7", user(7));
    let slow = daemon.post("/api/send", &json!({"key": "k", "text": text}));
    world.wait_until_asked(&user(7));
    let path = format!("/api/turns/{}", slow.ok()["turn_id"].as_str().unwrap());
    let stopped = daemon.post(&format!("{path}/cancel"), &json!({})).ok();
    assert_eq!(stopped["status"], "cancelled");
    assert_eq!(process(&world), None);
    // What a process did not succeed with, it does not remember.
    let text = format!("{} #s:e400", user(8));
    let failed = daemon.say("k", &text, &[]);
    assert_eq!(failed["status"], "failed", "{failed:#}");
    assert_eq!(process(&world), None);
    let turn = daemon.say("k", &format!("{} #s:a9", user(9)), &[]);
    assert_eq!(turn["status"], "succeeded", "{turn:#}");
    let mut words = said(1..7);
    words.extend([user(7), user(8), user(9)]);
    assert_shown(&world.model.last(), &words);
    drop(daemon);
    world.assert_quiet();
}

/// Whether its process is kept makes no difference to what the model is offered and may do (promise 7).
fn the_same_is_allowed(mut world: World) {
    let outside = world.root().join("outside.txt");
    std::fs::write(&outside, "outside-word").unwrap();
    let calls = json!([
        {"tools": [{"name": "edit", "input": {
            "filePath": world.work().join("made.txt"), "oldString": "", "newString": "made-word"}}]},
        {"tools": [{"name": "read", "input": {"filePath": outside}}]},
        {"tools": [shell("opencode", "echo ran-word >> ran.txt")]},
        {"text": answer(1)},
    ]);
    for mode in ["read-only", "edit", "full"] {
        let mut seen = vec![];
        for warm in ["0", "4"] {
            world.set("REJOIN_SERVE_WARM", warm);
            for file in ["made.txt", "ran.txt"] {
                drop(std::fs::remove_file(world.work().join(file)));
            }
            let daemon = world.serve(&[]);
            let text = format!("{} {}", user(1), steps(1, &calls));
            let turn = daemon.say(
                &format!("{mode}-{warm}"),
                &text,
                &[here(&world), ("permission", json!(mode))],
            );
            assert_eq!(process(&world).is_some(), warm == "4", "{turn:#}");
            let asked = world.model.last();
            let offered = asked.body["tools"].as_array().unwrap().iter();
            let offered: Vec<Value> = offered.map(|it| it["function"]["name"].clone()).collect();
            let file = |name: &str| std::fs::read_to_string(world.work().join(name)).ok();
            seen.push(json!({
                "status": turn["status"], "text": turn["text"], "tools": offered,
                "denied": turn["denied"].as_array().unwrap().iter().map(|it| &it["tool"]).collect::<Vec<_>>(),
                "made": file("made.txt"), "ran": file("ran.txt"),
                "read": asked.history().to_string().matches("outside-word").count(),
            }));
            drop(daemon);
            world.assert_quiet();
        }
        assert_eq!(seen[0], seen[1], "{mode}");
        let full = mode == "full";
        assert_eq!(seen[0]["ran"] == "ran-word\n", full, "{mode}: {}", seen[0]);
        assert_eq!(seen[0]["read"] == 1, full, "{mode}: {}", seen[0]);
        assert_eq!(
            seen[0]["made"] == "made-word",
            mode != "read-only",
            "{mode}: {}",
            seen[0]
        );
    }
}

/// The server closes connections, and writes what it likes, while it rests.
fn after_a_while(world: World) {
    let daemon = world.serve(&[]);
    say(&world, &daemon, 1, "edit");
    for n in 2..=3 {
        std::thread::sleep(std::time::Duration::from_secs(25));
        assert_eq!(verdict(&say(&world, &daemon, n, "edit")), "live");
    }
    drop(daemon);
    world.assert_quiet();
}

/// What a sub-agent wants is decided like what the turn itself wants, though its session is another.
#[test]
fn a_sub_agent_is_decided_for() {
    let call = |name: &str, input: Value| Step {
        tools: vec![ToolCall::new(name, input)],
        ..Step::default()
    };
    let task =
        json!({"description": "look", "prompt": "subword #s:sub", "subagent_type": "general"});
    let read = json!({"filePath": "/etc/hostname"});
    let model = || {
        Model::scripted([
            ("main", vec![call("task", task), Step::text(answer(1))]),
            ("sub", vec![call("read", read), Step::text("sub-answer")]),
        ])
    };
    let rejoin = env!("CARGO_BIN_EXE_rejoin");
    let Some(world) = World::with(rejoin, &OPENCODE, model) else {
        return;
    };
    let daemon = world.serve(&[]);
    let more = [here(&world), ("permission", json!("full"))];
    let turn = daemon.say("k", &format!("{} #s:main", user(1)), &more);
    assert_eq!(turn["status"], "succeeded", "{turn:#}");
    let hostname = std::fs::read_to_string("/etc/hostname").unwrap();
    let requests = world.model.requests();
    let shown = |word: &str| {
        requests
            .iter()
            .any(|it| it.history().to_string().contains(word))
    };
    assert!(shown(hostname.trim()) && shown("sub-answer"));
    drop(daemon);
    world.assert_quiet();
}

/// Arguments of the user's are for `opencode run`, so that is what is run.
fn with_arguments_of_the_user(mut world: World) {
    world.set("REJOIN_AGENTS_OPENCODE_ARGS", "--variant,high");
    let daemon = world.serve(&[]);
    say(&world, &daemon, 1, "edit");
    assert_eq!(process(&world), None);
    assert_eq!(verdict(&say(&world, &daemon, 2, "edit")), "resumed");
    drop(daemon);
    world.assert_quiet();
}
