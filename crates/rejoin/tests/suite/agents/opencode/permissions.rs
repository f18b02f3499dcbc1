//! Permissions are what the CLI really does, on the first turn and on every other (promise 7).

use std::fs;

use rejoin_testkit::{World, answer, steps};
use serde_json::{Value, json};

use super::world;

/// Everything that could write: the shell, the shell without a command, the tools for files.
fn tries(n: usize) -> String {
    let tool = |name: &str, input: Value| json!({"name": name, "input": input});
    let bash = |command: &str| tool("bash", json!({"command": command, "description": "x"}));
    let file =
        |name: &str| json!({"filePath": name, "content": "x", "oldString": "", "newString": "x"});
    let patch = "*** Begin Patch\n*** Add File: patched.txt\n+x\n*** End Patch";
    let tools = [
        bash("echo x > by-shell.txt"),
        bash("> by-redirection.txt"),
        tool("write", file("written.txt")),
        tool("edit", file("edited.txt")),
        tool("apply_patch", json!({"patchText": patch})),
        tool(
            "task",
            json!({"description": "x", "subagent_type": "general",
            "prompt": r#"#j:[{"tools":[{"name":"bash","input":{"command":"echo x > by-agent.txt","description":"x"}}]},{"text":"done"}]#"#}),
        ),
    ];
    steps(n, &json!([{"tools": tools}, {"text": answer(n)}]))
}

/// The files in the folder, but for those that were there.
fn files(world: &World) -> Vec<String> {
    let entries = fs::read_dir(world.work()).unwrap().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| name != "opencode.json")
        .collect();
    names.sort();
    names
}

#[track_caller]
fn tried(world: &World, n: usize, flags: &[&str]) -> Value {
    let turn = world.send(n, &tries(n), flags).ok().json();
    assert_eq!(turn["text"], answer(n), "{turn:#}");
    turn
}

fn denied(turn: &Value) -> Vec<&str> {
    let listed = turn["denied"].as_array().unwrap().iter();
    let mut tools: Vec<&str> = listed.map(|d| d["tool"].as_str().unwrap()).collect();
    tools.sort_unstable();
    tools.dedup();
    tools
}

/// Allows everything, wherever a configuration can: for all, for agents, in the repository.
fn allow_everything(world: &World) {
    // As text: the last rule that matches counts.
    let all = r#"{"bash":"allow","edit":"allow","task":"allow","*":"allow"}"#;
    let agent = format!(r#"{{"permission":{all}}}"#);
    let wide = format!(
        r#"{{"permission":{all},"agent":{{"build":{agent},"general":{agent},"rejoin":{agent}}}}}"#
    );
    let own = world.home().join(".config/opencode");
    fs::create_dir_all(&own).unwrap();
    for folder in [world.work(), own] {
        fs::write(folder.join("opencode.json"), &wide).unwrap();
    }
}

#[test]
fn read_only_writes_nothing() {
    let Some(mut world) = world() else { return };
    allow_everything(&world);
    // Also where the repository is trusted.
    world.set("OPENCODE_DISABLE_PROJECT_CONFIG", "0");
    let turn = tried(&world, 1, &["--permission", "read-only"]);
    assert_eq!(files(&world), Vec::<String>::new(), "{turn:#}");
    let all = ["apply_patch", "bash", "edit", "task", "write"];
    assert_eq!(denied(&turn), all, "{turn:#}");
    let turn = tried(&world, 2, &["--permission", "read-only"]);
    assert_eq!(turn["verdict"], "resumed");
    assert_eq!(files(&world), Vec::<String>::new(), "{turn:#}");
    // Where a person decides and none is there, it is the same.
    let turn = tried(&world, 3, &["--permission", "ask"]);
    assert_eq!(turn["verdict"], "resumed");
    assert_eq!(files(&world), Vec::<String>::new(), "{turn:#}");
    assert_eq!(denied(&turn), all);
}

#[test]
fn edit_changes_files_and_runs_nothing() {
    let Some(world) = world() else { return };
    allow_everything(&world);
    for n in 1..=2 {
        let turn = tried(&world, n, &["--permission", "edit"]);
        let written = files(&world);
        assert!(written.contains(&"written.txt".to_owned()), "{turn:#}");
        assert!(
            !written.iter().any(|name| name.starts_with("by-")),
            "{written:?}"
        );
        assert!(denied(&turn).contains(&"bash"), "{turn:#}");
    }
    // A denied tool is not offered and does not run, on a resumed turn either.
    fs::remove_file(world.work().join("written.txt")).unwrap();
    let turn = tried(&world, 3, &["--deny-tools", "edit"]);
    assert_eq!(turn["verdict"], "resumed");
    assert!(
        !files(&world).contains(&"written.txt".to_owned()),
        "{turn:#}"
    );
    assert!(denied(&turn).contains(&"write"), "{turn:#}");
}

#[test]
fn full_runs_everything_but_what_is_denied() {
    let Some(world) = world() else { return };
    let turn = tried(&world, 1, &["--permission", "full"]);
    let written = files(&world);
    for name in [
        "by-agent.txt",
        "by-redirection.txt",
        "by-shell.txt",
        "written.txt",
    ] {
        assert!(written.contains(&name.to_owned()), "{name}: {turn:#}");
        fs::remove_file(world.work().join(name)).unwrap();
    }
    // A sub-agent has a session of its own: it is not part of the answer, and nothing is missing.
    let turn = tried(
        &world,
        2,
        &["--permission", "full", "--deny-tools", "shell"],
    );
    assert_eq!(turn["verdict"], "resumed", "{turn:#}");
    let written = files(&world);
    assert!(
        !written.iter().any(|name| name.starts_with("by-")),
        "{written:?}"
    );
    assert!(written.contains(&"written.txt".to_owned()), "{turn:#}");
    // The CLI offers patches to some models only.
    assert_eq!(denied(&turn), ["apply_patch", "bash", "task"], "{turn:#}");
}

#[test]
fn what_it_cannot_be_held_to_is_refused() {
    let Some(world) = world() else { return };
    for (flags, said) in [
        (
            ["--permission", "read-only", "--tools", "bash"],
            "may write",
        ),
        (["--permission", "edit", "--tools", "write"], "name `edit`"),
        (["--permission", "full", "--tools", "task"], "sub-agents"),
        (["--permission", "full", "--deny-tools", "Bash"], "`bash`"),
    ] {
        let done = world.send(1, "#s:a1", &flags);
        assert_eq!(done.code, 5, "{flags:?}: {done:?}");
        let error = done.json()["error"]["message"].to_string();
        assert!(error.contains(said), "{flags:?}: {error}");
    }
    assert_eq!(world.model.requests().len(), 0);
}
