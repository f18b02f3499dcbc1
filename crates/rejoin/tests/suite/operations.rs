//! The operator's guide: its commands with the demo agent, its configuration with a real CLI.

use std::path::Path;

use rejoin_model::{Script, Step};
use rejoin_testkit::{CLAUDE_NEW, Model, World, texts};
use serde_json::{Value, json};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Each command of the first step, as it is written, from the root of the checkout.
#[test]
fn the_commands_of_the_guide_run_with_the_demo_agent() {
    let world = World::new(REJOIN);
    let guide = std::fs::read_to_string(Path::new(ROOT).join("docs/operations.md")).unwrap();
    let commands: Vec<&str> = guide
        .lines()
        .filter_map(|line| line.strip_prefix("rejoin --config examples/ops/demo.toml "))
        .collect();
    assert!(commands.len() >= 7, "{commands:?}");
    for command in commands {
        let config = format!("{ROOT}/examples/ops/demo.toml");
        let args: Vec<&str> = ["--config", &config]
            .into_iter()
            .chain(command.split_whitespace())
            .collect();
        let done = world.run(&args).ok();
        assert!(!done.stdout.is_empty(), "{command}");
    }
    let config = format!("{ROOT}/examples/ops/demo.toml");
    let chain = world
        .run(&["--config", &config, "chain", "--json"])
        .ok()
        .json();
    let turns = chain["turns"].as_array().unwrap().iter();
    let tiers: Vec<&Value> = turns.clone().map(|turn| &turn["tier"]).collect();
    assert_eq!(tiers, ["observe", "remediate", "full"]);
    let triggers: Vec<&Value> = turns.map(|turn| &turn["trigger"]).collect();
    assert_eq!(triggers, ["schedule", "climb", "person"]);
}

fn asks(words: &str, to: &str) -> Script {
    let block = json!({"escalate": {"to": to, "reason": "db is down", "services": ["db"]}});
    vec![Step::text(format!("{words}\n\n```rejoin\n{block}\n```"))]
}

/// The configuration and the prompts of the guide, with Claude Code: a check climbs, a person allows
/// the third tier, and every tier knows what was found.
#[test]
fn the_configuration_of_the_guide_runs_with_claude() {
    let world = World::claude_with(REJOIN, CLAUDE_NEW, || {
        Model::scripted([
            ("first", asks("answerword-1-end", "remediate")),
            ("second", asks("answerword-2-end", "full")),
            ("third", vec![Step::text("answerword-3-end")]),
        ])
    })
    .unwrap();
    let folder = world.home().join(".config/rejoin");
    std::fs::create_dir_all(folder.join("prompts")).unwrap();
    let copy = |name: &str, more: &[(&str, &str)]| {
        let file = Path::new(ROOT).join("examples/ops").join(name);
        let mut text = std::fs::read_to_string(file).unwrap();
        for (from, to) in more {
            assert!(text.contains(from), "{name}: {from}");
            text = text.replace(from, to);
        }
        std::fs::write(folder.join(name), text).unwrap();
    };
    // The words by which the scripted model knows what to answer.
    copy(
        "config.toml",
        &[("restart a container", "restart a container #s:second")],
    );
    copy(
        "prompts/check.md",
        &[("Change nothing.", "Change nothing. userword-1-end #s:first")],
    );
    copy(
        "prompts/full.md",
        &[("Do not repeat it.", "Do not repeat it. #s:third")],
    );
    world.run(&["tiers", "check"]).ok();
    let daemon = world.serve(&[]);
    let waits = world.run(&["schedule", "run", "health", "--json"]);
    assert_eq!(waits.code, 7, "{waits:?}");
    let waits = waits.json();
    assert_eq!(waits["tier"], "remediate");
    assert_eq!(waits["escalation"]["decision"], "waiting");
    let inbox = world.run(&["inbox", "--json"]).ok().json();
    assert_eq!(inbox["turns"].as_array().unwrap().len(), 1, "{inbox}");
    world.run(&["answer", "last", "allow"]).ok();
    let last = world.run(&["wait", "last", "--json"]).ok().json();
    assert_eq!(last["text"], "answerword-3-end", "{last:#}");
    let chain = world.run(&["chain", "--json"]).ok().json();
    let turns = chain["turns"].as_array().unwrap();
    let of = |key: &str| {
        turns
            .iter()
            .map(|turn| turn[key].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("tier"), ["observe", "remediate", "full"]);
    assert_eq!(of("verdict"), ["started", "resumed", "resumed"]);
    assert_eq!(chain["cost_complete"], true);
    let costs = of("cost_usd")
        .iter()
        .map(|cost| cost.as_f64().unwrap())
        .sum::<f64>();
    assert!((chain["total_cost_usd"].as_f64().unwrap() - costs).abs() < 1e-9);
    let shown = texts(&world.model.last());
    for word in ["userword-1-end", "answerword-1-end", "answerword-2-end"] {
        assert_eq!(shown.matches(word).count(), 1, "{word}: {shown}");
    }
    assert!(
        shown.contains("You are now Tier 3, full remediation"),
        "{shown}"
    );
    let listed = daemon.get("/api/schedules").ok();
    let occurrence = &listed["schedules"][0]["occurrences"][0];
    assert_eq!(occurrence["turn_id"], turns[0]["turn_id"]);
    assert_eq!(occurrence["turn_status"], "succeeded");
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}
