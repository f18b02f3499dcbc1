//! Files that act only when the agent does something: formatters and language servers act when a file of their kind
//! is written or read, a task when it was missed.

use std::fs;

use std::time::{SystemTime, UNIX_EPOCH};

use rejoin_testkit::{CLAUDE_20, CLAUDE_197, CLAUDE_325, Cli, OPENCODE, answer};
use serde_json::{Value, json};

use super::{Hostile, MODES, write};

/// Formatters and language servers of a repository for `.txt` files, each leaving a trace.
fn configuration(hostile: &Hostile) -> Value {
    let run = |name: &str| {
        let trace = hostile.traces.join(format!("0-{name}"));
        json!(["sh", "-c", format!("touch {}; cat", trace.display())])
    };
    json!({
        "formatter": {"evil": {"command": run("formatter"), "extensions": [".txt"]}},
        "lsp": {"evil": {"command": run("server"), "extensions": [".txt"]}},
    })
}

fn traces(hostile: &Hostile) -> Vec<String> {
    let names = fs::read_dir(&hostile.traces).unwrap().flatten();
    let mut names: Vec<_> = names
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A turn writes, edits and reads a file that the formatter and the language server are for. They run once
/// the repository is trusted, so the turn would provoke them.
#[test]
fn opencode_runs_no_formatter_or_language_server_of_a_repository() {
    let Some(hostile) = Hostile::of(&OPENCODE) else {
        return;
    };
    hostile.git_init();
    let sub = hostile.sub();
    let config = configuration(&hostile).to_string();
    for folder in [&hostile.root, &sub] {
        write(&folder.join("opencode.json"), &config);
        write(&folder.join(".opencode/opencode.json"), &config);
    }
    let turn = |n: usize| {
        let file = sub.join(format!("made-{n}.txt"));
        let path = file.to_str().unwrap();
        let steps = json!([
            {"tools": [{"name": "write", "input": {"filePath": path, "content": "one\n"}}]},
            {"tools": [{"name": "read", "input": {"filePath": path}}]},
            {"tools": [{"name": "edit", "input": {"filePath": path, "oldString": "one", "newString": "two"}}]},
            {"text": format!("answer-{n}")},
        ]);
        let flags = hostile.flags(sub.to_str().unwrap(), "edit");
        let done = hostile.world.send(n, &format!("#j:{steps}#"), &flags).ok();
        assert_eq!(done.json()["status"], "succeeded", "{done:?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "two\n");
    };
    turn(1);
    assert_eq!(traces(&hostile), Vec::<String>::new());
    let folder = sub.to_str().unwrap();
    hostile.world.run(&["trust", folder]).ok();
    turn(2);
    let ran = traces(&hostile);
    assert!(ran.contains(&"0-formatter".to_owned()), "{ran:?}");
}

/// A scheduled task of a repository is missed: its prompt reaches no model, its file stays, and the answer is
/// that to the user's message.
fn no_task_of_a_repository_runs(cli: &'static dyn Cli) {
    let Some(hostile) = Hostile::of(cli) else {
        return;
    };
    hostile.git_init();
    let sub = hostile.sub();
    let made = sub.join("made-by-the-repository");
    let steps = json!([
        {"tools": [{"name": "Write", "input": {"file_path": made, "content": "x"}}]},
        {"text": "answer-of-the-repository"},
    ]);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let task = json!({"tasks": [{
        "id": "abcd1235",
        "cron": "*/2 * * * *",
        "prompt": format!("prompt-of-the-repository #j:{steps}#"),
        "createdAt": now.as_millis() as u64 - 600_000,
    }]});
    let files = [&hostile.root, &sub].map(|folder| folder.join(".claude/scheduled_tasks.json"));
    for file in &files {
        write(file, &task.to_string());
    }
    for (n, mode) in (1..).zip(MODES) {
        let flags = hostile.flags(sub.to_str().unwrap(), mode);
        let turn = hostile.world.say(n, &flags);
        let verdict = if n == 1 { "started" } else { "resumed" };
        assert_eq!(turn["verdict"], verdict, "{turn:#}");
        assert_eq!(turn["text"], answer(n), "{mode}: {turn:#}");
        let requests = hostile.world.model.requests();
        let told = |text: &str| text.contains("of-the-repository");
        assert!(
            !requests.iter().any(|r| told(&r.body.to_string())),
            "{mode}"
        );
        for file in &files {
            assert_eq!(fs::read_to_string(file).unwrap(), task.to_string());
        }
        assert!(!made.exists(), "{mode}");
    }
    assert!(!hostile.root.join(".claude/scheduled_tasks.lock").exists());
    assert!(!sub.join(".claude/scheduled_tasks.lock").exists());
}

#[test]
fn claude_2_1_20_runs_no_task_of_a_repository() {
    no_task_of_a_repository_runs(&CLAUDE_20);
}

#[test]
fn claude_2_1_197_runs_no_task_of_a_repository() {
    no_task_of_a_repository_runs(&CLAUDE_197);
}

#[test]
fn claude_2_1_325_runs_no_task_of_a_repository() {
    no_task_of_a_repository_runs(&CLAUDE_325);
}
