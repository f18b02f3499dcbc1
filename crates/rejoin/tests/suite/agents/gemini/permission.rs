//! Permissions never widen by accident (promise 7): what is not allowed does not run, on a first
//! turn and on a resumed one, whatever the user's own settings allow.

use std::fs;

use rejoin_model::{Script, Step};
use rejoin_testkit::{World, runs};
use serde_json::{Value, json};

use super::{FLASH, calls, scripted};

/// Every way to write that there is; each leaves a file.
fn writers() -> Script {
    let sub = json!([
        {"tools": [{"name": "run_shell_command", "input": {"command": "touch by-sub-shell", "description": "x"}},
                   {"name": "write_file", "input": {"file_path": "by-sub-write", "content": "x"}}]},
        {"text": "sub done"},
    ]);
    vec![
        runs("touch by-shell"),
        calls(
            "write_file",
            json!({"file_path": "by-write", "content": "x"}),
        ),
        calls(
            "write_file",
            json!({"file_path": "plan.md", "content": "x"}),
        ),
        calls(
            "replace",
            json!({"file_path": "there", "old_string": "old", "new_string": "new", "instruction": "x"}),
        ),
        calls("save_memory", json!({"fact": "x"})),
        calls("enter_plan_mode", json!({"reason": "x"})),
        calls("exit_plan_mode", json!({"plan_filename": "plan.md"})),
        runs("touch after-plan"),
        calls("activate_skill", json!({"name": "skill-creator"})),
        calls(
            "invoke_agent",
            json!({"agent_name": "generalist", "prompt": format!("do it #j:{sub}#")}),
        ),
        Step::text("all tried"),
    ]
}

fn folder(world: &World) -> Vec<String> {
    let files = fs::read_dir(world.work()).unwrap().flatten();
    let mut names: Vec<String> = files
        .map(|file| file.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn denied(turn: &Value) -> Vec<String> {
    let denied = turn["denied"].as_array().unwrap().iter();
    let mut names: Vec<String> = denied
        .map(|d| d["tool"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names.dedup();
    names
}

/// A user who allows everything, in every place where that can be said.
fn generous(world: &World) {
    let own = world.home().join(".gemini");
    let mut text = fs::read_to_string(own.join("settings.json")).unwrap();
    let end = text.rfind('}').unwrap();
    text.replace_range(
        end..,
        ", \"tools\": {\"allowed\": [\"run_shell_command\", \"write_file\"]}}\n",
    );
    fs::write(own.join("settings.json"), text).unwrap();
    fs::create_dir_all(own.join("policies")).unwrap();
    let rule = "[[rule]]\ntoolName = \"*\"\ndecision = \"allow\"\npriority = 999\n";
    fs::write(own.join("policies/mine.toml"), rule).unwrap();
}

#[test]
fn read_only_writes_nothing() {
    let Some(world) = scripted([("writers", writers())]) else {
        return;
    };
    generous(&world);
    let before = fs::read(world.home().join(".gemini/settings.json")).unwrap();
    fs::write(world.work().join("there"), "old").unwrap();
    let flags = [&FLASH[..], &["--permission", "read-only"]].concat();
    for n in 1..=2 {
        let turn = world.send(n, "#s:writers", &flags).ok().json();
        assert_eq!(turn["text"], "all tried", "{turn:#}");
        let verdict = if n == 1 { "started" } else { "resumed" };
        assert_eq!(turn["verdict"], verdict, "{turn:#}");
        assert_eq!(folder(&world), ["there"]);
        assert_eq!(fs::read(world.work().join("there")).unwrap(), b"old");
        let denied = denied(&turn);
        for tool in [
            "run_shell_command",
            "write_file",
            "replace",
            "exit_plan_mode",
        ] {
            assert!(denied.contains(&tool.to_owned()), "{tool}: {denied:?}");
        }
    }
    // The user's own settings are as they were, and hold nothing of ours.
    let own = world.home().join(".gemini");
    assert_eq!(fs::read(own.join("settings.json")).unwrap(), before);
    assert!(!own.join("commands").exists() && !own.join("tmp").exists());
}

#[test]
fn edit_edits_and_runs_nothing() {
    let script = vec![
        runs("touch by-shell"),
        calls(
            "write_file",
            json!({"file_path": "by-write", "content": "x"}),
        ),
        calls(
            "write_file",
            json!({"file_path": "../outside", "content": "x"}),
        ),
        Step::text("all tried"),
    ];
    let Some(world) = scripted([("mixed", script)]) else {
        return;
    };
    let flags = [&FLASH[..], &["--permission", "edit"]].concat();
    for n in 1..=2 {
        let turn = world.send(n, "#s:mixed", &flags).ok().json();
        assert_eq!(turn["text"], "all tried", "{turn:#}");
        assert_eq!(folder(&world), ["by-write"]);
        assert!(!world.root().join("outside").exists());
        assert_eq!(denied(&turn), ["run_shell_command"]);
    }
}

#[test]
fn full_does_everything_but_what_is_denied() {
    let script = vec![
        runs("touch by-shell"),
        calls(
            "write_file",
            json!({"file_path": "by-write", "content": "x"}),
        ),
        Step::text("all tried"),
    ];
    let Some(world) = scripted([("mixed", script)]) else {
        return;
    };
    let full = [&FLASH[..], &["--permission", "full"]].concat();
    for (n, deny, files) in [
        (1, "edit", &["by-shell"][..]),
        (2, "shell", &["by-write"]),
        (3, "web", &["by-shell", "by-write"]),
    ] {
        for file in folder(&world) {
            fs::remove_file(world.work().join(file)).unwrap();
        }
        let key = format!("of {deny}");
        let text = format!("go {n} #s:mixed");
        let args = ["send", "--json", "-k", &key, "--deny-tools", deny];
        let turn = world
            .run(&[&args[..], &full, &[&text]].concat())
            .ok()
            .json();
        assert_eq!(turn["text"], "all tried", "{turn:#}");
        assert_eq!(folder(&world), files, "{deny}");
    }
}

/// A set of tools is exact: what is not in it does not run, and what is in it needs no other leave.
#[test]
fn only_the_tools_that_were_named() {
    let script = vec![
        runs("touch by-shell"),
        calls(
            "write_file",
            json!({"file_path": "by-write", "content": "x"}),
        ),
        calls("read_file", json!({"file_path": "there"})),
        Step::text("all tried"),
    ];
    let Some(world) = scripted([("mixed", script)]) else {
        return;
    };
    fs::write(world.work().join("there"), "word-in-it").unwrap();
    let flags = [&FLASH[..], &["--tools", "shell"]].concat();
    for n in 1..=2 {
        let turn = world.send(n, "#s:mixed", &flags).ok().json();
        assert_eq!(folder(&world), ["by-shell", "there"]);
        assert_eq!(denied(&turn), ["read_file", "write_file"], "{turn:#}");
    }
    let asked = world.model.last().body.to_string();
    assert!(!asked.contains("word-in-it"));
}

/// The user's own denials are not lifted by what a turn allows.
#[test]
fn what_the_user_denied_stays_denied() {
    let script = vec![runs("touch by-shell"), Step::text("all tried")];
    let Some(world) = scripted([("mixed", script)]) else {
        return;
    };
    let policies = world.home().join(".gemini/policies");
    fs::create_dir_all(&policies).unwrap();
    let rule = "[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = \"touch\"\n\
                decision = \"deny\"\npriority = 100\n";
    fs::write(policies.join("mine.toml"), rule).unwrap();
    for more in [&["--tools", "shell"][..], &["--permission", "full"]] {
        let flags = [&FLASH[..], more].concat();
        let turn = world.send(1, "#s:mixed", &flags).ok().json();
        assert_eq!(folder(&world), Vec::<String>::new(), "{turn:#}");
        assert_eq!(denied(&turn), ["run_shell_command"]);
    }
}

#[test]
fn what_cannot_be_expressed_is_refused() {
    let Some(world) = super::world() else { return };
    for (flags, word) in [
        (&["--tools", "mcp_x_y"][..], "deny the others instead"),
        (&["--deny-tools", "run_shell_command(rm)"], "whole tools"),
        (
            &["--permission", "read-only", "--tools", "edit"],
            "may write",
        ),
    ] {
        let done = world.send(1, "#s:a1", flags);
        assert_eq!(done.code, 5, "{done:?}");
        let error = &done.json()["error"];
        assert!(error["message"].as_str().unwrap().contains(word), "{error}");
    }
    assert_eq!(world.model.requests().len(), 0);
    // Rules the turn could not be held to.
    let settings = world.home().join(".gemini/settings.json");
    fs::write(&settings, "{\"policyPaths\": [\"/x\"]}").unwrap();
    let done = world.send(1, "#s:a1", &FLASH);
    assert_ne!(done.code, 0);
    assert!(done.stdout.contains("policyPaths"), "{done:?}");
    assert_eq!(world.model.requests().len(), 0);
}
