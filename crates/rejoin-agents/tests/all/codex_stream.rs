//! Captured streams of 0.166.0: their events and what the run came to.

use std::fmt::Write as _;

use rejoin_agents::{ProcessEnd, RunReport, adapter};
use rejoin_core::{EventBody, Outcome, SessionId};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/codex/0.166.0");

fn streams() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(FOLDER)
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".jsonl").map(str::to_owned))
        .collect();
    names.sort();
    names
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(format!("{FOLDER}/{name}.jsonl")).unwrap()
}

fn run(bytes: &[u8], stderr: &[u8], end: &ProcessEnd) -> (Vec<EventBody>, RunReport) {
    let mut parser = adapter("codex").unwrap().parser();
    let mut events = vec![];
    for line in bytes.split(|b| *b == b'\n') {
        events.extend(parser.line(line));
    }
    for line in stderr.split(|b| *b == b'\n') {
        parser.stderr(line);
    }
    (events, parser.finish(end))
}

/// The end each capture had.
fn end(name: &str) -> ProcessEnd {
    let killed = name.starts_with("killed");
    let failed = name.starts_with("api") || name.contains("failure") || name.starts_with("sig");
    ProcessEnd {
        code: (!killed).then_some(i32::from(failed)),
        signal: killed.then_some(9),
        ..ProcessEnd::default()
    }
}

#[test]
fn streams_of_0_166_0() {
    let mut out = String::new();
    for name in streams() {
        let (events, ran) = run(&bytes(&name), b"", &end(&name));
        writeln!(out, "== {name}").unwrap();
        for event in &events {
            let line = serde_json::to_string(event).unwrap();
            writeln!(out, "  {line}").unwrap();
        }
        let session = ran.session.as_ref().map(SessionId::as_str);
        writeln!(out, "  outcome {:?} refused {}", ran.outcome, ran.refused).unwrap();
        writeln!(out, "  text {:?} session {session:?}", ran.text).unwrap();
        writeln!(out, "  usage {:?} tools {}", ran.usage, ran.tools_run).unwrap();
        for note in &ran.trail {
            writeln!(out, "  tool {note:?}").unwrap();
        }
        assert_eq!((ran.unknown_lines, ran.total), (0, None), "{name}");
    }
    insta::assert_snapshot!(out);
}

/// E-03, E-33: the first line of the document gives the thread.
#[test]
fn the_documents_first_line_gives_the_thread() {
    let line = br#"{"type":"thread.started","thread_id":"019bd456-d3d4-70c3-90de-51d31a6c8571"}"#;
    let (_, ran) = run(line, b"", &ProcessEnd::default());
    let session = ran.session.as_ref().map(SessionId::as_str);
    assert_eq!(session, Some("019bd456-d3d4-70c3-90de-51d31a6c8571"));
    assert_eq!(ran.unknown_lines, 0);
}

/// Kinds of items that no capture has: sub-agents, searches, and what a later version may bring.
#[test]
fn every_tool_counts() {
    let lines = br#"{"type":"thread.started","thread_id":"01a1de49-2494-7391-a595-647f5b1aba14","more":1}
{"type":"item.started","item":{"id":"item_0","type":"mcp_tool_call","server":"m","tool":"t","arguments":{"a":1},"status":"in_progress"}}
{"type":"item.completed","item":{"id":"item_0","type":"mcp_tool_call","server":"m","tool":"t","arguments":{"a":1},"result":null,"error":{"message":"MCP tool call requires approval, but approval policy is never"},"status":"failed"}}
{"type":"item.completed","item":{"id":"item_1","type":"web_search","query":"rust"}}
{"type":"item.started","item":{"id":"item_2","type":"collab_tool_call","tool":"spawn_agent","status":"in_progress"}}
{"type":"item.started","item":{"id":"item_3","type":"hologram","depth":3}}
{"type":"item.completed","item":{"id":"item_3","type":"hologram","depth":3}}
{"type":"item.completed","item":{"id":"item_4","type":"command_execution","command":"/bin/bash -lc 'rm '\\''x'\\'''","aggregated_output":"","status":"declined"}}
{"type":"item.completed","item":{"id":"item_5","type":"remark"}}
{"type":"turn.paused"}
{"type":"item.completed","item":{"id":"item_6","type":"agent_message","text":"one"}}
{"type":"item.completed","item":{"id":"item_7","type":"agent_message","text":"two"}}
{"type":"turn.completed","usage":{"input_tokens":5,"cached_input_tokens":3,"cache_write_input_tokens":1,"output_tokens":7}}"#;
    let (events, ran) = run(lines, b"", &ProcessEnd::default());
    assert_eq!(ran.outcome, Outcome::Succeeded);
    assert_eq!((ran.tools_run, ran.unknown_lines), (5, 2));
    assert_eq!(ran.text, "one\n\ntwo");
    let raw = events.iter().filter(|e| e.kind() == "raw").count();
    assert_eq!(raw, 2);
    let denied: Vec<_> = ran.denied.iter().map(|d| d.tool.as_str()).collect();
    assert_eq!(denied, ["mcp__m__t", "exec_command"]);
    let done: Vec<_> = ran
        .trail
        .iter()
        .map(|n| (n.tool.as_str(), n.finished))
        .collect();
    assert_eq!(
        done,
        [
            ("web_search", true),
            ("spawn_agent", false),
            ("hologram", true)
        ]
    );
    let usage = ran.usage;
    assert_eq!(
        (
            usage.input,
            usage.cache_read,
            usage.cache_write,
            usage.output
        ),
        (1, 3, 1, 7)
    );
}

#[test]
fn what_only_stderr_tells_is_denied() {
    let stderr = "WARNING: x\n2026-11-15T13:36:02Z ERROR codex_core::tools::router: error=patch rejected: writing is blocked by read-only sandbox; rejected by user approval settings\n2026-11-15T13:36:03Z ERROR codex_core::tools::router: error=exec_command failed: CreateProcess { message: \"Rejected(\\\"`rm` rejected: policy forbids commands starting with `rm`\\\")\" }\n2026-11-15T13:36:04Z ERROR codex_core::tools::router: error=apply_patch verification failed: invalid patch\n";
    let (_, ran) = run(b"", stderr.as_bytes(), &ProcessEnd::default());
    let denied: Vec<_> = ran.denied.iter().map(|d| d.tool.as_str()).collect();
    assert_eq!(denied, ["apply_patch", "exec_command"]);
}

#[test]
fn strange_lines_are_kept_as_they_are() {
    let strange: &[&[u8]] = &[
        b"plain words",
        b"\xff\xfe\x00",
        b"{\"type\":\"new.thing\",\"x\":1}",
        b"{\"type\":\"thread.started\"}",
        b"{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\"}}",
        b"{\"type\":\"item.completed\",\"item\":7}",
        b"[]",
        b"null",
        b"{\"type\":7}",
    ];
    let (events, ran) = run(&strange.join(&b'\n'), b"", &ProcessEnd::default());
    assert!(events.iter().all(|e| e.kind() == "raw"));
    assert_eq!(ran.unknown_lines, strange.len() as u64);
}

mod any {
    use proptest::prelude::*;
    use rejoin_agents::ProcessEnd;

    use super::{bytes, run, streams};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn bytes_never_panic(text in proptest::collection::vec(any::<u8>(), 0..400)) {
            run(&text, &text, &ProcessEnd::default());
        }

        #[test]
        fn changed_streams_never_panic(which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let names = streams();
            let mut text = bytes(&names[which.index(names.len())]);
            if text.is_empty() { return Ok(()); }
            let at = at.index(text.len());
            text[at] = byte;
            run(&text, &text, &ProcessEnd::default());
            text.truncate(at);
            run(&text, b"", &ProcessEnd { torn: true, ..ProcessEnd::default() });
        }
    }
}
