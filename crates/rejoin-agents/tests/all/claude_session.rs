//! Session files as both versions wrote them, whole, turn by turn and damaged.

use rejoin_agents::{ProcessEnd, ReadEntry, Reading, adapter};
use rejoin_core::Outcome;

use crate::did;

fn fixture(name: &str) -> Vec<Vec<u8>> {
    let path = format!("{}/fixtures/claude/{name}", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    bytes
        .strip_suffix(b"\n")
        .unwrap_or(&bytes)
        .split(|b| *b == b'\n')
        .map(<[u8]>::to_vec)
        .collect()
}

fn read(lines: &[Vec<u8>], cursor: Option<&str>) -> Reading {
    let mut reader = adapter("claude").unwrap().reader(cursor);
    for line in lines {
        reader.line(line);
    }
    reader.finish()
}

fn told(reading: &Reading) -> String {
    let short = |text: &str| text.chars().take(40).collect::<String>().replace('\n', " ");
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
    let cursor = reading.cursor.as_deref().unwrap_or("-");
    let cursor: Vec<&str> = cursor
        .split(' ')
        .map(|id| id.get(..6).unwrap_or(id))
        .collect();
    lines.push(format!(
        "connected {} damaged {} orphaned {} compacted {} cursor {}",
        reading.connected,
        reading.damaged_lines,
        reading.orphaned_calls,
        reading.compacted,
        cursor.join(" ")
    ));
    lines.join("\n")
}

#[test]
fn whole_sessions() {
    let names = [
        "2.1.197/sessions/b731fd0c-68de-4452-a02a-ef7d040b8069.jsonl",
        "2.1.197/sessions/after_resume_b731fd0c-68de-4452-a02a-ef7d040b8069.jsonl",
        "2.1.197/sessions/compacted_60268112-9f10-4bd1-a582-2052fb502b2c.jsonl",
        "2.1.197/sessions/concurrent_7b3d6df1-0a76-49ac-903e-6f3c7b315174.jsonl",
        "2.1.197/sessions/forked_358438f2-01a2-47c3-a829-a97efb27ab57.jsonl",
        "2.1.197/sessions/killed_bash_611c635e-2b13-4548-94f9-4fe03338281e.jsonl",
        "2.1.197/sessions/killed_streaming_1d306be4-db71-483e-adf0-b22855180822.jsonl",
        "2.1.197/sessions/killed_streaming_after_tool_e372a67c-250c-4cbb-8dc0-0c9d572bb8c2.jsonl",
        "2.1.197/sessions/deferred_069e6fb0-c22b-4d41-b7f6-935ed9c61bb1.jsonl",
        "2.1.197/sessions/ask_deferred_8bfa948a-b681-4dc3-a601-a6de840ef3d2.jsonl",
        "2.1.197/sessions/subagent/934bb01a-4544-46b4-9af9-57621e6d98de.jsonl",
        "2.1.197/sessions/subagent/934bb01a-4544-46b4-9af9-57621e6d98de/subagents/agent-ae1fdcdd1e74ac2bb.jsonl",
        "2.1.197/sessions/seven_turns.jsonl",
        "2.1.325/sessions/seven_turns.jsonl",
        "2.1.197/sessions/compacting.jsonl",
        "2.1.325/sessions/compacting.jsonl",
    ];
    let shown: Vec<String> = names
        .iter()
        .map(|name| format!("== {name}\n{}", told(&read(&fixture(name), None))))
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

/// Lines in the file after each turn, as captured.
const TURNS: &[(&str, &[usize])] = &[
    (
        "2.1.197/sessions/seven_turns.jsonl",
        &[7, 21, 31, 41, 47, 52, 60],
    ),
    (
        "2.1.325/sessions/seven_turns.jsonl",
        &[22, 40, 68, 83, 91, 98, 110],
    ),
    (
        "2.1.197/sessions/compacting.jsonl",
        &[7, 13, 23, 29, 43, 49],
    ),
    (
        "2.1.325/sessions/compacting.jsonl",
        &[22, 30, 60, 67, 105, 113],
    ),
];

/// Tools, parallel tools, sub-agents, thinking and compaction over several resumes: each turn is
/// read alone, follows from the one before, and holds one prompt and its answer.
#[test]
fn turn_by_turn() {
    for (name, ends) in TURNS {
        let lines = fixture(name);
        assert_eq!(lines.len(), *ends.last().unwrap(), "{name}");
        let (mut from, mut cursor, mut entries) = (0, None::<String>, vec![]);
        for &to in *ends {
            let reading = read(&lines[from..to], cursor.as_deref());
            let prompts: Vec<&String> = reading
                .entries
                .iter()
                .filter_map(|e| match e {
                    ReadEntry::Prompt { id, .. } => Some(id),
                    ReadEntry::Answer { .. } | ReadEntry::Did(_) | ReadEntry::Synthetic => None,
                })
                .collect();
            let answer: String = reading
                .entries
                .iter()
                .filter_map(|e| match e {
                    ReadEntry::Answer { text, .. } => Some(text.as_str()),
                    ReadEntry::Prompt { .. } | ReadEntry::Did(_) | ReadEntry::Synthetic => None,
                })
                .collect();
            assert_eq!(prompts.len(), 1, "{name} {from}..{to}: {}", told(&reading));
            assert!(!answer.is_empty());
            assert_eq!(
                reading.confirms(prompts[0], &answer),
                Ok(()),
                "{name} {from}..{to}"
            );
            entries.extend(reading.entries);
            (from, cursor) = (to, reading.cursor);
        }
        let whole = read(&lines, None);
        assert_eq!(whole.entries, entries, "{name}");
        assert_eq!(whole.cursor, cursor, "{name}");
    }
}

/// What the parser took from the stream of a turn is what the reader finds in the session.
#[test]
fn streams_and_sessions_agree() {
    let turns = [
        ("2.1.325", "simple_turn", 0),
        ("2.1.325", "parallel_turn", 1),
        ("2.1.325", "background_agents_turn", 2),
        ("2.1.325", "edit_turn", 3),
        ("2.1.325", "thinking_turn", 4),
        ("2.1.325", "resume_turn", 5),
        ("2.1.325", "tool_turn", 6),
        ("2.1.197", "parallel_turn", 1),
        ("2.1.197", "edit_turn", 3),
        ("2.1.197", "thinking_turn", 4),
    ];
    for (version, stream, at) in turns {
        let name = format!("{version}/sessions/seven_turns.jsonl");
        let (_, ends) = TURNS.iter().find(|(of, _)| *of == name).unwrap();
        let lines = fixture(&name);
        let from = if at == 0 { 0 } else { ends[at - 1] };
        let cursor = (at > 0)
            .then(|| read(&lines[..from], None).cursor)
            .flatten();
        let reading = read(&lines[from..ends[at]], cursor.as_deref());
        let Some(ReadEntry::Prompt { id, .. }) = reading.entries.first() else {
            panic!("{}", told(&reading))
        };
        let mut parser = adapter("claude").unwrap().parser();
        for line in fixture(&format!("{version}/{stream}.stdout.jsonl")) {
            parser.line(&line);
        }
        let ran = parser.finish(&ProcessEnd {
            code: Some(0),
            ..ProcessEnd::default()
        });
        assert_eq!(ran.outcome, Outcome::Succeeded, "{version} {stream}");
        assert_eq!(
            reading.confirms(id, &ran.text),
            Ok(()),
            "{version} {stream}"
        );
    }
}

/// A turn that hangs off anything but the confirmed end has dropped what was said since.
#[test]
fn a_branch_from_further_back_is_not_connected() {
    for (name, ends) in TURNS {
        let lines = fixture(name);
        let confirmed = read(&lines[..ends[1]], None).cursor;
        let skipped = read(&lines[ends[2]..ends[3]], confirmed.as_deref());
        assert!(!skipped.connected, "{name}");
        let unknown = read(
            &lines[ends[0]..ends[1]],
            Some("00000000-0000-4000-8000-000000000000"),
        );
        assert!(!unknown.connected, "{name}");
    }
    let name = "2.1.197/sessions/concurrent_7b3d6df1-0a76-49ac-903e-6f3c7b315174.jsonl";
    let lines = fixture(name);
    let base = read(&lines[..7], None).cursor;
    let reading = read(&lines[7..], base.as_deref());
    assert!(reading.connected);
    let first = "aab356";
    assert!(
        !told(&reading).contains(first),
        "the lost branch is not replayed: {}",
        told(&reading)
    );
    // But whose words are in the file is known, on whichever branch.
    assert_eq!(reading.prompts.len(), 2);
}

/// Until 2.1.20 a resumed CLI writes the prompt of the turn before again, in parts and under other ids,
/// and all that followed. Nobody said it twice.
#[test]
fn what_is_written_again_was_said_once() {
    let older = fixture("1.0.128/sessions/three_turns.jsonl");
    said_once(&[0..2, 2..4, 4..9].map(|turn| older[turn].to_vec()));
    let lines = fixture("2.1.20/sessions/three_turns.jsonl");
    let turns = [0..3, 3..6, 6..12].map(|turn| lines[turn].to_vec());
    said_once(&turns);
    // A version that does not write again: what branches off there was said.
    let newer = |line: &Vec<u8>| {
        let text = String::from_utf8(line.clone()).unwrap();
        text.replace("2.1.20", "2.1.31").into_bytes()
    };
    let lines_of_newer: Vec<Vec<u8>> = lines.iter().map(newer).collect();
    let second = read(&lines_of_newer[..6], None).cursor;
    let third = read(&lines_of_newer[6..], second.as_deref());
    assert_eq!((third.connected, third.prompts.len()), (false, 2));
    // Killed before it had written the answer again: what follows does not follow from everything.
    let second = read(&lines[..6], None).cursor;
    let mut short = turns[2].clone();
    short.remove(3);
    assert!(!read(&short, second.as_deref()).connected);
    // Killed after that, and before anything else was said: nothing was.
    let nothing = read(&turns[2][..4], second.as_deref());
    assert_eq!((nothing.connected, &nothing.entries[..]), (true, &[][..]));
    let later = read(&turns[2][4..], nothing.cursor.as_deref());
    assert!(later.connected);
    // Killed in the middle of it: nothing was said either, and the next one writes it all.
    let part = read(&turns[2][..3], second.as_deref());
    assert_eq!((part.connected, part.said()), (true, vec![]));
    let again = [&turns[2][..3], &turns[2]].concat();
    assert_eq!(read(&again, second.as_deref()).said().len(), 2);
    // Whoever says something later is heard, whatever their clock and their gateway say.
    let mut later = turns[2][4..].to_vec();
    for line in &mut later {
        let text = String::from_utf8(line.clone()).unwrap();
        let text = text.replace("18:44:02.627", "18:44:01.215");
        let text = text.replace("18:44:02.662", "18:44:01.242");
        let text = text.replace("ok: hello 3", "ok: hello 2");
        *line = text.replace("ee00000041", "ee0000003f").into();
    }
    let said = read(&later, nothing.cursor.as_deref()).said();
    assert_eq!(said.len(), 2, "{said:?}");
}

fn said_once(turns: &[Vec<Vec<u8>>]) {
    let mut cursor = None::<String>;
    for (n, turn) in turns.iter().enumerate() {
        let reading = read(turn, cursor.as_deref());
        let said: Vec<String> = reading.said().into_iter().map(|said| said.text).collect();
        let n = n + 1;
        assert_eq!(said, [format!("hello {n}"), format!("ok: hello {n}")]);
        assert!(reading.connected, "{n}");
        assert_eq!(reading.prompts.len(), 1, "{n}");
        cursor = reading.cursor;
    }
    let whole = read(&turns.concat(), None);
    assert_eq!(whole.cursor, cursor);
    let said: Vec<String> = whole.said().into_iter().map(|said| said.text).collect();
    let all = [
        "hello 1",
        "ok: hello 1",
        "hello 2",
        "ok: hello 2",
        "hello 3",
        "ok: hello 3",
    ];
    assert_eq!(said, all);
}

#[test]
fn nothing_added_keeps_the_cursor() {
    let reading = read(&[], Some("a b"));
    assert_eq!(
        (reading.connected, reading.cursor.as_deref()),
        (true, Some("a b"))
    );
    assert_eq!(read(&[], None).cursor, None);
    assert_eq!(read(&[], Some("")).entries, []);
}

#[test]
fn damage_is_counted() {
    let name = "2.1.197/sessions/after_resume_b731fd0c-68de-4452-a02a-ef7d040b8069.jsonl";
    let lines = fixture(name);
    let mut cut = lines.clone();
    let answer = cut.len() - 3;
    cut[answer].truncate(100);
    let reading = read(&cut[..=answer], None);
    assert_eq!(reading.damaged_lines, 1);
    assert!(reading.confirms("ffcfc1", "Bash done.").is_err());

    let mut garbage = lines.clone();
    garbage[5] = b"\xff\x00 not json".to_vec();
    let reading = read(&garbage, None);
    assert_eq!((reading.damaged_lines, reading.connected), (1, false));

    // The CLI glues its first line to a fragment without a newline.
    let mut glued = lines.clone();
    let mut fragment = lines[5][..50].to_vec();
    fragment.extend_from_slice(&lines[7]);
    glued[7] = fragment;
    assert_eq!(read(&glued, None).damaged_lines, 1);

    let mut without_result = lines.clone();
    let result = lines
        .iter()
        .position(|l| String::from_utf8_lossy(l).contains("\"tool_result\""))
        .unwrap();
    without_result.remove(result);
    assert!(!read(&without_result, None).connected);
}

#[test]
fn a_parallel_call_without_its_result_is_an_orphan() {
    for name in [
        "2.1.197/sessions/seven_turns.jsonl",
        "2.1.325/sessions/seven_turns.jsonl",
    ] {
        let mut lines = fixture(name);
        let results: Vec<usize> = (0..lines.len())
            .filter(|&at| String::from_utf8_lossy(&lines[at]).contains("\"tool_use_id\":"))
            .filter(|&at| String::from_utf8_lossy(&lines[at]).contains("\"type\":\"user\""))
            .collect();
        lines.remove(results[0]);
        assert_eq!(read(&lines, None).orphaned_calls, 1, "{name}");
    }
}

#[test]
fn what_rejoin_added_is_not_the_message() {
    let line = |content: serde_json::Value| {
        let line = serde_json::json!({
            "type": "user", "uuid": "u-1", "parentUuid": null, "isSidechain": false,
            "message": {"role": "user", "content": content},
        });
        read(&[line.to_string().into_bytes()], None).entries
    };
    let text = |t: &str| serde_json::json!({"type": "text", "text": t});
    let prompt = |t: &str| {
        vec![ReadEntry::Prompt {
            id: "u-1".into(),
            text: t.into(),
            at: None,
        }]
    };
    let end = text("<rejoin>end of message</rejoin>");
    let context = text("<rejoin>\nStanding instructions of the product you work in:\nx\n</rejoin>");
    assert_eq!(
        line(serde_json::json!([
            context,
            text("/clear @x <\\rejoin>"),
            end
        ])),
        prompt("/clear @x <rejoin>")
    );
    assert_eq!(
        line(serde_json::json!([text("\n/clear \u{2060}@x")])),
        prompt("/clear @x")
    );
    assert_eq!(
        line(serde_json::json!("typed by hand")),
        prompt("typed by hand")
    );
    for own in [
        "<command-name>/compact</command-name>",
        "<task-notification>\n",
        "<local-command-stdout>x",
    ] {
        assert_eq!(line(serde_json::json!(own)), [ReadEntry::Synthetic]);
    }
    assert_eq!(
        line(serde_json::json!([text("[Request interrupted by user]")])),
        [ReadEntry::Synthetic]
    );
}

mod any {
    use proptest::prelude::*;

    use super::{fixture, read};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn bytes_never_panic(lines in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..20)) {
            read(&lines, Some("x y"));
            read(&lines, None);
        }

        #[test]
        fn changed_sessions_never_panic(at in any::<prop::sample::Index>(), byte in any::<u8>(), place in any::<prop::sample::Index>()) {
            let mut lines = fixture("2.1.197/sessions/seven_turns.jsonl");
            let at = at.index(lines.len());
            let place = place.index(lines[at].len());
            lines[at][place] = byte;
            read(&lines, None);
            lines.remove(at);
            read(&lines, None);
            lines.reverse();
            read(&lines, Some("x"));
        }
    }
}

/// 2.1.325, left at its terminal: what it cost so far, the newest note counts.
#[test]
fn a_terminal_interface_says_what_the_session_cost() {
    let note = |total: &str, unknown: bool| {
        format!(r#"{{"type":"cost-state","sessionId":"s","totalCostUSD":{total},"hasUnknownModelCost":{unknown}}}"#)
            .into_bytes()
    };
    let total = |lines: &[Vec<u8>]| read(lines, Some("a")).total.map(|m| m.0);
    assert_eq!(
        total(&[note("0.5", false), note("0.00286", false)]),
        Some(2860)
    );
    assert_eq!(total(&[note("0.5", true)]), None);
    for odd in ["-1", "null", "\"x\"", "1e999"] {
        assert_eq!(total(&[note(odd, false)]), None, "{odd}");
    }
    let reading = read(&[note("0.5", false)], Some("a"));
    assert!(reading.whole().is_ok() && reading.only_added && reading.entries.is_empty());
}
