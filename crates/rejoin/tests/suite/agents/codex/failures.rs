//! A turn that fails or is stopped: the session is cut back, and the next turn shows everything once.

use rejoin_model::Step;
use rejoin_testkit::{Done, Model, Talk, runs, texts};
use serde_json::Value;

use super::{TOOLS, answers, is_stuck, scripted, second_turn, stop, world};

#[test]
fn failed_turns_leave_the_session_as_it_was() {
    let Some(world) = world() else { return };
    let mut talk = Talk::begin(world);
    talk.good("started", &TOOLS);
    let cases = [
        ("#s:e400", "invalid_request", 1),
        ("#s:e401", "auth", 8),
        ("#s:e429", "quota", 9),
        ("#s:e500", "transient", 1),
        ("#s:e529", "transient", 1),
        ("#s:cut", "transient", 1),
        ("#s:eof", "transient", 1),
        ("#s:refuse", "transient", 1),
    ];
    for (script, class, exit) in cases {
        let turn = talk.bad(script, &[], ("failed", class, exit));
        assert_eq!(turn["cost_usd"], Value::Null, "{turn}");
        let next = talk.good("resumed", &[]);
        assert_eq!(next["sent"]["caught_up"], 1, "{script}: {next}");
    }
    let url = talk.world.model.url.clone();
    let cli = talk.world.cli;
    cli.point_at(&mut talk.world, "http://127.0.0.1:9");
    talk.bad("#s:a1", &[], ("failed", "transient", 1));
    cli.point_at(&mut talk.world, &url);
    talk.good("resumed", &[]);
    // Too long for the window: going on with that session would fail again and again.
    talk.bad("#s:toolong", &[], ("failed", "context_overflow", 1));
    let next = talk.good("reseeded", &[]);
    assert_eq!(next["reason"], "session_retired");
    talk.good("resumed", &[]);
}

#[test]
fn a_first_turn_that_fails_is_told_to_the_second() {
    let Some(world) = world() else { return };
    let mut talk = Talk::begin(world);
    talk.bad("#s:e400", &TOOLS, ("failed", "invalid_request", 1));
    assert_eq!(talk.good("reseeded", &[])["reason"], "first_turn");
    assert_eq!(talk.good("resumed", &[])["sent"]["resumed"], 3);
}

#[test]
fn a_turn_that_takes_too_long_is_ended() {
    let Some(world) = world() else { return };
    let mut talk = Talk::begin(world);
    talk.good("started", &TOOLS);
    let limit = ["--timeout", "2s"];
    talk.bad("#s:slow", &limit, ("failed", "time_limit", 124));
    talk.good("resumed", &[]);
}

fn stuck() -> Model {
    let command = "tail -f /dev/null & tail -f /etc/hostname; echo done";
    Model::scripted([("stuck", vec![runs(command)])])
}

fn cancelled(script: &str, signal: &str, exit: i32) -> Option<Talk> {
    let world = scripted(stuck)?;
    let is_begun = |world: &_| match script {
        "#s:slow" => answers(world, 2),
        _ => is_stuck(world),
    };
    let (mut talk, send) = second_turn(world, script, &[], is_begun);
    stop(&send, signal);
    let turn = talk.failed(&Done::of(send), ("cancelled", "cancelled", exit));
    assert_eq!(turn["cost_usd"], Value::Null, "{turn}");
    Some(talk)
}

#[test]
fn ctrl_c_while_it_answers() {
    let Some(mut talk) = cancelled("#s:slow", "INT", 130) else {
        return;
    };
    assert_eq!(talk.good("resumed", &[])["sent"]["caught_up"], 1);
    talk.good("resumed", &[]);
}

#[test]
fn ctrl_c_while_its_tool_runs() {
    let Some(mut talk) = cancelled("#s:stuck", "INT", 130) else {
        return;
    };
    // Its sandbox had made folders there.
    let left = std::fs::read_dir(talk.world.work()).unwrap().count();
    assert_eq!(left, 0);
    talk.good("resumed", &[]);
    let said = texts(&talk.world.model.last());
    assert!(said.contains("(tools: "), "{said}");
    assert!(said.contains("tail -f /dev/null"), "{said}");
}

/// Empty folders of a sandbox that was killed go from the temporary folder, unless they were there before.
#[test]
fn nothing_of_a_sandbox_stays_in_the_temporary_folder() {
    let Some(mut world) = world() else { return };
    let temporary = world.root().join("temporary");
    std::fs::create_dir_all(temporary.join(".codex")).unwrap();
    world.set("TMPDIR", temporary.to_str().unwrap());
    let (bin, real) = (world.root().join("codex-wrapped"), world.bin());
    // As a sandbox makes them, before it mounts something over them.
    let text = format!(
        "#!/bin/bash\nif [ -e {0}/switch ]; then\ncd {0}/temporary && mkdir -p .git .agents .codex && touch .agents/used\ncd - >/dev/null\nfi\nexec {1} \"$@\"\n",
        world.root().display(),
        real.display()
    );
    world.script(&bin, &text);
    world.use_bin(&bin);
    world.say(1, &TOOLS);
    std::fs::write(world.root().join("switch"), "").unwrap();
    let failed = world.send(2, "#s:e400", &TOOLS);
    assert_eq!(failed.code, 1, "{failed:?}");
    let is_there = |name: &&str| temporary.join(name).exists();
    let left: Vec<&str> = [".agents", ".codex", ".git"]
        .into_iter()
        .filter(is_there)
        .collect();
    assert_eq!(left, [".agents", ".codex"]);
}

#[test]
fn sigterm_cancels_as_well() {
    let Some(mut talk) = cancelled("#s:slow", "TERM", 143) else {
        return;
    };
    talk.good("resumed", &[]);
}

#[test]
fn what_a_failed_turn_did_is_told_and_not_done_again() {
    // The second command is stopped by the sandbox, but has done a part before; whether an event
    // of the CLI tells of it is a matter of luck.
    let hidden = "echo x >> hidden.txt; touch /etc/not-allowed";
    let steps = || {
        let steps = vec![runs("echo x >> ran.txt"), runs(hidden), Step::status(400)];
        Model::scripted([("side", steps)])
    };
    let Some(world) = scripted(steps) else { return };
    let mut talk = Talk::begin(world);
    talk.good("started", &TOOLS);
    let turn = talk.bad("#s:side", &[], ("failed", "invalid_request", 1));
    let summary = turn["summary"].as_str().unwrap();
    assert!(summary.contains("2 tools ran"), "{summary}");
    talk.good("resumed", &[]);
    let said = texts(&talk.world.model.last());
    assert!(said.contains("used echo x >> ran.txt"), "{said}");
    assert!(said.contains(" echo x >> hidden.txt"), "{said}");
    talk.good("resumed", &[]);
    for file in ["ran.txt", "hidden.txt"] {
        let ran = std::fs::read_to_string(talk.world.work().join(file)).unwrap();
        assert_eq!(ran, "x\n", "{file}");
    }
}
