//! The events of a turn as pages, its changes to files, and predictions for several agents.

use rejoin_testkit::{CLAUDE_NEW, World};
use serde_json::{Value, json};

use super::{REJOIN, demo, here};

/// Pages hold every event once, whatever their size; types and calls select; a command prints the same.
#[test]
fn pages_of_a_turn() {
    let world = demo();
    let daemon = world.serve(&[]);
    let turn = daemon.say("k", "unique", &[here(&world)]);
    let id = turn["turn_id"].as_str().unwrap();
    let stream = daemon.watch(&format!("/api/turns/{id}/events"), None);
    let due: Vec<i64> = stream
        .until(|e| e.kind == "turn.ended")
        .iter()
        .map(|e| e.id)
        .collect();
    for limit in [1, 2, 1000] {
        let (mut seen, mut after) = (vec![], 0);
        loop {
            let path = format!("/api/turns/{id}/log?limit={limit}&after={after}");
            let page = daemon.get(&path).ok();
            let events = page["events"].as_array().unwrap();
            assert!(events.len() <= limit);
            seen.extend(events.iter().map(|e| e["seq"].as_i64().unwrap()));
            match page["next_after"].as_i64() {
                Some(next) => after = next,
                None => break,
            }
        }
        assert_eq!(seen, due, "limit {limit}");
    }
    let path = format!("/api/turns/{id}/log?types=text");
    let texts = daemon.get(&path).ok()["events"].clone();
    assert_eq!(texts[0]["text"], turn["text"]);
    let printed = world
        .run(&["events", "k", "--types", "text", "--json"])
        .ok()
        .json();
    assert_eq!(printed["events"], texts);
    assert_eq!(
        daemon.get(&format!("/api/turns/{id}/log?types=x")).status,
        400
    );
    let none = world.run(&["events", "k", "--types", "x"]);
    assert_eq!(none.code, 2, "{none:?}");
}

/// Claude writes and edits a file and runs a command: neutral kinds, durations, an exit code and hunks.
#[test]
fn calls_of_a_real_agent() {
    let Some(world) = World::claude(REJOIN, CLAUDE_NEW) else {
        return;
    };
    let daemon = world.serve(&[]);
    let answer = format!("unique-answer {}", "ä".repeat(9000));
    let file = world.work().join("a.txt");
    let file = file.to_str().unwrap();
    let edit = json!({"file_path": file, "old_string": "two", "new_string": "second\nthird"});
    let script = json!([
        {"tools": [{"name": "Write", "input": {"file_path": file, "content": "one\ntwo\n"}}]},
        {"tools": [{"name": "Edit", "input": edit}]},
        {"tools": [{"name": "Bash", "input": {"command": "exit 3", "description": "fails"}}]},
        {"text": answer},
    ]);
    let text = format!("unique-message #j:{script}#");
    let more = [
        here(&world),
        ("model", json!("sonnet")),
        ("tools", json!(["Write", "Edit", "Bash"])),
    ];
    let turn = daemon.say("k", &text, &more);
    assert_eq!(turn["status"], "succeeded", "{turn:#}");
    let id = turn["turn_id"].as_str().unwrap();
    let page = daemon
        .get(&format!("/api/turns/{id}/log?types=tool.*"))
        .ok();
    let of = |kind: &str| -> Vec<Value> {
        let events = page["events"].as_array().unwrap().iter();
        events.filter(|e| e["type"] == kind).cloned().collect()
    };
    let calls = of("tool.call");
    let told: Vec<_> = calls
        .iter()
        .map(|c| (c["kind"].clone(), c["subject"].clone()))
        .collect();
    let due = [("edit", file), ("edit", file), ("run", "exit 3")];
    assert_eq!(
        told,
        due.map(|(kind, subject)| (json!(kind), json!(subject)))
    );
    let results = of("tool.result");
    assert!(
        results.iter().all(|r| r["duration_ms"].is_u64()),
        "{results:#?}"
    );
    assert_eq!(results[2]["exit_code"], 3, "{results:#?}");
    assert_eq!(results[0]["exit_code"], Value::Null);
    let one = format!(
        "/api/turns/{id}/log?tool_id={}",
        calls[2]["id"].as_str().unwrap()
    );
    let one = daemon.get(&one).ok()["events"].as_array().unwrap().len();
    assert_eq!(one, 2, "a call and its result");
    let changes = daemon.get(&format!("/api/turns/{id}/changes")).ok();
    let changed = &changes["files"][0];
    assert_eq!(changes["files"].as_array().unwrap().len(), 1, "{changes:#}");
    assert_eq!(changed["path"], file);
    assert_eq!(
        (&changed["added"], &changed["removed"]),
        (&json!(4), &json!(1))
    );
    let lines = changed["hunks"][1]["lines"].as_array().unwrap();
    let lines: Vec<String> = lines
        .iter()
        .map(|l| {
            format!(
                "{}{}",
                l["op"].as_str().unwrap(),
                l["text"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(lines, ["-two", "+second", "+third"]);
    assert_eq!(world.run(&["diff", "k", "--json"]).ok().json(), changes);
    let printed = world.run(&["diff", "k"]).ok().stdout;
    assert!(
        printed.contains("  -two\n  +second\n  +third\n"),
        "{printed}"
    );
    // Long texts are cut, and fetched as a whole.
    let path = format!("/api/turns/{id}/log?types=text");
    let cut = daemon.get(&path).ok()["events"][0].clone();
    let whole = daemon.get(&format!("{path}&whole=true")).ok()["events"][0].clone();
    assert_eq!(
        (&whole["text"], &turn["text"]),
        (&json!(answer), &json!(answer))
    );
    assert_eq!(cut["lengths"]["text"], answer.len());
    assert!(answer.starts_with(cut["text"].as_str().unwrap()));
    assert!(cut["text"].as_str().unwrap().len() <= 8192);
}

/// Each installed agent has a prediction; a missing one says so, and nothing is run.
#[test]
fn predictions_for_all_agents() {
    let world = demo();
    let daemon = world.serve(&[]);
    daemon.say("k", "one", &[here(&world)]);
    let next = daemon.get("/api/conversations/k/next").ok();
    assert_eq!(next["verdict"], "resumed");
    let fresh = daemon
        .get("/api/conversations/k/next?fresh_session=true")
        .ok();
    assert_eq!(
        (&fresh["verdict"], &fresh["reason"]),
        (&json!("reseeded"), &json!("fresh_requested"))
    );
    let asked = daemon
        .get("/api/conversations/k/next?permission=read-only")
        .ok();
    assert_eq!(asked["envelope"]["mode"], "read-only");
    let list = daemon
        .get("/api/conversations/k/next?agents=demo,claude")
        .ok();
    let agents = list["agents"].as_array().unwrap();
    assert_eq!(
        (&agents[0]["agent"], &agents[0]["next"]),
        (&json!("demo"), &next)
    );
    assert_eq!(agents[1]["agent"], "claude");
    assert_eq!(agents[1]["next"], Value::Null);
    assert_eq!(agents[1]["error"]["code"], "agent_missing", "{agents:#?}");
    let all = daemon.get("/api/conversations/k/next?agents=*").ok();
    assert_eq!(
        all["agents"][0]["agent"], "demo",
        "its own agent comes first"
    );
    for wrong in [
        "agents=demo&agent=demo",
        "agents=,",
        "permission=all",
        "model=a%20b",
    ] {
        let path = format!("/api/conversations/k/next?{wrong}");
        assert_eq!(daemon.get(&path).status, 400, "{wrong}");
    }
    let printed = [
        "explain",
        "k",
        "--next",
        "--fresh-session",
        "--permission",
        "read-only",
        "--json",
    ];
    let there = world.run(&printed).ok().json();
    let here = world
        .run(&[&["--hub", "none"], &printed[..]].concat())
        .ok()
        .json();
    assert_eq!(there, here);
    assert_eq!(
        (&there["reason"], &there["envelope"]["mode"]),
        (&json!("fresh_requested"), &json!("read-only"))
    );
}
