//! The handoff: what a tier is told that cannot resume the session.

use rejoin_model::{Script, Step};
use rejoin_testkit::{CLAUDE_325, CLAUDE_NEW, CODEX_166, Cli, Model, World, runs, texts, user};
use serde_json::{Value, json};

use super::{REJOIN, TIERS, configure};

/// A tier that looks, then one that acts: the first asks for the second.
const TWO: &str = r#"
[[tier]]
name = "observe"
role = "Tier 1"
agent = "claude"
model = "haiku"
permission = "read-only"
tools = ["Bash", "Read"]
may = ["look"]

[[tier]]
name = "remediate"
role = "Tier 2"
permission = "read-only"
may = ["do #s:second"]
cooldown = "30m"
"#;

fn scripts() -> Model {
    let block =
        json!({"escalate": {"to": "remediate", "reason": "down", "services": ["db", "web"]}});
    let first: Script = vec![
        runs("echo looked-at-db"),
        runs("false"),
        Step::text(format!("answerword-1-end\n\n```rejoin\n{block}\n```")),
    ];
    let second = vec![Step::text("answerword-2-end")];
    Model::scripted([("first", first), ("second", second)])
}

/// Asserts that a new session of the second tier was told everything, each message once.
fn assert_told(world: &World, turn: &Value) {
    assert_eq!(turn["text"], "answerword-2-end", "{turn:#}");
    assert_eq!(turn["verdict"], "reseeded", "{turn:#}");
    let shown = texts(&world.model.last());
    for word in [user(1), "answerword-1-end".into()] {
        assert_eq!(shown.matches(&word).count(), 1, "{word}: {shown}");
    }
    for part in [
        "Handoff of the tiers before",
        "Affected services: db, web",
        "Checks:\n- [observe] Bash: false (failed)\n- [observe] Bash: echo looked-at-db (ok)",
        "remediate: next climb from 20",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

/// The document, on the command line and over HTTP; an agent that has not seen the conversation
/// receives it beside the transcript.
#[test]
fn a_tier_of_another_agent_receives_the_handoff() {
    let clis: [&'static dyn Cli; 2] = [&CLAUDE_325, &CODEX_166];
    let world = World::of_all(REJOIN, &clis, scripts()).unwrap();
    let model = CODEX_166.models()[0];
    let agent = format!("agent = \"codex\"\nmodel = \"{model}\"");
    configure(&world, &TWO.replace("role = \"Tier 2\"", &agent));
    let last = world
        .send(1, "#s:first", &["--tier", "observe", "--climb"])
        .ok()
        .json();
    assert_told(&world, &last);
    let root = last["chain_id"].as_str().unwrap();
    let handoff = world.run(&["handoff", root, "--json"]).ok().json();
    assert_eq!(handoff["schema_version"], 2);
    assert_eq!(handoff["findings"][0]["text"], "answerword-1-end");
    assert_eq!(handoff["findings"][0]["tier"], "observe");
    assert_eq!(handoff["affected_services"], json!(["db", "web"]));
    let checks = handoff["checks"].as_array().unwrap().iter();
    let results: Vec<_> = checks.map(|call| call["result"].clone()).collect();
    assert_eq!(results, ["failed", "ok"]);
    assert_eq!(handoff["attempted_actions"], json!([]));
    assert_eq!(handoff["cooldown_state"][0]["tier"], "remediate");
    assert_eq!(handoff["cooldown_state"][0]["cooldown_ms"], 1_800_000);
    let after = world.run(&["handoff", "last", "--json"]).ok().json();
    assert_eq!(after["findings"][0]["text"], "answerword-2-end");
    assert_eq!(after["findings"][1]["text"], "answerword-1-end");
    assert_eq!(after["chain_id"], root);
    let text = world.run(&["handoff"]).ok().stdout;
    assert!(
        text.starts_with("Findings:\n- [remediate] answerword-2-end"),
        "{text}"
    );
    assert!(text.contains("Affected services: db, web"), "{text}");
    // C-65: what it was told can be read afterwards.
    let told = world
        .run(&["explain", "last", "--prompt", "--json"])
        .ok()
        .json();
    let context = told["runs"][0]["context"].as_str().unwrap();
    assert!(shown_to(&world).contains(context), "{context}");
    assert!(context.contains("Affected services: db, web"), "{context}");
    let printed = world.run(&["explain", "last", "--prompt"]).ok().stdout;
    assert!(printed.contains(context), "{printed}");
    assert!(printed.contains("You are now operating as"), "{printed}");
    let alone = world.run(&["explain", "--prompt", "--json"]).ok().json();
    assert_eq!(alone["runs"].as_array().unwrap().len(), 1);
    let daemon = world.serve(&[]);
    let prompt = daemon.get(&format!(
        "/api/turns/{}/prompt",
        last["turn_id"].as_str().unwrap()
    ));
    assert_eq!(prompt.ok(), told);
    let chains = daemon.get("/api/chains").ok();
    assert_eq!(chains["chains"][0]["chain_id"], root);
    assert_eq!(chains["next_cursor"], Value::Null);
    let over_http = daemon.get(&format!("/api/turns/{root}/handoff")).ok();
    assert_eq!(over_http["checks"], handoff["checks"]);
    assert_eq!(daemon.stop(), 0);
}

fn shown_to(world: &World) -> String {
    texts(&world.model.last())
}

fn claude() -> World {
    let mut world = World::claude_with(REJOIN, CLAUDE_NEW, scripts).unwrap();
    world.without_snapshots();
    configure(&world, TWO);
    world
}

/// C-51, C-52: a session that is gone. C-47, C-48: the reason is recorded.
#[test]
fn c51_c52_a_session_that_is_gone_falls_back_to_the_handoff() {
    let world = claude();
    world.send(1, "#s:first", &["--tier", "observe"]).ok();
    for session in world.sessions() {
        std::fs::remove_file(session).unwrap();
    }
    let turn = world.run(&["escalate", "--json"]).ok().json();
    assert_told(&world, &turn);
    assert_eq!(turn["reason"], "session_missing");
}

/// C-07: a CLI that does not say which session it is. C-04: that is said, and the turn is told.
#[test]
fn c07_a_missing_session_id_falls_back_to_the_handoff() {
    let world = super::costs::world("run", ", PRICE_MUTE = \"1\"");
    let last = world
        .run(&[
            "send",
            "--json",
            "--tier",
            "one",
            "--climb",
            "userword-1-end",
        ])
        .ok()
        .json();
    let chain = last["chain"]["turns"].as_array().unwrap();
    let verdicts: Vec<&Value> = chain.iter().map(|turn| &turn["verdict"]).collect();
    assert_eq!(verdicts, ["started", "reseeded", "reseeded"], "{last:#}");
    let root = chain[0]["turn_id"].as_str().unwrap();
    let first = world.run(&["explain", root, "--json"]).ok().json();
    let summary = first["summary"].as_str().unwrap();
    assert!(
        summary.contains("it did not say which session it is"),
        "{summary}"
    );
    let told = world
        .run(&["explain", "last", "--prompt", "--json"])
        .ok()
        .json();
    let context = told["runs"][0]["context"].as_str().unwrap();
    for word in ["userword-1-end", "answer 0", "answer 1"] {
        assert_eq!(context.matches(word).count(), 1, "{word}: {context}");
    }
}

/// C-53, C-59, C-63: the window is that of the model that will run. The lower tier has room, so it writes
/// down its findings first. C-56: the threshold is in the record.
#[test]
fn c53_c59_a_session_too_large_for_the_next_model_falls_back_to_the_handoff() {
    let world = claude();
    let small = "model = \"sonnet\"\n[models.sonnet]\nwindow = 1_000\n";
    configure(&world, &format!("{TWO}{small}"));
    let last = world
        .send(1, "#s:first", &["--tier", "observe", "--climb"])
        .ok()
        .json();
    assert_told(&world, &last);
    assert_eq!(last["reason"], "context_full", "{last:#}");
    assert_eq!(last["policy"]["context_threshold"], 0.8);
    let checks = last["checks"].as_array().unwrap();
    let context = checks.iter().find(|it| it["check"] == "context").unwrap();
    assert_eq!(context["ok"], false, "{context}");
    let turns = last["chain"]["turns"].as_array().unwrap();
    let of = |key: &str| -> Vec<&Value> { turns.iter().map(|turn| &turn[key]).collect() };
    assert_eq!(of("tier"), ["observe", "observe", "remediate"]);
    assert_eq!(of("verdict"), ["started", "resumed", "reseeded"]);
    assert_eq!(of("parent_turn_id")[2], of("turn_id")[1]);
    let shown = texts(&world.model.last());
    let asked =
        "Tier 2 goes on with this in a new session. Before that, write down for it what you found";
    assert_eq!(shown.matches(asked).count(), 1, "{shown}");
}

/// A dry run shows the prompt of the turn that would come first.
#[test]
fn a_dry_run_shows_the_request_for_findings() {
    let world = claude();
    let small = "model = \"sonnet\"\n[models.sonnet]\nwindow = 1_000\n";
    configure(&world, &format!("{TWO}{small}"));
    world.send(1, "#s:first", &["--tier", "observe"]).ok();
    let dry = world.run(&["escalate", "--dry-run", "--json"]).ok().json();
    let prompt = dry["prompt"].as_str().unwrap();
    assert!(
        prompt.starts_with("Tier 2 goes on with this in a new session."),
        "{prompt}"
    );
}

/// Without room in the lower tier's own session nothing is asked before the handoff.
#[test]
fn a_lower_tier_without_room_is_not_asked_for_its_findings() {
    let world = claude();
    let small =
        "model = \"sonnet\"\n[models.sonnet]\nwindow = 1_000\n[models.haiku]\nwindow = 1_000\n";
    configure(&world, &format!("{TWO}{small}"));
    let last = world
        .send(1, "#s:first", &["--tier", "observe", "--climb"])
        .ok()
        .json();
    assert_told(&world, &last);
    let turns = last["chain"]["turns"].as_array().unwrap();
    assert_eq!(turns.len(), 2, "{last:#}");
}

/// C-58: a session with room is resumed, and nothing of the handoff is told.
#[test]
fn c58_a_session_with_room_is_resumed_without_a_handoff() {
    let world = World::claude_with(REJOIN, CLAUDE_NEW, scripts).unwrap();
    configure(&world, TIERS);
    let last = world
        .send(1, "#s:first", &["--tier", "observe", "--climb"])
        .ok()
        .json();
    assert_eq!(last["verdict"], "resumed", "{last:#}");
    let shown = texts(&world.model.last());
    assert!(!shown.contains("Handoff of the tiers"), "{shown}");
}
