//! Captured sessions of 0.166.0, read as the CLI would replay them.

use std::fmt::Write as _;

use rejoin_agents::{ReadEntry, Reading, adapter, text_mark};
use serde_json::{Value, json};

use crate::did;

const FOLDER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/fixtures/codex/0.166.0/sessions"
);

fn fixture(name: &str) -> Vec<Vec<u8>> {
    let path = std::path::Path::new(FOLDER).join(name);
    let path = if path.is_dir() {
        std::fs::read_dir(&path)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path()
    } else {
        path
    };
    let bytes = std::fs::read(path).unwrap();
    let lines = bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty());
    lines.map(<[u8]>::to_vec).collect()
}

fn names() -> Vec<String> {
    let entries = std::fs::read_dir(FOLDER).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn read(lines: &[Vec<u8>], cursor: Option<&str>) -> Reading {
    let mut reader = adapter("codex").unwrap().reader(cursor);
    for line in lines {
        reader.line(line);
    }
    reader.finish()
}

fn told(reading: &Reading) -> String {
    let mut out = String::new();
    for entry in &reading.entries {
        match entry {
            ReadEntry::Prompt { text, .. } => writeln!(out, "  prompt {text:?}").unwrap(),
            ReadEntry::Answer { text, .. } => writeln!(out, "  answer {text:?}").unwrap(),
            ReadEntry::Did(note) => writeln!(out, "  {}", did(note)).unwrap(),
            ReadEntry::Synthetic => writeln!(out, "  synthetic").unwrap(),
        }
    }
    writeln!(
        out,
        "  connected {} damaged {} orphaned {} compacted {} prompts {}",
        reading.connected,
        reading.damaged_lines,
        reading.orphaned_calls,
        reading.compacted,
        reading.prompts.len()
    )
    .unwrap();
    writeln!(
        out,
        "  context {:?} model {:?} provider {:?} cursor {:?}",
        reading.context, reading.model, reading.provider, reading.cursor
    )
    .unwrap();
    writeln!(
        out,
        "  usage {:?} denied {:?}",
        reading.usage, reading.denied
    )
    .unwrap();
    out
}

#[test]
fn sessions_of_0_166_0() {
    let shown: Vec<String> = names()
        .iter()
        .map(|name| format!("== {name}\n{}", told(&read(&fixture(name), None))))
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

/// Where each turn begins.
fn starts(lines: &[Vec<u8>]) -> Vec<usize> {
    let started = |line: &Vec<u8>| {
        let line: Value = serde_json::from_slice(line).unwrap();
        line["payload"]["type"] == "task_started"
    };
    let mut starts: Vec<usize> = (0..lines.len()).filter(|&at| started(&lines[at])).collect();
    // What stands before a turn's own first line belongs to it.
    for start in starts.iter_mut().skip(1) {
        while String::from_utf8_lossy(&lines[*start - 1]).contains("\"thread_settings_applied\"") {
            *start -= 1;
        }
    }
    starts[0] = 0;
    starts.push(lines.len());
    starts
}

/// Each turn is read alone, follows from the one before, and holds one prompt and its answer.
#[test]
fn turn_by_turn() {
    for name in ["simple", "tool", "patch", "s0", "cmp0"] {
        let lines = fixture(name);
        let (mut cursor, mut entries) = (None::<String>, vec![]);
        let mut compacted = false;
        for turn in starts(&lines).windows(2) {
            let reading = read(&lines[turn[0]..turn[1]], cursor.as_deref());
            let said: String = reading.entries.iter().filter_map(answer).collect();
            assert_eq!(
                reading.prompts.len(),
                1,
                "{name} {turn:?}: {}",
                told(&reading)
            );
            assert_eq!(
                reading.confirms(&reading.prompts[0], &said),
                Ok(()),
                "{name} {turn:?}: {}",
                told(&reading)
            );
            assert!(!said.is_empty(), "{name} {turn:?}");
            compacted |= reading.compacted;
            entries.extend(reading.entries);
            cursor = reading.cursor;
        }
        let whole = read(&lines, None);
        assert_eq!((whole.entries, whole.cursor), (entries, cursor), "{name}");
        assert_eq!(whole.compacted, compacted, "{name}");
    }
}

fn answer(entry: &ReadEntry) -> Option<&str> {
    match entry {
        ReadEntry::Answer { text, .. } => Some(text),
        ReadEntry::Prompt { .. } | ReadEntry::Did(_) | ReadEntry::Synthetic => None,
    }
}

/// A line lost, doubled or swapped: the CLI would not notice.
#[test]
fn lines_must_follow_each_other() {
    let lines = fixture("simple");
    let cut = starts(&lines)[3];
    let before = read(&lines[..cut], None).cursor;
    let after = |lines: &[Vec<u8>]| read(lines, before.as_deref());
    assert!(after(&lines[cut..]).connected);
    assert!(!after(&lines[cut + 1..]).connected);
    let mut doubled = lines[cut..].to_vec();
    doubled.insert(3, doubled[2].clone());
    assert!(!after(&doubled).connected);
    let mut gap = lines.clone();
    gap.remove(9);
    assert!(!read(&gap, None).connected);
    let mut torn = lines.clone();
    torn[9].truncate(40);
    let torn = read(&torn, None);
    assert_eq!((torn.damaged_lines, torn.connected), (1, false));
    // Without its first line the CLI does not load it.
    assert!(!read(&lines[1..], None).connected);
    // Nothing added.
    let same = after(&[]);
    assert_eq!((same.connected, same.cursor), (true, before));
    assert_eq!(read(&[], None).cursor, None);
}

#[test]
fn a_fork_is_no_damage() {
    let reading = read(&fixture("fork_child"), None);
    assert!(
        reading.connected && reading.damaged_lines == 0,
        "{}",
        told(&reading)
    );
}

fn line(ordinal: Option<u64>, kind: &str, payload: &Value) -> Vec<u8> {
    let mut line = json!({"timestamp": "t", "type": kind, "payload": payload});
    if let Some(ordinal) = ordinal {
        line["ordinal"] = ordinal.into();
    }
    line.to_string().into_bytes()
}

fn user(text: &str, kind: Option<&str>) -> Value {
    let mut message = json!({"type": "message", "role": "user",
        "content": [{"type": "input_text", "text": text}]});
    if let Some(kind) = kind {
        message["internal_chat_message_metadata_passthrough"] =
            json!({"content_item_kinds": [kind]});
    }
    message
}

/// Versions before lines were numbered, and before the CLI said whose words they are.
#[test]
fn lines_without_numbers() {
    let meta = line(
        None,
        "session_meta",
        &json!({"id": "x", "model_provider": "p"}),
    );
    let prompt = line(None, "response_item", &user("hello", None));
    let context = line(None, "response_item", &user("<environment_context>x", None));
    let first = read(&[meta, context, prompt.clone()], None);
    assert!(first.connected);
    assert_eq!(first.prompts, [text_mark("hello")]);
    assert_eq!(first.cursor.as_deref(), Some("- p"));
    let second = read(std::slice::from_ref(&prompt), first.cursor.as_deref());
    assert!(second.connected && second.cursor.as_deref() == Some("- p"));
    // A newer version begins to number.
    let numbered = [
        line(Some(9), "new_thing", &json!(null)),
        line(Some(10), "response_item", &user("hello", None)),
    ];
    let third = read(&numbered, first.cursor.as_deref());
    assert!(third.connected && third.cursor.as_deref() == Some("10 p"));
    // The other way round something else wrote it.
    assert!(!read(&[prompt], Some("10 p")).connected);
}

#[test]
fn whose_words_they_are() {
    let of = |text: &str, kind: Option<&str>| {
        let lines = [line(Some(5), "response_item", &user(text, kind))];
        read(&lines, Some("4")).entries
    };
    let prompt = |sent: &str, text: &str| {
        vec![ReadEntry::Prompt {
            id: text_mark(sent),
            text: text.into(),
            at: None,
        }]
    };
    let looks = "<environment_context> is what I ask about";
    assert_eq!(of(looks, Some("user.text")), prompt(looks, looks));
    assert_eq!(of(looks, None), [ReadEntry::Synthetic]);
    assert_eq!(of("x", Some("skills.selected")), [ReadEntry::Synthetic]);
    assert_eq!(of("x", Some("unknown")), prompt("x", "x"));
    let sent = "<rejoin>\nStanding instructions of the product you work in:\nx\n</rejoin>\nuse $\u{2060}skill <\\rejoin>";
    assert_eq!(
        of(sent, Some("user.text")),
        prompt(sent, "use $skill <rejoin>")
    );
}

#[test]
fn turns_that_were_taken_back_are_not_replayed() {
    let said = |n: u64, text: &str| line(Some(n), "response_item", &user(text, None));
    let back = |n: u64, turns: u64| {
        line(
            Some(n),
            "event_msg",
            &json!({"type": "thread_rolled_back", "num_turns": turns}),
        )
    };
    let one = read(&[said(5, "a"), said(6, "b"), back(7, 1)], Some("4"));
    assert_eq!(
        (one.entries.len(), one.prompts.len(), one.connected),
        (1, 2, true)
    );
    let all = read(&[said(5, "a"), back(6, 2)], Some("4"));
    assert!(!all.connected);
}

/// What the sandbox stopped is in no event, neither in the stream nor here.
#[test]
fn what_the_stream_says_nothing_of_is_denied() {
    let call = |n: u64, id: &str, cmd: &str| {
        let arguments = json!({"cmd": cmd}).to_string();
        let call = json!({"type": "function_call", "call_id": id, "name": "exec_command", "arguments": arguments});
        line(Some(n), "response_item", &call)
    };
    let output = |n: u64, id: &str, text: &str| {
        let output = json!({"type": "function_call_output", "call_id": id, "output": text});
        line(Some(n), "response_item", &output)
    };
    let item = |n: u64, id: &str| {
        let item =
            json!({"type": "item_completed", "item": {"type": "CommandExecution", "id": id}});
        line(Some(n), "event_msg", &item)
    };
    let lines = [
        call(5, "a", "touch x"),
        output(
            6,
            "a",
            "Wall time: 0\nProcess exited with code 1\nOutput:\nRead-only file system",
        ),
        call(7, "b", "false"),
        item(8, "b"),
        output(9, "b", "Process exited with code 1\n"),
        call(10, "c", "sleep 9"),
        output(11, "c", "Process running with session ID 7"),
        call(12, "d", "rm x"),
        output(
            13,
            "d",
            "exec_command failed: `rm x` rejected: policy forbids it",
        ),
        call(14, "e", "ls"),
        output(15, "e", "unsupported call: exec_command"),
        call(16, "f", "open"),
        call(17, "g", "interrupted"),
        output(18, "g", "Wall time: 0.9 seconds\naborted by user"),
    ];
    let reading = read(&lines, Some("4"));
    let denied: Vec<_> = reading.denied.iter().map(|d| d.input.as_str()).collect();
    assert_eq!(denied, ["touch x", "rm x", "ls"]);
    assert_eq!(reading.orphaned_calls, 1);
    let begun: Vec<_> = reading.begun.iter().map(|n| n.subject.as_str()).collect();
    assert_eq!(begun, ["open", "interrupted"]);
}

/// A command that ran may print the words of a refusal: git does when a push is rejected.
#[test]
fn a_command_that_prints_rejected_has_run() {
    let ran = |n: u64, id: &str, code: u8, printed: &str| {
        let call = json!({"type": "function_call", "call_id": id, "name": "exec_command", "arguments": "{\"cmd\":\"git push\"}"});
        let text = format!(
            "Chunk ID: 7fce7c\nWall time: 0.1 seconds\nProcess exited with code {code}\nOutput:\n{printed}"
        );
        let output = json!({"type": "function_call_output", "call_id": id, "output": text});
        let item =
            json!({"type": "item_completed", "item": {"type": "CommandExecution", "id": id}});
        [
            line(Some(n), "response_item", &call),
            line(Some(n + 1), "event_msg", &item),
            line(Some(n + 2), "response_item", &output),
        ]
    };
    let mut lines = vec![];
    lines.extend(ran(5, "a", 1, " ! [rejected] main -> main (fetch first)"));
    lines.extend(ran(8, "b", 0, "the patch was rejected by user ada"));
    lines.extend(ran(11, "c", 0, "reject command"));
    let reading = read(&lines, Some("4"));
    assert_eq!(reading.denied, []);
    let tools = reading
        .entries
        .iter()
        .filter(|entry| matches!(entry, ReadEntry::Did(_)));
    assert_eq!(tools.count(), 3, "{:?}", reading.entries);
}

mod any {
    use proptest::prelude::*;

    use super::{fixture, names, read};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn bytes_never_panic(lines in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..20)) {
            read(&lines, Some("7 x"));
            read(&lines, None);
        }

        #[test]
        fn changed_sessions_never_panic(which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>(), place in any::<prop::sample::Index>()) {
            let names = names();
            let mut lines = fixture(&names[which.index(names.len())]);
            let at = at.index(lines.len());
            let place = place.index(lines[at].len());
            lines[at][place] = byte;
            read(&lines, None);
            lines.remove(at);
            lines.reverse();
            read(&lines, Some("18446744073709551615 p"));
        }
    }
}
