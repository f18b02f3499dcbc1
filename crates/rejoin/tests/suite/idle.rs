//! The idle limit: a CLI that hangs is stopped; one that runs a tool or waits for a person is not.

use std::time::{Duration, Instant};

use rejoin_model::Step;
use rejoin_testkit::{CLAUDE_NEW, CLAUDE_OLD, Model, Talk, World, answer, runs, wait_for};
use serde_json::json;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

#[test]
fn a_cli_that_prints_nothing_is_stopped() {
    for version in [CLAUDE_OLD, CLAUDE_NEW] {
        let Some(world) = World::claude(REJOIN, version) else {
            return;
        };
        let mut talk = Talk::begin(world);
        talk.good("started", &["-m", "sonnet"]);
        let flags = ["--idle-timeout", "3s"];
        let turn = talk.bad("#s:hang", &flags, ("failed", "idle_limit", 124));
        let summary = turn["summary"].as_str().unwrap();
        assert!(
            summary.contains("failed, idle_limit: the agent printed nothing for 3 s"),
            "{summary}"
        );
        assert!(summary.contains("--idle-timeout LONGER"), "{summary}");
        talk.good("resumed", &[]);
    }
}

/// A tool that prints nothing for longer than the limit is not a hang.
#[test]
fn a_silent_tool_is_not_idle() {
    let model = || Model::scripted([("tool", vec![runs("sleep 20"), Step::text(answer(2))])]);
    let Some(mut world) = World::with(REJOIN, &rejoin_testkit::CLAUDE_325, model) else {
        return;
    };
    // Else the CLI refuses full permission to root.
    world.set("IS_SANDBOX", "1");
    world.say(1, &["-m", "sonnet", "--permission", "full"]);
    let flags = ["--idle-timeout", "12s", "--permission", "full"];
    let turn = world.send(2, "#s:tool", &flags).ok().json();
    assert_eq!(turn["status"], "succeeded", "{turn}");
    assert_eq!(turn["text"], answer(2), "{turn}");
}

#[test]
fn a_turn_that_waits_for_a_person_is_not_idle() {
    let mut world = World::new(REJOIN);
    world.set("REJOIN_DEFAULT_AGENT", "demo");
    let daemon = world.serve(&[]);
    let body = json!({
        "key": "k", "text": "ask: Which colour? Red | Blue", "workdir": world.work(),
        "idle_timeout_ms": 500,
    });
    let turn = daemon.post("/api/send?wait=true", &body).ok();
    assert_eq!(turn["status"], "waiting", "{turn}");
    let asked = Instant::now();
    let path = format!("/api/turns/{}", turn["turn_id"].as_str().unwrap());
    wait_for("several times the limit", 30, || {
        let turn = daemon.get(&path).ok();
        assert_eq!(turn["status"], "waiting", "{turn}");
        (asked.elapsed() > Duration::from_secs(2)).then_some(())
    });
    world.run(&["answer", "k", "1"]).ok();
    let turn = wait_for("the end", 30, || {
        let turn = daemon.get(&path).ok();
        (turn["status"] == "succeeded").then_some(turn)
    });
    assert!(turn["text"].as_str().unwrap().contains("Red"), "{turn}");
}

/// The limit of an agent comes from the configuration; the queue goes on behind a hung turn.
#[test]
fn the_configured_limit_ends_a_turn_of_a_daemon() {
    let mut world = World::new(REJOIN);
    world.set("REJOIN_DEFAULT_AGENT", "demo");
    world.set("REJOIN_AGENTS_DEMO_IDLE_TIMEOUT", "1s");
    let daemon = world.serve(&[]);
    let body = json!({"key": "k", "text": "wait 100s one", "workdir": world.work()});
    let hung = daemon.post("/api/send", &body).ok();
    let next = daemon.say("k", "two", &[]);
    assert_eq!(next["status"], "succeeded", "{next}");
    let path = format!("/api/turns/{}", hung["turn_id"].as_str().unwrap());
    let hung = daemon.get(&path).ok();
    assert_eq!(hung["status"], "failed", "{hung}");
    assert_eq!(hung["error"]["class"], "idle_limit", "{hung}");
    let body = json!({
        "key": "k", "text": "wait 2s three", "workdir": world.work(), "idle_timeout_ms": 0,
    });
    let unlimited = daemon.post("/api/send?wait=true", &body).ok();
    assert_eq!(unlimited["status"], "succeeded", "{unlimited}");
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}
