//! What a turn may do holds, whichever tool is tried, also on a resumed turn (promise 7, C-40, C-41).

use std::fs;

use rejoin_model::{Step, ToolCall};
use rejoin_testkit::{CODEX_TOOLS, Model, Talk, World, runs, texts};
use serde_json::{Value, json};

use super::{TOOLS, scripted, world};

fn calls(tool: &str, input: Value) -> Step {
    Step {
        tools: vec![ToolCall::new(tool, input)],
        ..Step::default()
    }
}

fn writes(path: &str) -> Step {
    calls("Write", json!({"file_path": path, "content": "x\n"}))
}

/// Each tries to leave a file of its own in the folder.
fn tries() -> Model {
    Model::scripted([("try", tried())])
}

fn tried() -> Vec<Step> {
    let escalated = json!({
        "cmd": "touch by-leave", "sandbox_permissions": "require_escalated", "justification": "x",
    });
    vec![
        runs("touch by-shell"),
        runs("sleep 0.3; touch by-slow-shell; sh -c 'echo x > by-child'"),
        calls("exec_command", escalated),
        calls("exec_command", json!({"cmd": "git allowed"})),
        writes("by-patch"),
        calls(
            "exec_command",
            json!({"cmd": "apply_patch '*** Begin Patch\n*** Add File: by-applied\n+x\n*** End Patch\n'"}),
        ),
        calls("mcp__files__scribble", json!({})),
        runs("echo read-$(cat inside.txt)"),
        Step::text("tried"),
    ]
}

/// Files in the folder, sorted.
fn files(world: &World) -> Vec<String> {
    let entries = fs::read_dir(world.work()).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A user whose rules and servers would let writes through.
fn generous(world: &World) {
    let home = world.home().join(".codex");
    fs::create_dir_all(home.join("rules")).unwrap();
    let rule = "prefix_rule(pattern=[\"touch\"], decision=\"allow\")\n";
    fs::write(home.join("rules/default.rules"), rule).unwrap();
    let config = fs::read_to_string(home.join("config.toml")).unwrap();
    let more = "\n[mcp_servers.files]\ncommand = \"sh\"\nargs = [\"-c\", \"touch by-server; cat\"]\n\
        default_tools_approval_mode = \"approve\"\n";
    fs::write(home.join("config.toml"), config + more).unwrap();
    fs::write(world.work().join("inside.txt"), "word\n").unwrap();
}

#[test]
fn read_only_nothing_is_written_by_any_tool() {
    let Some(world) = scripted(tries) else { return };
    generous(&world);
    let mut flags = TOOLS.to_vec();
    flags.extend(["--permission", "read-only"]);
    let mut turn = world.send(1, "#s:try", &flags).ok().json();
    for n in [2, 3] {
        assert_eq!(files(&world), ["inside.txt"], "{turn:#}");
        assert_eq!(turn["status"], "succeeded", "{turn:#}");
        let said = texts(&world.model.last());
        assert!(said.contains("read-word"), "{said}");
        let denied: Vec<&str> = turn["denied"]
            .as_array()
            .unwrap()
            .iter()
            .map(|d| d["tool"].as_str().unwrap())
            .collect();
        assert!(
            denied.contains(&"exec_command") && denied.contains(&"apply_patch"),
            "{denied:?}"
        );
        turn = world.send(n, "#s:try", &[]).ok().json();
        assert_eq!(turn["verdict"], "resumed", "{turn:#}");
    }
    assert_eq!(files(&world), ["inside.txt"]);
}

/// The newer models call their tools from JavaScript.
#[test]
fn read_only_holds_in_scripts_of_the_model_too() {
    let code = "const all = [\
        () => tools.exec_command({cmd: 'touch by-shell'}), \
        () => tools.apply_patch('*** Begin Patch\\n*** Add File: by-patch\\n+x\\n*** End Patch')];\
        for (const one of all) { try { await one() } catch (e) { text(String(e)) } }";
    let model = || Model::scripted([("js", vec![calls("exec", json!(code)), Step::text("tried")])]);
    let Some(world) = scripted(model) else { return };
    let flags = ["-m", "gpt-5.6-sol", "--permission", "read-only"];
    for n in [1, 2] {
        world.send(n, "#s:js", &flags).ok();
        assert_eq!(files(&world), Vec::<String>::new());
    }
    let edit = ["-m", "gpt-5.6-sol", "--permission", "edit"];
    world.send(3, "#s:js", &edit).ok();
    assert_eq!(files(&world), ["by-patch", "by-shell"]);
    fs::remove_file(world.work().join("by-shell")).unwrap();
    let denied = [
        "-m",
        "gpt-5.6-sol",
        "--permission",
        "edit",
        "--deny-tools",
        "shell",
    ];
    world.send(4, "#s:js", &denied).ok();
    assert_eq!(files(&world), ["by-patch"]);
}

/// `ask` and nobody there: a user's settings and a repository that would both let everything through, and
/// every way that a tool could be reached, also on a resumed turn.
#[test]
fn ask_does_nothing_that_nobody_allowed() {
    let terminal = json!({"cmd": "bash", "tty": true, "yield_time_ms": 300});
    let model = || {
        let code = "const all = [\
            () => tools.exec_command({cmd: 'touch by-shell'}), \
            () => tools.apply_patch('*** Begin Patch\\n*** Add File: by-patch\\n+x\\n*** End Patch')];\
            for (const one of all) { try { await one() } catch (e) { text(String(e)) } }";
        let js = vec![calls("exec", json!(code)), Step::text("tried")];
        let types = vec![calls("exec_command", terminal), Step::text("tried")];
        Model::with(
            [
                ("try".to_owned(), tried()),
                ("js".to_owned(), js),
                ("type".to_owned(), types),
            ]
            .into(),
        )
    };
    let Some(world) = scripted(model) else { return };
    generous(&world);
    fs::remove_dir_all(world.home().join(".codex/rules")).unwrap();
    let config = world.home().join(".codex/config.toml");
    let before = format!(
        "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\napprovals_reviewer = \"auto_review\"\n{}\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n",
        fs::read_to_string(&config).unwrap(),
        world.work().display()
    );
    fs::write(&config, &before).unwrap();
    let rules = world.work().join(".codex/rules");
    fs::create_dir_all(&rules).unwrap();
    let rule = "prefix_rule(pattern=[\"touch\"], decision=\"allow\")\n";
    fs::write(rules.join("default.rules"), rule).unwrap();
    let there = files(&world);
    let ask = |model| ["-m", model, "--permission", "ask"];
    for (n, (script, model)) in (1..).zip([
        ("#s:try", CODEX_TOOLS),
        ("#s:try", CODEX_TOOLS),
        ("#s:type", CODEX_TOOLS),
    ]) {
        let turn = world.send(n, script, &ask(model)).ok().json();
        assert_eq!(files(&world), there, "{turn:#}");
        let verdict = if n == 1 { "started" } else { "resumed" };
        assert_eq!(turn["verdict"], verdict, "{turn:#}");
    }
    let said = texts(&world.model.last());
    assert!(said.contains("TTY execution is disabled"), "{said}");
    for _ in [1, 2] {
        let args = [
            "send",
            "--json",
            "-k",
            "js",
            "-m",
            "gpt-5.6-sol",
            "--permission",
            "ask",
            "#s:js",
        ];
        let turn = world.run(&args).ok().json();
        assert_eq!(turn["denied"].as_array().unwrap().len(), 2, "{turn:#}");
        assert_eq!(files(&world), there, "{turn:#}");
    }
    assert_eq!(fs::read_to_string(&config).unwrap(), before);
    world.assert_quiet();
}

/// What its user has told the CLI not to ask about it does not ask about; it cannot be told to. It is said.
#[test]
fn ask_leaves_the_users_rules_to_the_user() {
    let model = || Model::scripted([("try", vec![runs("touch by-shell"), Step::text("tried")])]);
    let Some(world) = scripted(model) else { return };
    generous(&world);
    let args = [
        "send",
        "--stream",
        "-a",
        "codex",
        "-m",
        CODEX_TOOLS,
        "--permission",
        "ask",
        "#s:try",
    ];
    let told = world.run(&args).ok().stdout;
    assert!(told.contains("did not ask about this"), "{told}");
    assert_eq!(files(&world), ["by-shell", "inside.txt"]);
}

/// In `edit` the place for temporary files is writable too, unless configured otherwise.
#[test]
fn edit_writes_in_the_folder_and_full_everywhere() {
    let beside = tempfile::tempdir_in("/var/tmp").unwrap();
    let outside = beside.path().join("by-shell");
    let command = format!("touch by-shell; touch {}", outside.display());
    let model = || {
        let script = vec![runs(&command), writes("by-patch"), Step::text("tried")];
        Model::scripted([("beside", script)])
    };
    let Some(world) = scripted(model) else { return };
    let mut flags = TOOLS.to_vec();
    flags.extend(["--permission", "edit"]);
    world.send(1, "#s:beside", &flags).ok();
    assert_eq!(files(&world), ["by-patch", "by-shell"]);
    assert!(!outside.exists());
    // Said again on every run: a wider turn leaves nothing behind for the next one.
    world.send(2, "#s:beside", &["--permission", "full"]).ok();
    assert!(outside.exists());
    fs::remove_file(&outside).unwrap();
    let turn = world.send(3, "#s:beside", &["--permission", "edit"]);
    assert_eq!(turn.ok().json()["verdict"], "resumed");
    assert!(!outside.exists());
}

/// C-42: newly denied is denied, on the same session.
#[test]
fn a_denied_tool_does_not_run() {
    let model = || {
        let script = vec![runs("touch by-shell"), Step::text("tried")];
        Model::scripted([("shell", script)])
    };
    let Some(world) = scripted(model) else { return };
    let mut flags = TOOLS.to_vec();
    flags.extend(["--permission", "full", "--deny-tools", "shell"]);
    let turn = world.send(1, "#s:shell", &flags).ok().json();
    assert_eq!(turn["denied"][0]["tool"], "exec_command", "{turn:#}");
    assert_eq!(files(&world), Vec::<String>::new());
    let turn = world.send(2, "#s:shell", &[]).ok().json();
    assert_eq!(turn["verdict"], "resumed");
    assert_eq!(files(&world), Vec::<String>::new());

    let Some(world) = scripted(model) else { return };
    world.send(1, "#s:shell", &TOOLS).ok();
    assert_eq!(files(&world), ["by-shell"]);
    fs::remove_file(world.work().join("by-shell")).unwrap();
    let turn = world.send(2, "#s:shell", &["--deny-tools", "exec_command"]);
    assert_eq!(turn.ok().json()["verdict"], "resumed");
    assert_eq!(files(&world), Vec::<String>::new());
}

/// A set limits: what is not in it is not even shown to the model.
#[test]
fn a_set_of_tools_is_all_there_is() {
    let Some(world) = world() else { return };
    let mut talk = Talk::begin(world);
    let mut flags = TOOLS.to_vec();
    flags.extend(["--tools", "edit"]);
    talk.good("started", &flags);
    let shown = |talk: &Talk| {
        let body = talk.world.model.last().body;
        let names: Vec<String> = body["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| {
                t["name"]
                    .as_str()
                    .or(t["type"].as_str())
                    .unwrap()
                    .to_owned()
            })
            .collect();
        names
    };
    let names = shown(&talk);
    for gone in [
        "exec_command",
        "write_stdin",
        "web_search",
        "view_image",
        "create_goal",
    ] {
        assert!(
            !names.iter().any(|name| name == gone),
            "{gone} in {names:?}"
        );
    }
    assert!(names.iter().any(|name| name == "apply_patch"), "{names:?}");
    talk.good("resumed", &["--deny-tools", "web"]);
    assert!(!shown(&talk).contains(&"web_search".to_owned()));
}

/// Promise 7: refused rather than run wider, in one sentence that says what it can.
#[test]
fn what_it_cannot_be_held_to_is_refused() {
    let Some(world) = world() else { return };
    for (flags, word) in [
        (&["--deny-tools", "edit"][..], "read-only"),
        (
            &["--permission", "ask", "--deny-tools", "edit"],
            "read-only",
        ),
        (&["--tools", "shell"], "name it as well"),
        (&["--tools", "read,edit"], "name `shell`"),
        (
            &["--permission", "read-only", "--tools", "edit"],
            "may write",
        ),
        (&["--deny-tools", "mcp__m__t"], "no tool"),
    ] {
        let done = world.send(1, "#s:a1", flags);
        assert_eq!(done.code, 5, "{flags:?}: {done:?}");
        let message = done.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(word), "{message}");
    }
    assert_eq!(world.model.requests().len(), 0);
}
