//! `--max-cost` for agents without a limit of their own: the run is stopped between two model calls,
//! or the turn is refused before anything is sent.

use rejoin_testkit::{
    CODEX_166, CODEX_TOOLS, GEMINI_061, Model, OPENCODE, World, costing, steps, user,
};
use serde_json::{Value, json};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// A dear call with a tool, then another call with an answer.
fn two_calls(tool: &Value) -> String {
    let first = costing(10_000, 10_000, &json!({"tools": [tool]}));
    // Slow: in the meantime the run is stopped.
    let words = "word ".repeat(60);
    let second = json!({"text": words, "chunks": 60, "delay_ms": 500});
    steps(1, &json!([first, second]))
}

fn configure(world: &World, text: &str) {
    let config = world.home().join(".config/rejoin/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let before = std::fs::read_to_string(&config).unwrap_or_default();
    std::fs::write(&config, before + text).unwrap();
}

/// The number of calls for an answer. Agents also ask for titles.
fn calls(world: &World) -> usize {
    let all = world.model.requests();
    let about = |request: &&rejoin_model::Request| {
        let body = request.body.to_string();
        body.contains(&user(1)) && body.contains("\"tools\"")
    };
    all.iter().filter(about).count()
}

#[track_caller]
fn stopped(world: &World, script: &str, flags: &[&str]) {
    let flags = [&["--max-cost", "0.01"], flags].concat();
    let done = world.send(1, script, &flags);
    assert_eq!(done.code, 124, "{done:?}");
    let turn = done.json();
    assert_eq!(turn["status"], "failed", "{turn:#}");
    assert_eq!(turn["error"]["class"], "cost_limit", "{turn:#}");
    assert!(calls(world) <= 2, "{turn:#}");
    assert_eq!(turn["text"], Value::Null, "{turn:#}");
    world.assert_quiet();
}

#[test]
fn opencode_is_stopped_by_its_own_prices() {
    let Some(world) = World::of(REJOIN, &OPENCODE) else {
        return;
    };
    let read = json!({"name": "glob", "input": {"pattern": "*.none"}});
    stopped(&world, &two_calls(&read), &[]);
    // A limit that is not reached changes nothing.
    let turn = world.send(2, "#s:a2", &["--max-cost", "5"]).ok().json();
    assert_eq!(turn["status"], "succeeded", "{turn:#}");
    // Nor does a last call that exceeds it: nothing follows.
    let dear = steps(
        3,
        &json!([costing(10_000, 10_000, &json!({"text": "A-3"}))]),
    );
    let turn = world.send(3, &dear, &["--max-cost", "0.01"]).ok().json();
    assert!(turn["cost_usd"].as_f64() > Some(0.01), "{turn:#}");
}

#[test]
fn codex_is_stopped_by_a_configured_price() {
    let Some(world) = World::with(REJOIN, &CODEX_166, Model::start) else {
        return;
    };
    configure(
        &world,
        &format!("[models.\"{CODEX_TOOLS}\"]\nprice.input = 3\nprice.output = 15\n"),
    );
    let shell = json!({"name": "Bash", "input": {"command": "true", "description": "x"}});
    let ask = ["-m", CODEX_TOOLS, "--permission", "ask"];
    stopped(&world, &two_calls(&shell), &ask);
    let flags = [&["--max-cost", "5"], &ask[..]].concat();
    let turn = world.send(2, "#s:a2", &flags).ok().json();
    assert_eq!(turn["status"], "succeeded", "{turn:#}");
}

#[track_caller]
fn refused(world: &World, flags: &[&str], words: &str) {
    let flags = [&["--max-cost", "0.5"], flags].concat();
    let done = world.send(1, "#s:a1", &flags);
    assert_eq!(done.code, 5, "{done:?}");
    let error = done.json()["error"].clone();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(words), "{error:#}");
    assert!(message.contains("--timeout"), "{error:#}");
    assert_eq!(world.model.requests().len(), 0);
}

#[test]
fn an_agent_that_cannot_be_stopped_is_refused() {
    let Some(world) = World::with(REJOIN, &CODEX_166, Model::start) else {
        return;
    };
    let tools = ["-m", CODEX_TOOLS];
    let ask = ["--permission", "ask"];
    refused(&world, &tools, "only with --permission ask");
    refused(&world, &ask, "name a model (-m)");
    refused(&world, &[tools, ask].concat(), "price");
    // The message was not kept.
    let list = world.run(&["list", "--json"]).ok().json();
    assert_eq!(list["conversations"], json!([]), "{list:#}");

    let Some(world) = World::of(REJOIN, &GEMINI_061) else {
        return;
    };
    refused(&world, &[], "only at the end");
}

/// The built-in agent costs nothing.
#[test]
fn the_demo_agent_is_free() {
    let world = World::new(REJOIN);
    let args = ["send", "-a", "demo", "--max-cost", "0.01", "hello"];
    world.run(&args).ok();
}
