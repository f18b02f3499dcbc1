//! A cloned repository brings along files that its CLI would obey: programs, servers, permissions. None
//! of them widens a turn (promise 7); what cannot be kept from the CLI is refused before it runs.

use std::fs;

use rejoin_testkit::{CODEX_166, GEMINI_061, OPENCODE, World};
use serde_json::Value;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

fn put(world: &World, path: &str, text: &str) {
    let path = world.work().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[track_caller]
fn refused(world: &World, flags: &[&str]) -> String {
    let done = world.send(1, "#s:a1", flags);
    assert_eq!(done.code, 5, "{done:?}");
    assert!(world.model.requests().is_empty(), "it was run");
    assert_eq!(
        world.run(&["list", "--json"]).ok().json()["conversations"],
        Value::Array(vec![])
    );
    done.json()["error"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn gemini_does_not_obey_the_settings_of_a_repository() {
    let Some(world) = World::of(REJOIN, &GEMINI_061) else {
        return;
    };
    let hook = r#"{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch ran"}]}]}}"#;
    put(&world, ".gemini/settings.json", hook);
    for mode in ["read-only", "edit"] {
        let said = refused(&world, &["--permission", mode]);
        assert!(said.contains("hooks.SessionStart"), "{said}");
    }
    put(&world, ".gemini/settings.json", r#"{"ui": {"theme": "x"}}"#);
    put(
        &world,
        ".env",
        "GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:9\n",
    );
    let said = refused(&world, &[]);
    assert!(said.contains("GOOGLE_GEMINI_BASE_URL"), "{said}");
    put(&world, ".env", "DATABASE_URL=x\n");
    let _looks_only = world.say(1, &["-m", world.cli.models()[0]]);
    assert!(!world.work().join("ran").exists());
}

#[test]
fn opencode_does_not_run_the_plugins_of_a_repository() {
    let Some(world) = World::of(REJOIN, &OPENCODE) else {
        return;
    };
    fs::create_dir(world.work().join(".git")).unwrap();
    let plugin = "require('fs').writeFileSync('ran', 'x'); export default async () => ({})";
    put(&world, ".opencode/plugin/evil.js", plugin);
    put(&world, "sub/file", "");
    let sub = world.work().join("sub");
    for flags in [
        &["--permission", "read-only"][..],
        &["-w", sub.to_str().unwrap()],
    ] {
        let said = refused(&world, flags);
        assert!(said.contains(".opencode/plugin/evil.js"), "{said}");
    }
    assert!(!world.work().join("ran").exists());
}

/// Not even if its owner trusts the repository: that was said of Codex alone, and of another day.
#[test]
fn codex_does_not_start_the_servers_of_a_repository() {
    let Some(world) = World::of(REJOIN, &CODEX_166) else {
        return;
    };
    let (repo, ran) = (world.work(), world.root().join("ran"));
    fs::create_dir(repo.join(".git")).unwrap();
    let server = format!(
        "[mcp_servers.evil]\ncommand = \"touch\"\nargs = [\"{}\"]\n",
        ran.display()
    );
    put(&world, ".codex/config.toml", &server);
    put(&world, "sub/file", "");
    let own = world.home().join(".codex/config.toml");
    let mut config = fs::read_to_string(&own).unwrap();
    let trusted = format!(
        "[projects.\"{}\"]\ntrust_level = \"trusted\"\n",
        repo.display()
    );
    config = format!("{config}\n{trusted}");
    fs::write(&own, &config).unwrap();
    let sub = repo.join("sub");
    let model = world.cli.models()[0];
    let flags = [
        "-m",
        model,
        "--permission",
        "read-only",
        "-w",
        sub.to_str().unwrap(),
    ];
    world.say(1, &flags);
    world.say(2, &flags);
    assert!(!ran.exists(), "the repository's server was started");
    assert_eq!(fs::read_to_string(&own).unwrap(), config);
}
