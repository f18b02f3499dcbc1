//! Permissions are what the CLI really does, on the first turn and on every other (promise 7).

use std::fs;

use rejoin_testkit::{World, answer, steps};
use serde_json::{Value, json};

use super::{stand_in_front, world};

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

/// Everything in a session's database that could permit more than the turn: rules of the session (of
/// equal keys the CLI takes the last), permissions given for good, another configuration, folders that count
/// as the project's, a sub-agent that was asked for and has not run.
const WIDENED: &str = r#"
    update session set workspace_id = 'w1', share_url = 'http://127.0.0.1:9', permission =
        '[{"permission":"bash","pattern":"*","action":"deny","action":"allow"},'
        || '{"permission":"*","pattern":"*","action":"allow"}]';
    insert or replace into permission select 'p1', id, 'bash', '*', 1, 1 from project;
    insert or replace into workspace select 'w1', 'worktree', '', null, '/', null, id, 1 from project;
    insert or replace into account values ('a1', 'a@example.org', 'http://127.0.0.1:9', 't', 't', 1, 1, 1);
    insert or replace into account_state values (1, 'a1', 'o1');
    insert or replace into session_share select id, 's1', 'secret', 'http://127.0.0.1:9', 1, 1 from session;
    update project set worktree = '/', sandboxes = '["/"]', commands = '{"start":"touch by-start.txt"}';
    insert or replace into message select 'msg_zzzzzzzzzzzz', session_id, time_created + 1, time_updated + 1,
        json_object('role', 'user', 'agent', 'build', 'time', json_object('created', time_created + 1),
            'model', json_object('providerID', 'scripted', 'modelID', 'm1'))
        from message order by time_created desc limit 1;
    insert or replace into part select 'prt_zzzzzzzzzzzz', 'msg_zzzzzzzzzzzz', id, 1, 1,
        '{"type":"text","t\u0079pe":"subtask","agent":"build","description":"x","text":"x","prompt":'
        || json_quote('#j:[{"tools":[{"name":"bash","input":{"command":"echo x > by-agent.txt","description":"x"}}]},{"text":"done"}]#')
        || '}' from session;
    pragma wal_checkpoint(truncate);"#;

/// Lets somebody change the session of the next turn before it is confirmed, as an archive, an envelope or
/// a snapshot may bring it.
fn changed_once(world: &mut World, sql: &str) {
    let file = world.root().join("change.sql");
    let shown = file.display();
    let change = format!(
        "import glob, os, sqlite3; at = sqlite3.connect(glob.glob(os.environ['HOME'] \
         + '/.local/share/opencode/rejoin/*.db')[0]); at.executescript(open('{shown}').read()); at.close()"
    );
    let body = format!(
        "\"$real\" \"$@\"; code=$?\nif [ \"$1\" = run ] && [ -e {shown} ]; then \
         python3 -c \"{change}\" > {shown}.log 2>&1 && mv {shown} {shown}.done; fi\nexit $code"
    );
    stand_in_front(world, &body);
    // Looked at once before, so that only the turn is changed.
    assert_eq!(world.run(&["send", "--tools=-x", "hello"]).code, 5);
    fs::write(&file, sql).unwrap();
}

/// The turn permits what it says, whatever its session brings along.
#[test]
fn a_session_from_elsewhere_widens_nothing() {
    let Some(mut world) = world() else { return };
    changed_once(&mut world, WIDENED);
    world.say(1, &["--permission", "read-only"]);
    let done = world.root().join("change.sql.done");
    let log = || fs::read_to_string(world.root().join("change.sql.log"));
    assert!(done.exists(), "{:?}", log());
    for (n, verdict) in [(2, "resumed"), (3, "restored")] {
        if verdict == "restored" {
            fs::rename(&done, world.root().join("change.sql")).unwrap();
            world.say(9, &["--permission", "read-only"]);
            assert!(done.exists(), "{:?}", log());
            fs::remove_file(&world.sessions()[0]).unwrap();
        }
        let turn = tried(&world, n, &["--permission", "read-only"]);
        assert_eq!(turn["verdict"], verdict, "{turn:#}");
        assert_eq!(files(&world), Vec::<String>::new(), "{turn:#}");
        let all = ["apply_patch", "bash", "edit", "task", "write"];
        assert_eq!(denied(&turn), all, "{turn:#}");
    }
    let turn = tried(&world, 4, &["--permission", "edit"]);
    assert_eq!(turn["verdict"], "resumed", "{turn:#}");
    let written = files(&world);
    assert!(written.contains(&"written.txt".to_owned()), "{turn:#}");
    assert!(
        !written.iter().any(|name| name.starts_with("by-")),
        "{written:?}"
    );
}

/// A trigger would give it back what was taken: such a session is not continued.
#[test]
fn a_session_that_changes_itself_is_not_continued() {
    let Some(mut world) = world() else { return };
    let trigger = r#"create trigger back after update on session begin update session set permission =
        '[{"permission":"*","pattern":"*","action":"allow"}]'; end;
        pragma wal_checkpoint(truncate);"#;
    changed_once(&mut world, trigger);
    world.say(1, &["--permission", "read-only"]);
    let refused = world.send(2, &tries(2), &["--permission", "read-only"]);
    assert_ne!(refused.code, 0, "{refused:?}");
    assert_eq!(files(&world), Vec::<String>::new(), "{refused:?}");
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
