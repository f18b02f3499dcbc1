//! What a session of each CLI holds as messages: who said what, when, and what tools did meanwhile.

use std::fmt::Write as _;

use rejoin_agents::{ReadEntry, Reading, SessionMessage, adapter};
use rejoin_core::{Role, ToolNote};

use crate::did;

fn lines(path: &str) -> Vec<Vec<u8>> {
    let path = format!("{}/fixtures/{path}", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    bytes.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect()
}

/// OpenCode exports what stands in its rows.
fn rows(path: &str) -> Vec<Vec<u8>> {
    let export: serde_json::Value = serde_json::from_slice(&lines(path).concat()).unwrap();
    let messages = export["messages"].as_array().unwrap().iter();
    messages
        .map(|m| {
            let id = m["info"]["id"].as_str().unwrap();
            let row = serde_json::json!({"id": id, "session": "s", "message": m["info"], "parts": m["parts"]});
            row.to_string().into_bytes()
        })
        .collect()
}

fn said(agent: &str, lines: &[Vec<u8>]) -> Vec<SessionMessage> {
    let mut reader = adapter(agent).unwrap().reader(None);
    for line in lines {
        reader.line(line);
    }
    reader.finish().said()
}

fn told(name: &str, said: &[SessionMessage]) -> String {
    let mut out = format!("== {name}\n");
    for one in said {
        let who = match one.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        let text: String = one.text.chars().take(60).collect();
        let at = one.at.map_or_else(|| "-".into(), |at| at.to_string());
        writeln!(out, "{who} at {at}: {text:?}").unwrap();
        for note in &one.trail {
            writeln!(out, "  {}", did(note)).unwrap();
        }
    }
    out
}

#[test]
fn messages_of_claude() {
    let names = [
        "2.1.197/sessions/seven_turns.jsonl",
        "2.1.325/sessions/seven_turns.jsonl",
        "2.1.197/sessions/compacting.jsonl",
        "2.1.197/sessions/killed_bash_611c635e-2b13-4548-94f9-4fe03338281e.jsonl",
        "2.1.197/sessions/subagent/934bb01a-4544-46b4-9af9-57621e6d98de.jsonl",
    ];
    let told = names.map(|name| told(name, &said("claude", &lines(&format!("claude/{name}")))));
    insta::assert_snapshot!(told.concat());
}

#[test]
fn messages_of_codex() {
    let names = [
        "tool/rollout-2026-11-15T08-18-18-01a1de49-25e5-7ea3-b567-bdc277968e17",
        "patch/rollout-2026-11-15T08-18-19-01a1de49-2a24-76f0-a68b-5ddf34f7f103",
        "ft/rollout-2026-11-15T08-39-57-01a1de5c-f807-70c2-883f-7f1be3d38452",
        "int_tool/rollout-2026-11-15T08-22-12-01a1de4c-b931-72b1-a9c9-09087f101723",
        "cmp0/rollout-2026-11-15T08-37-44-01a1de5a-f200-77f3-b6a7-1f5bd721cb88",
    ];
    let path = |name: &str| format!("codex/0.166.0/sessions/{name}.jsonl");
    let told = names.map(|name| told(name, &said("codex", &lines(&path(name)))));
    insta::assert_snapshot!(told.concat());
}

#[test]
fn messages_of_gemini() {
    let names = [
        "tool-turn",
        "resumed",
        "compression",
        "kt.killed",
        "loop-detected",
    ];
    let path = |name: &str| format!("gemini/0.61.0/sessions/{name}.session.jsonl");
    let told = names.map(|name| told(name, &said("gemini", &lines(&path(name)))));
    insta::assert_snapshot!(told.concat());
}

#[test]
fn messages_of_opencode() {
    let names = ["export", "export_killed", "import_synthetic"];
    let path = |name: &str| format!("opencode/1.18.33/{name}.json");
    let told = names.map(|name| told(name, &said("opencode", &rows(&path(name)))));
    insta::assert_snapshot!(told.concat());
}

/// All that was said to one prompt is one answer; what tools did goes to the answer, or to the prompt
/// that has none, and then also what only began.
#[test]
fn a_turn_is_a_prompt_and_one_answer() {
    let prompt = |text: &str| ReadEntry::Prompt {
        id: text.into(),
        text: text.into(),
        at: Some(1),
    };
    let answer = |text: &str| ReadEntry::Answer {
        text: text.into(),
        at: Some(2),
    };
    let tool = |subject: &str, finished: bool| {
        ReadEntry::Did(ToolNote {
            tool: "sh".into(),
            subject: subject.into(),
            changed_file: false,
            finished,
        })
    };
    let reading = Reading {
        entries: vec![
            prompt("one"),
            answer("a"),
            tool("x", true),
            tool("lost", false),
            answer(""),
            ReadEntry::Synthetic,
            answer("b"),
            prompt("two"),
            tool("y", false),
            prompt("three"),
        ],
        ..Reading::default()
    };
    insta::assert_snapshot!(told("made up", &reading.said()), @r#"
    == made up
    user at 1: "one"
    assistant at 2: "a\n\nb"
      did sh x
    user at 1: "two"
      did sh y, no end
    user at 1: "three"
    "#);
}
