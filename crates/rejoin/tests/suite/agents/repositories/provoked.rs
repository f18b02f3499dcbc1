//! Files that act only when the agent does something: formatters and language servers act when a file of their kind
//! is written or read.

use std::fs;

use rejoin_testkit::OPENCODE;
use serde_json::{Value, json};

use super::{Hostile, write};

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
