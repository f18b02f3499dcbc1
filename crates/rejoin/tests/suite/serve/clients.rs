//! A client that is made from the description alone, in another language; and one that tries everything
//! the description allows.

#![allow(
    clippy::needless_pass_by_value,
    reason = "a test owns its world and ends it"
)]

use std::process::Command;

use rejoin_testkit::{CODEX_TOOLS, World, on_every_quick_cli, python_tool, said, user, words_in};
use serde_json::{Value, json};

use super::demo;

on_every_quick_cli!(a_generated_client);

/// Issue 7, point 1. The model is shown every message once, also after questions and a cancelled turn.
fn a_generated_client(world: World) {
    let agent = world.cli.agent();
    let can_ask = agent == "claude";
    let say: Vec<String> = [1, 2, 3, 9].map(|n| format!("{} #s:a{n}", user(n))).into();
    let mut story = json!({
        "agent": agent, "workdir": world.work().to_str().unwrap(), "say": say,
        "slow": format!("{} #s:hang", user(8)), "model": null, "approve": "#s:bash",
    });
    if can_ask {
        story["ask"] = json!("#s:ask");
        story["model"] = json!("sonnet");
    }
    if agent == "codex" {
        story["model"] = json!(CODEX_TOOLS);
    }
    hold(&world, &story);
    let mut words = said(1..=3);
    words.extend([user(8), user(9)]);
    let last = world.model.last();
    assert_eq!(words_in(&last.history().to_string()), words);
}

/// The demo agent, which can ask everything.
#[test]
fn with_the_demo_agent() {
    let world = demo();
    hold(
        &world,
        &json!({
            "agent": "demo", "workdir": world.work().to_str().unwrap(), "model": null,
            "say": ["one", "two", "three", "four"], "slow": "wait 100s",
            "ask": "ask: Which colour? Red | Blue", "approve": "approve: rm -r x",
        }),
    );
}

/// Holds the conversation with a client that is made from the description of the API.
fn hold(world: &World, story: &Value) {
    let (Some(generator), Some(python)) =
        (python_tool("openapi-python-client"), python_tool("python"))
    else {
        return;
    };
    let daemon = world.serve(&[]);
    let description = world.root().join("openapi.json");
    std::fs::write(&description, daemon.get("/openapi.json").body).unwrap();
    let made = Command::new(generator)
        .args(["generate", "--meta", "none", "--overwrite", "--path"])
        .arg(&description)
        .arg("--output-path")
        .arg(world.root().join("made"))
        .output()
        .unwrap();
    assert!(world.root().join("made/client.py").exists(), "{made:?}");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/clients/hold.py");
    let ran = Command::new(python)
        .arg(script)
        .arg(world.root())
        .args([
            &format!("http://{}", daemon.address),
            &daemon.token,
            &story.to_string(),
        ])
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}

/// Issue 7, point 5: no 5xx, and every answer as described.
#[test]
fn everything_that_is_described() {
    let Some(schemathesis) = python_tool("schemathesis") else {
        return;
    };
    let world = demo();
    let daemon = world.serve(&[]);
    let description = world.root().join("openapi.json");
    std::fs::write(&description, daemon.get("/openapi.json").body).unwrap();
    let examples = if std::env::var_os("REJOIN_WALK_STEPS").is_some() {
        "200"
    } else {
        "10"
    };
    let ran = Command::new(schemathesis)
        .current_dir(world.root())
        .arg("run")
        .arg(&description)
        .args(["--url", &format!("http://{}", daemon.address)])
        .args(["-H", &format!("Authorization: Bearer {}", daemon.token)])
        .args(["--checks", "not_a_server_error,response_schema_conformance,status_code_conformance,content_type_conformance"])
        // What streams for ever, and what would end the test's own token.
        .args(["--exclude-path-regex", "events|tokens/"])
        .args(["--phases", "coverage,fuzzing", "--max-examples", examples, "--request-timeout", "60"])
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stdout)
    );
    assert_eq!(daemon.get("/readyz").status, 200);
}
