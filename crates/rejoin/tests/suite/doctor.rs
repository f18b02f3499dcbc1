//! `rejoin doctor`: what is installed, and what of it works.

mod proofs;
mod stand_ins;

use rejoin_testkit::{CLAUDE_NEW, World};
use serde_json::{Value, json};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// A machine without a coding CLI.
fn bare() -> World {
    let mut world = World::new(REJOIN);
    world.set("PATH", "/usr/bin:/bin");
    world
}

fn agent<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["agents"]
        .as_array()
        .unwrap()
        .iter()
        .find(|a| a["name"] == name)
        .unwrap()
}

/// Text and JSON must agree on the exit code; every problem has its `try:`.
#[track_caller]
fn doctor(world: &World, code: i32) -> (Value, String) {
    let (json, text) = (world.run(&["doctor", "--json"]), world.run(&["doctor"]));
    assert_eq!((json.code, text.code), (code, code), "{json:?} {text:?}");
    let report = json.json();
    assert_eq!(report["ok"], json!(code == 0));
    let problems = report["problems"].as_array().unwrap();
    assert_eq!(problems.is_empty(), code == 0);
    assert_eq!(
        text.stdout.matches("  FAIL").count(),
        problems.len(),
        "{text:?}"
    );
    assert_eq!(
        text.stdout.matches("        try: ").count(),
        problems.len(),
        "{text:?}"
    );
    (report, text.stdout)
}

#[test]
fn a_missing_default_agent_is_a_problem_and_another_is_not() {
    let mut world = bare();
    let (report, text) = doctor(&world, 1);
    assert_eq!(agent(&report, "claude")["found"], false);
    assert_eq!(
        report["problems"],
        json!([{
            "section": "agents", "what": "claude", "message": "not installed: `claude` was not found",
            "try": "npm install -g @anthropic-ai/claude-code",
        }])
    );
    assert!(text.ends_with("\n1 problem\n"), "{text}");
    world.set("REJOIN_DEFAULT_AGENT", "demo");
    let (_, text) = doctor(&world, 0);
    assert!(
        text.contains("npm install -g @anthropic-ai/claude-code"),
        "{text}"
    );
    assert!(text.ends_with("\nready\n"), "{text}");
    // Looking leaves nothing behind.
    assert_eq!(std::fs::read_dir(world.data()).unwrap().count(), 0);
}

#[test]
fn the_real_cli_is_known_and_proven() {
    let Some(mut world) = World::claude(REJOIN, CLAUDE_NEW) else {
        return;
    };
    let (report, text) = doctor(&world, 0);
    let claude = agent(&report, "claude");
    assert_eq!(
        (
            &claude["version"],
            &claude["product"],
            &claude["resume"],
            &claude["default"]
        ),
        (
            &json!(CLAUDE_NEW),
            &json!("Claude Code"),
            &json!("proven"),
            &json!(true)
        )
    );
    assert_eq!(claude["path"], world.env["REJOIN_AGENTS_CLAUDE_BIN"]);
    assert_ne!(claude["totals"], "unproven");
    assert_eq!(
        claude["login"],
        json!({"variables": ["ANTHROPIC_API_KEY"], "file": null})
    );
    assert!(text.contains("key ANTHROPIC_API_KEY set"), "{text}");
    assert!(!text.contains("sk-ant-dummy") && !report.to_string().contains("sk-ant-dummy"));

    // Not known yet: only its version is asked for, until a proof is.
    std::fs::remove_file(world.data().join("rejoin.db")).unwrap();
    let (report, _) = doctor(&world, 0);
    assert_eq!(agent(&report, "claude")["resume"], "unknown");
    let proven = world
        .run(&["doctor", "--prove", "claude", "--json"])
        .ok()
        .json();
    assert_eq!(agent(&proven, "claude")["resume"], "proven");
    let (report, _) = doctor(&world, 0);
    assert_eq!(agent(&report, "claude")["resume"], "proven");

    // Logins: a file, or none.
    world.unset("ANTHROPIC_API_KEY");
    let (report, _) = doctor(&world, 1);
    assert_eq!(report["problems"][0]["message"], "no login found");
    let folder = world.root().join("claude-home");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join(".credentials.json"), "{}").unwrap();
    world.set("CLAUDE_CONFIG_DIR", folder.to_str().unwrap());
    let (_, text) = doctor(&world, 0);
    assert!(text.contains("login file present"), "{text}");
}

#[test]
fn a_program_that_is_something_else_is_said_to_be() {
    let mut world = bare();
    world.set("REJOIN_AGENTS_CLAUDE_BIN", "/bin/true");
    let (report, _) = doctor(&world, 1);
    let said = report["problems"][0]["message"].as_str().unwrap();
    assert!(said.contains("does not answer like claude"), "{said}");
    let none = world.run(&["doctor", "--prove", "nobody"]);
    assert_eq!(none.code, 3, "{none:?}");
}

#[test]
fn a_broken_store_is_found_and_left_as_it_is() {
    let mut world = bare();
    world.set("REJOIN_DEFAULT_AGENT", "demo");
    let db = world.data().join("rejoin.db");
    for broken in [
        &b"this is no database, but it is long enough to be looked at"[..],
        &[0x42; 8192],
    ] {
        std::fs::write(&db, broken).unwrap();
        let (report, text) = doctor(&world, 1);
        assert_eq!(report["problems"][0]["section"], "store");
        assert!(text.contains("damaged: "), "{text}");
        assert_eq!(std::fs::read(&db).unwrap(), broken);
    }
    // A page in the middle of a real one.
    std::fs::remove_file(&db).unwrap();
    for n in 0..40 {
        world
            .run(&["send", "-q", "-k", &format!("k{n}"), &"words ".repeat(400)])
            .ok();
    }
    let (report, _) = doctor(&world, 0);
    assert_eq!(report["store"]["conversations"], 40);
    assert_eq!(
        (&report["store"]["running"], &report["store"]["queued"]),
        (&json!(0), &json!(0))
    );
    // Nobody has it open: what is in the log belongs into the file before it is broken.
    let mut bytes = std::fs::read(&db).unwrap();
    let half = bytes.len() / 2;
    for page in bytes[half..].chunks_mut(4096) {
        page.fill(0x5a);
    }
    std::fs::write(&db, &bytes).unwrap();
    for log in ["rejoin.db-wal", "rejoin.db-shm"] {
        let _gone = std::fs::remove_file(world.data().join(log));
    }
    let (report, _) = doctor(&world, 1);
    assert_eq!(report["problems"][0]["section"], "store");
}

#[test]
fn the_state_of_the_configuration_is_told() {
    let mut world = bare();
    world.set("REJOIN_DEFAULT_AGENT", "demo");
    let file = world.work().join("rejoin.toml");
    std::fs::write(&file, "[notify]\ncommand = [\"x\"]\n").unwrap();
    let (report, _) = doctor(&world, 1);
    assert_eq!(report["problems"][0]["try"], "rejoin trust");
    assert_eq!(report["configuration"][1]["trust"], "untrusted");
    world.run(&["trust"]).ok();
    let (report, _) = doctor(&world, 0);
    assert_eq!(report["configuration"][1]["trust"], "trusted");
    std::fs::write(&file, "x = 1\n").unwrap();
    let (report, _) = doctor(&world, 1);
    let said = report["problems"][0]["message"].as_str().unwrap();
    assert!(
        said.contains("rejoin.toml, line 1: unknown key `x`"),
        "{said}"
    );
}

#[test]
fn what_runs_is_counted() {
    let mut world = bare();
    world.set("REJOIN_DEFAULT_AGENT", "demo");
    world.run(&["send", "hello"]).ok();
    let (report, _) = doctor(&world, 0);
    assert_eq!(
        report["store"]["leftovers"],
        json!({"processes": [], "kept": 0, "folders": 0, "unattended": 0})
    );
    assert_eq!(
        (&report["machine"]["subreaper"], &report["machine"]["proc"]),
        (&json!(true), &json!(true))
    );
    assert!(report["machine"]["free_bytes"].as_u64().unwrap() > 0);
}

/// A turn that runs is seen and is no problem, also when whoever sent it is gone.
#[test]
fn a_running_turn_is_no_leftover() {
    let Some(world) = World::claude(REJOIN, CLAUDE_NEW) else {
        return;
    };
    let mut sender = world.start(1, "#s:slow", &[]);
    world.wait_until_asked("#s:slow");
    let (report, text) = doctor(&world, 0);
    assert_eq!(report["store"]["running"], 1);
    assert!(text.contains("1 running, 0 queued"), "{text}");
    sender.kill().unwrap();
    sender.wait().unwrap();
    let (report, text) = doctor(&world, 0);
    assert_eq!(report["store"]["leftovers"]["unattended"], 1);
    assert!(
        text.contains("1 without the command that sent them"),
        "{text}"
    );
    assert_eq!(report["store"]["leftovers"]["processes"], json!([]));
}

/// What an ended turn left running is named, with how to end it.
#[test]
fn a_leftover_process_is_a_problem() {
    let mut world = bare();
    world.set("REJOIN_DEFAULT_AGENT", "demo");
    let turn = world.run(&["send", "--json", "hello"]).ok().json();
    let mut left = std::process::Command::new("sleep")
        .arg("600")
        .env("REJOIN_TURN", turn["turn_id"].as_str().unwrap())
        .spawn()
        .unwrap();
    let (report, _) = doctor(&world, 1);
    left.kill().unwrap();
    left.wait().unwrap();
    assert_eq!(
        report["problems"],
        json!([{
            "section": "store", "what": "leftovers",
            "message": "processes of ended turns still run: sleep 600",
            "try": format!("kill {}", left.id()),
        }])
    );
    doctor(&world, 0);
}
