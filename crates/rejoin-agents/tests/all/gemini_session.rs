//! Session files as the CLI wrote them: whole, turn by turn, mended and damaged.

use rejoin_agents::{ReadEntry, Reading, adapter};
use serde_json::{Value, json};

use crate::did;

fn fixture(name: &str) -> Vec<Vec<u8>> {
    let root = env!("CARGO_MANIFEST_DIR");
    let path = format!("{root}/fixtures/gemini/0.61.0/sessions/{name}.jsonl");
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    lines(&bytes)
}

fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    text.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect()
}

fn read(lines: &[Vec<u8>], cursor: Option<&str>) -> Reading {
    let mut reader = adapter("gemini").unwrap().reader(cursor);
    for line in lines {
        reader.line(line);
    }
    reader.finish()
}

fn told(reading: &Reading) -> String {
    let short = |text: &str| text.chars().take(50).collect::<String>().replace('\n', " ");
    let mut lines: Vec<String> = reading
        .entries
        .iter()
        .map(|entry| match entry {
            ReadEntry::Prompt { id, text, .. } => format!("prompt {} {}", &id[..6], short(text)),
            ReadEntry::Answer { text, .. } => format!("answer {}", short(text)),
            ReadEntry::Did(note) => did(note),
            ReadEntry::Synthetic => "synthetic".into(),
        })
        .collect();
    lines.push(format!(
        "{:?} connected {} damaged {} orphaned {} compacted {} repeats {} prompts {} cursor {}",
        reading.session.as_deref().map(|id| &id[..8]),
        reading.connected,
        reading.damaged_lines,
        reading.orphaned_calls,
        reading.compacted,
        reading.repeats,
        reading.prompts.len(),
        reading
            .cursor
            .as_deref()
            .unwrap_or("-")
            .split(' ')
            .next()
            .unwrap()
    ));
    lines.join("\n")
}

#[test]
fn whole_sessions() {
    let names = [
        "simple-turn.session",
        "tool-turn.session",
        "resumed.session",
        "same-id-two-files/session-2026-11-15T08-18-33b024d5",
        "same-id-two-files/session-2026-11-15T08-19-33b024d5",
        "session-2026-11-15T08-44-c1497389",
        "kg.killed.session",
        "kt.killed.session",
        "compression.session",
        "loop-detected.session",
        "race-headerless.session",
    ];
    let shown: Vec<String> = names
        .iter()
        .map(|name| format!("== {name}\n{}", told(&read(&fixture(name), None))))
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

/// How often this text stands in the lines so far, which a turn ends with.
fn turns(name: &str, answers: &[&str]) -> Vec<Vec<Vec<u8>>> {
    let mut rest = fixture(name);
    let mut parts = vec![];
    for answer in answers {
        let said = format!("\"content\":\"{answer}\"");
        let is_it = |line: &Vec<u8>| String::from_utf8_lossy(line).contains(&said);
        // And the line that says when.
        let end = rest.iter().position(is_it).unwrap() + 2;
        parts.push(rest.drain(..end).collect());
    }
    assert_eq!(rest.len(), 0, "{name}");
    parts
}

/// Every resume writes the whole list again: each turn is read alone, follows from the one before
/// and holds one prompt and its answer.
#[test]
fn turn_by_turn() {
    for (name, answers) in [
        ("resumed.session", &["all done", "second answer"][..]),
        (
            "same-id-two-files/session-2026-11-15T08-18-33b024d5",
            &["Hi there", "later answer"],
        ),
    ] {
        let mut cursor = None::<String>;
        for (turn, answer) in turns(name, answers).iter().zip(answers) {
            let reading = read(turn, cursor.as_deref());
            let [prompt] = &reading.prompts[..] else {
                panic!("{name}: {}", told(&reading))
            };
            assert_eq!(
                reading.confirms(prompt, answer),
                Ok(()),
                "{name}: {}",
                told(&reading)
            );
            cursor = reading.cursor;
        }
        let whole = read(&fixture(name), None);
        assert_eq!(whole.cursor, cursor, "{name}");
    }
}

/// The CLI replaces an older history by a summary of its own: no prompt of anybody's.
#[test]
fn a_compacted_session_is_read_on() {
    let lines = fixture("compression.session");
    let (mut cursor, mut from) = (None::<String>, 0);
    for (to, compacted) in [(6, false), (16, true), (26, true), (36, true), (46, true)] {
        let reading = read(&lines[from..to], cursor.as_deref());
        let [prompt] = &reading.prompts[..] else {
            panic!("{from}..{to}: {}", told(&reading))
        };
        let answer = reading.entries.last().unwrap();
        let ReadEntry::Answer { text, .. } = answer else {
            panic!("{answer:?}")
        };
        assert_eq!(reading.confirms(prompt, text), Ok(()), "{}", told(&reading));
        assert_eq!(reading.compacted, compacted, "{from}..{to}");
        (from, cursor) = (to, reading.cursor);
    }
}

/// A list that does not begin with what was confirmed is somebody else's.
#[test]
fn another_history_is_not_connected() {
    let parts = turns("resumed.session", &["all done", "second answer"]);
    let other = read(&fixture("simple-turn.session"), None).cursor;
    let reading = read(&parts[1], other.as_deref());
    assert!(!reading.connected);
    assert_eq!(
        reading.prompts.len(),
        2,
        "whose words are in it is known all the same"
    );
    for cursor in ["", "x", "1 x", "0"] {
        assert!(!read(&parts[1], Some(cursor)).connected, "{cursor:?}");
    }
    let nothing = read(&[], other.as_deref());
    assert_eq!((nothing.connected, nothing.cursor), (true, other));
}

/// Two that wrote at once: both prompts are known, and nothing is confirmed.
#[test]
fn two_writers_are_seen() {
    let lines = fixture("session-2026-11-15T08-44-c1497389");
    let base = read(&lines[..6], None);
    let both = read(&lines[6..], base.cursor.as_deref());
    assert!(both.prompts.len() >= 2, "{}", told(&both));
    let mark = &both.prompts[0];
    assert!(
        both.confirms(mark, "w0 w1 w2 w3 w4 w5 w6 w7 w8 w9")
            .is_err()
    );
}

#[test]
fn lines_of_another_session_are_not_connected() {
    let mut mixed = fixture("simple-turn.session");
    mixed.extend(fixture("tool-turn.session"));
    assert!(!read(&mixed, None).connected);
}

#[test]
fn damage_is_counted() {
    let mut cut = fixture("simple-turn.session");
    let half = cut[4].len() / 2;
    cut[4].truncate(half);
    let reading = read(&cut, None);
    assert_eq!(reading.damaged_lines, 1);
    assert!(reading.confirms(&reading.prompts[0], "Hi there").is_err());
}

fn message(id: &str, kind: &str, content: &Value) -> Value {
    json!({"id": id, "type": kind, "content": content})
}

fn of(values: &[Value]) -> Vec<Vec<u8>> {
    values.iter().map(|v| v.to_string().into_bytes()).collect()
}

#[test]
fn what_was_taken_back_is_not_there() {
    let said = [
        message("1", "user", &json!([{"text": "one"}])),
        message("2", "gemini", &json!("two")),
        message("3", "user", &json!("three")),
        json!({"$rewindTo": "3"}),
        message("4", "user", &json!("four")),
        json!({"$new": 1}),
        message("4", "user", &json!("four again")),
        message("5", "info", &json!("not said")),
    ];
    let header = json!({"sessionId": "s", "projectHash": "h"});
    assert!(
        !read(&of(&said), None).connected,
        "not a session without its first line"
    );
    let reading = read(&of(&[&[header][..], &said].concat()), None);
    assert!(reading.connected);
    let texts: Vec<String> = reading
        .entries
        .iter()
        .map(|entry| match entry {
            ReadEntry::Prompt { text, .. } | ReadEntry::Answer { text, .. } => text.clone(),
            ReadEntry::Did(_) | ReadEntry::Synthetic => String::new(),
        })
        .collect();
    assert_eq!(texts, ["one", "two", "four again"]);
    // What is taken back may be part of what was confirmed.
    let later = read(&of(&[json!({"$rewindTo": "3"})]), reading.cursor.as_deref());
    assert!(!later.connected);
}

#[test]
fn what_rejoin_added_is_not_the_message() {
    let prompt = |content: &str| {
        let reading = read(
            &of(&[message("1", "user", &json!([{"text": content}]))]),
            None,
        );
        reading.entries
    };
    let text = "<rejoin>What follows the name of this command is the message.\n\n\
                /rejoin-1a2b3c4d </rejoin>\n<rejoin>\nStanding instructions of the product you work in:\nx\n</rejoin>\n\n/clear @x <\\rejoin>";
    let [ReadEntry::Prompt { text, .. }] = &prompt(text)[..] else {
        panic!()
    };
    assert_eq!(text, "/clear @x <rejoin>");
    for own in [
        "System: Please continue.",
        "System: Potential loop detected. Details",
    ] {
        assert_eq!(prompt(own), [ReadEntry::Synthetic]);
    }
    assert_eq!(prompt("<session_context>\nx\n</session_context>"), []);
}

/// What the CLI would replay, by its own rules, as ids of results in order.
fn replayed(lines: &[Vec<u8>]) -> Vec<String> {
    let mut list: Vec<Value> = vec![];
    for line in lines {
        let record: Value = serde_json::from_slice(line).unwrap();
        if let Some(all) = record["$set"]["messages"].as_array() {
            list.clone_from(all);
        } else if let Some(id) = record["id"].as_str() {
            match list.iter_mut().find(|m| m["id"] == id) {
                Some(known) => *known = record,
                None => list.push(record),
            }
        }
    }
    let ids = |parts: &Value| -> Vec<String> {
        let parts = parts.as_array().into_iter().flatten();
        let ids = parts.filter_map(|part| part["functionResponse"]["id"].as_str());
        ids.map(str::to_owned).collect()
    };
    let mut results = vec![];
    for message in &list {
        for call in message["toolCalls"].as_array().into_iter().flatten() {
            results.extend(ids(&call["result"]));
        }
        results.extend(ids(&message["content"]));
    }
    results
}

/// Each result is replayed once, and nothing that was said is lost.
#[test]
fn a_session_with_tools_is_mended() {
    for name in ["tool-turn.session", "resumed.session"] {
        let before = fixture(name);
        let reading = read(&before, None);
        assert!(reading.repeats, "{name}");
        assert!(replayed(&before).len() > 2, "{name}");
        let bytes = before.join(&b'\n');
        let more = adapter("gemini")
            .unwrap()
            .capabilities()
            .repair
            .unwrap()
            .repair(&bytes)
            .unwrap();
        let mut after = before.clone();
        after.extend(lines(&more));
        let mended = read(&after, None);
        assert!(!mended.repeats, "{name}");
        assert_eq!(replayed(&after).len(), 2, "{name}");
        assert_eq!(
            (&mended.entries, &mended.cursor),
            (&reading.entries, &reading.cursor)
        );
        assert_eq!(mended.orphaned_calls, 0);
        assert_eq!(
            adapter("gemini")
                .unwrap()
                .capabilities()
                .repair
                .unwrap()
                .repair(&after.join(&b'\n')),
            None
        );
    }
    let simple = fixture("simple-turn.session").join(&b'\n');
    assert_eq!(
        adapter("gemini")
            .unwrap()
            .capabilities()
            .repair
            .unwrap()
            .repair(&simple),
        None
    );
    assert_eq!(
        adapter("gemini")
            .unwrap()
            .capabilities()
            .repair
            .unwrap()
            .repair(b"not json"),
        None
    );
}

#[test]
fn a_call_without_its_result_is_an_orphan() {
    let call = json!([{"functionCall": {"id": "c", "name": "x", "args": {}}}]);
    let reading = read(&of(&[message("1", "gemini", &call)]), None);
    assert_eq!((reading.orphaned_calls, reading.repeats), (1, false));
}

mod any {
    use proptest::prelude::*;

    use super::{fixture, read};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn bytes_never_panic(lines in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..20)) {
            read(&lines, Some("1 x"));
            read(&lines, None);
            rejoin_agents::adapter("gemini").unwrap().capabilities().repair.unwrap().repair(&lines.join(&b'\n'));
        }

        #[test]
        fn changed_sessions_never_panic(
            name in prop::sample::select(vec!["resumed.session", "compression.session", "loop-detected.session"]),
            at in any::<prop::sample::Index>(), byte in any::<u8>(), place in any::<prop::sample::Index>(),
        ) {
            let mut lines = fixture(name);
            let at = at.index(lines.len());
            let place = place.index(lines[at].len());
            lines[at][place] = byte;
            let cursor = read(&lines, None).cursor;
            rejoin_agents::adapter("gemini").unwrap().capabilities().repair.unwrap().repair(&lines.join(&b'\n'));
            lines.remove(at);
            read(&lines, cursor.as_deref());
            lines.reverse();
            read(&lines, cursor.as_deref());
        }
    }
}
