//! Configuration: where values come from, and what is said of mistakes.

mod changes;
mod mistakes;
mod schema;

use rejoin_testkit::World;
use serde_json::{Value, json};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// A world with a configuration of its user.
fn world(own: &str) -> World {
    let world = World::new(REJOIN);
    let folder = world.home().join(".config/rejoin");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), own).unwrap();
    world
}

fn repository(world: &World, text: &str) {
    std::fs::write(world.work().join("rejoin.toml"), text).unwrap();
}

fn value<'a>(shown: &'a Value, key: &str) -> &'a Value {
    let settings = shown["settings"].as_array().unwrap();
    settings
        .iter()
        .find(|s| s["key"] == key)
        .unwrap_or_else(|| panic!("{key}: {shown}"))
}

/// Environment over the repository's file over the user's, each value with its origin.
#[test]
fn precedence_and_origins() {
    let mut world = world("[resume]\nbreaker = 3\ncontext_threshold = 0.5\nscope = \"agent\"\n");
    repository(
        &world,
        "[resume]\nbreaker = 4\ncontext_threshold = 0.6\n[agents.claude]\nmodel = \"haiku\"\n",
    );
    world.set("REJOIN_RESUME_CONTEXT_THRESHOLD", "0.7");
    world.set("REJOIN_AGENTS_CODEX_ENABLED", "false");
    let shown = world.run(&["config", "show", "--json"]).ok().json();
    let own = world.home().join(".config/rejoin/config.toml");
    let theirs = std::fs::canonicalize(world.work())
        .unwrap()
        .join("rejoin.toml");
    for expected in [
        json!({"key": "resume.context_threshold", "value": 0.7, "counts": true, "from": "environment", "variable": "REJOIN_RESUME_CONTEXT_THRESHOLD"}),
        json!({"key": "resume.breaker", "value": 4, "counts": true, "from": "file", "file": theirs, "line": 2}),
        json!({"key": "agents.claude.model", "value": "haiku", "counts": true, "from": "file", "file": theirs, "line": 5}),
        json!({"key": "resume.scope", "value": "agent", "counts": true, "from": "file", "file": own, "line": 4}),
        json!({"key": "agents.codex.enabled", "value": false, "counts": true, "from": "environment", "variable": "REJOIN_AGENTS_CODEX_ENABLED"}),
        json!({"key": "default_agent", "value": "claude", "counts": true, "from": "default"}),
    ] {
        assert_eq!(*value(&shown, expected["key"].as_str().unwrap()), expected);
    }
    let text = world.run(&["config", "show"]).ok().stdout;
    let line = |key: &str| {
        let line = text.lines().find(|l| l.starts_with(key)).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("default_agent "), "default_agent \"claude\" default");
    assert_eq!(
        line("resume.breaker "),
        format!("resume.breaker 4 {}:2", theirs.display())
    );
    assert_eq!(
        line("resume.context_threshold "),
        "resume.context_threshold 0.7 REJOIN_RESUME_CONTEXT_THRESHOLD"
    );

    // Another file in place of the user's own.
    let other = world.root().join("other.toml");
    std::fs::write(&other, "[resume]\nscope = \"full\"\n").unwrap();
    let shown = world
        .run(&[
            "config",
            "show",
            "--json",
            "--config",
            other.to_str().unwrap(),
        ])
        .ok()
        .json();
    assert_eq!(value(&shown, "resume.scope")["file"], json!(other));
    assert_eq!(value(&shown, "resume.breaker")["value"], 4);
}

/// Upward to the root of the checkout; outside one, only the folder itself.
#[test]
fn a_file_is_found_upward_to_the_root_of_the_checkout() {
    let world = World::new(REJOIN);
    let below = world.work().join("a/b");
    std::fs::create_dir_all(&below).unwrap();
    repository(&world, "[resume]\nbreaker = 7\n");
    let breaker = || {
        let child = world
            .command(&["config", "show", "--json"])
            .current_dir(&below)
            .spawn()
            .unwrap();
        value(
            &rejoin_testkit::Done::of(child).ok().json(),
            "resume.breaker",
        )["value"]
            .clone()
    };
    assert_eq!(breaker(), 2);
    // An empty folder of that name makes no checkout: sandboxes leave some, also above this folder.
    std::fs::create_dir(world.work().join(".git")).unwrap();
    assert_eq!(breaker(), 2);
    std::fs::write(world.work().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    assert_eq!(breaker(), 7);
    std::fs::create_dir(world.work().join("a/.git")).unwrap();
    assert_eq!(breaker(), 7);
    std::fs::remove_dir(world.work().join("a/.git")).unwrap();
    // A worktree has a file.
    std::fs::write(world.work().join("a/.git"), "gitdir: ../.git/worktrees/a\n").unwrap();
    assert_eq!(breaker(), 2);
}

#[test]
fn path_says_what_is_read_in_order() {
    let world = world("");
    let theirs = std::fs::canonicalize(world.work())
        .unwrap()
        .join("rejoin.toml");
    let own = world.home().join(".config/rejoin/config.toml");
    let said = world.run(&["config", "path"]).ok().stdout;
    let rows: Vec<Vec<&str>> = said
        .lines()
        .map(|l| l.splitn(2, ' ').map(str::trim).collect())
        .collect();
    assert_eq!(
        rows,
        [
            [own.to_str().unwrap(), "yours: there"],
            [theirs.to_str().unwrap(), "repository: not there"],
        ]
    );
    // Also when something is wrong in one of them.
    repository(&world, "nonsense\n");
    let said = world.run(&["config", "path", "--json"]).ok().json();
    assert_eq!(
        said["files"][1],
        json!({"path": theirs, "role": "repository", "exists": true, "trust": null})
    );
}

/// Values that may be secrets are not printed.
#[test]
fn secrets_stay_in_their_file() {
    let world = world(
        "[agents.claude.env]\nANTHROPIC_API_KEY = \"sk-secret\"\n[database]\nurl = \"postgres://me:sk-secret@host/db\"\n[notify]\nwebhook = \"https://h/x?token=sk-secret\"\n",
    );
    for args in [&["config", "show"][..], &["config", "show", "--json"]] {
        let done = world.run(args).ok();
        assert!(done.stdout.contains("ANTHROPIC_API_KEY"), "{done:?}");
        assert!(!done.stdout.contains("sk-secret"), "{done:?}");
    }
}
