//! Captured streams of both versions: their events and what the run came to.

use std::fmt::Write as _;

use rejoin_agents::{EndCause, ProcessEnd, RunReport, adapter};
use rejoin_core::{EventBody, SessionId};

fn folder(version: &str) -> String {
    format!("{}/fixtures/claude/{version}", env!("CARGO_MANIFEST_DIR"))
}

fn streams(version: &str) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder(version))
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".stdout.jsonl").map(str::to_owned))
        .collect();
    names.sort();
    names
}

fn bytes(version: &str, name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/{name}.stdout.jsonl", folder(version))).unwrap()
}

fn run(bytes: &[u8], end: &ProcessEnd) -> (Vec<EventBody>, Vec<String>, RunReport) {
    let mut parser = adapter("claude").unwrap().parser();
    let (mut events, mut answers) = (vec![], vec![]);
    for line in bytes.split(|b| *b == b'\n') {
        events.extend(parser.line(line));
        answers.extend(parser.says().into_iter().map(|say| say.line));
        for asked in parser.asked() {
            // What was put off is not answered by this process any more.
            let Some(reply) = parser.reply(&asked.call_id, None) else {
                continue;
            };
            events.push(EventBody::asked(&asked, None));
            answers.push(reply.line);
            events.push(EventBody::Answered {
                id: asked.call_id,
                question_id: None,
                decision: "deny".into(),
                message: reply.message,
                answers: std::collections::BTreeMap::new(),
                by: None,
            });
        }
    }
    (events, answers, parser.finish(end))
}

/// The end each capture had: killed ones by a signal, the others by themselves.
fn end(name: &str) -> ProcessEnd {
    let killed = name.starts_with("killed") || name.starts_with("SIGTERM") || name == "SIGINT_slow";
    let failed =
        name.starts_with("api_error") || name == "unknown_session" || name == "SIGINT_sleep";
    ProcessEnd {
        code: (!killed).then_some(i32::from(failed)),
        signal: killed.then_some(9),
        ..ProcessEnd::default()
    }
}

fn told(version: &str, name: &str) -> String {
    let (events, answers, ran) = run(&bytes(version, name), &end(name));
    let mut out = format!("== {version} {name}\n");
    let mut deltas = String::new();
    for event in &events {
        if let EventBody::TextDelta { text } = event {
            deltas.push_str(text);
            continue;
        }
        let mut json = serde_json::to_value(event).unwrap();
        if json["type"] == "turn.started" {
            let count = json["tools"].as_array().unwrap().len();
            json["tools"] = format!("{count} tools").into();
        }
        let line: String = json.to_string().chars().take(260).collect();
        writeln!(out, "  {line}").unwrap();
    }
    if !deltas.is_empty() {
        writeln!(out, "  deltas: {deltas:?}").unwrap();
    }
    for answer in answers {
        writeln!(out, "  > {}", answer.trim_end()).unwrap();
    }
    writeln!(out, "  outcome {:?} refused {}", ran.outcome, ran.refused).unwrap();
    writeln!(out, "  text {:?}", ran.text).unwrap();
    let session = ran.session.as_ref().map(SessionId::as_str);
    writeln!(
        out,
        "  session {session:?} model {:?} version {:?}",
        ran.model, ran.version
    )
    .unwrap();
    writeln!(
        out,
        "  usage {:?} total {:?} context {:?}",
        ran.usage, ran.total, ran.context
    )
    .unwrap();
    for denied in &ran.denied {
        writeln!(
            out,
            "  denied {} {} {}",
            denied.tool,
            denied.id,
            denied.input.chars().take(80).collect::<String>()
        )
        .unwrap();
    }
    for note in &ran.trail {
        writeln!(out, "  tool {note:?}").unwrap();
    }
    writeln!(
        out,
        "  tools {} compacted {} unknown {}",
        ran.tools_run, ran.compacted, ran.unknown_lines
    )
    .unwrap();
    out
}

#[test]
fn streams_of_2_1_197() {
    let told: String = streams("2.1.197")
        .iter()
        .map(|name| told("2.1.197", name))
        .collect();
    insta::assert_snapshot!(told);
}

#[test]
fn streams_of_2_1_325() {
    let told: String = streams("2.1.325")
        .iter()
        .map(|name| told("2.1.325", name))
        .collect();
    insta::assert_snapshot!(told);
}

#[test]
fn every_line_of_the_captures_is_understood() {
    for version in ["2.1.197", "2.1.325"] {
        for name in streams(version) {
            let (events, _, ran) = run(&bytes(version, &name), &end(&name));
            let raw: Vec<_> = events.iter().filter(|e| e.kind() == "raw").collect();
            assert_eq!(
                (ran.unknown_lines, raw.len()),
                (0, 0),
                "{version} {name}: {raw:?}"
            );
        }
    }
}

/// C-34: sub-agents are counted; in the foreground 2.1.197 and 2.1.325 come to the same.
#[test]
fn tokens_of_sub_agents_count() {
    for version in ["2.1.197", "2.1.325"] {
        let (_, _, ran) = run(&bytes(version, "subagent_turn"), &end("subagent_turn"));
        let main = (20, 200, 6000);
        let sub = (20, 200, 7000);
        assert_eq!(
            (ran.usage.input, ran.usage.cache_write, ran.usage.cache_read),
            (main.0 + sub.0, main.1 + sub.1, main.2 + sub.2),
            "{version}"
        );
        assert_eq!(ran.usage.output, 50 + 1 + 25);
    }
}

#[test]
fn another_session_than_the_one_asked_for_is_refused() {
    let asked = ProcessEnd {
        asked_session: SessionId::new("other").ok(),
        ..end("simple_turn")
    };
    assert!(run(&bytes("2.1.197", "simple_turn"), &asked).2.refused);
    let id = "b731fd0c-68de-4452-a02a-ef7d040b8069";
    let same = ProcessEnd {
        asked_session: SessionId::new(id).ok(),
        ..end("simple_turn")
    };
    assert!(!run(&bytes("2.1.197", "simple_turn"), &same).2.refused);
}

#[test]
fn strange_lines_are_kept_as_they_are() {
    let strange: &[&[u8]] = &[
        b"plain words",
        b"\xff\xfe\x00",
        b"{\"type\":\"new_thing\",\"x\":1}",
        b"{\"type\":\"system\",\"subtype\":\"new_thing\"}",
        b"{\"type\":\"assistant\"}",
        b"[]",
        b"null",
        b"{\"type\":7}",
    ];
    let (events, _, ran) = run(&strange.join(&b'\n'), &ProcessEnd::default());
    assert!(events.iter().all(|e| e.kind() == "raw"));
    assert_eq!(ran.unknown_lines, strange.len() as u64);
}

#[test]
fn a_limit_says_when_it_ends() {
    let lines = br#"{"type":"system","subtype":"init","session_id":"s"}
{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1763218800,"rateLimitType":"five_hour"}}
{"type":"result","subtype":"success","is_error":true,"num_turns":1,"api_error_status":429,"result":"You have no more"}"#;
    let (events, _, ran) = run(
        lines,
        &ProcessEnd {
            code: Some(1),
            ..ProcessEnd::default()
        },
    );
    let notice = EventBody::warning("The five hour limit is reached, resets 2025-11-15 15:00 UTC.");
    assert!(events.contains(&notice), "{events:?}");
    let failure = ran.outcome.failure().unwrap();
    assert_eq!(failure.class, rejoin_core::Class::Quota);
    assert_eq!(
        failure.message,
        "You have no more, resets 2025-11-15 15:00 UTC"
    );
}

#[test]
fn requests_of_another_kind_get_an_error() {
    let line =
        br#"{"type":"control_request","request_id":"r1","request":{"subtype":"mcp_message"}}"#;
    let (_, answers, _) = run(line, &ProcessEnd::default());
    assert_eq!(answers.len(), 1);
    assert!(answers[0].contains(r#""subtype":"error""#) && answers[0].contains("r1"));
}

#[test]
fn long_output_of_a_tool_is_shortened_in_the_event() {
    let long = "é".repeat(100_000);
    let line = serde_json::json!({"type": "user", "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t", "content": long}]}});
    let (events, _, _) = run(line.to_string().as_bytes(), &ProcessEnd::default());
    let [EventBody::ToolResult { text, .. }] = &events[..] else {
        panic!("{events:?}")
    };
    assert!(text.len() < 66_000 && text.ends_with("more bytes]"));
}

/// An answer only counts when its result came whole.
#[test]
fn a_cut_stream_is_never_success() {
    for version in ["2.1.197", "2.1.325"] {
        let whole = bytes(version, "tool_turn");
        let result = String::from_utf8_lossy(&whole)
            .find("\"subtype\":\"success\"")
            .unwrap();
        for cut in [result, result / 2, 10, 0] {
            let torn = ProcessEnd {
                torn: true,
                code: Some(0),
                ..ProcessEnd::default()
            };
            let (_, _, ran) = run(&whole[..cut], &torn);
            assert_ne!(
                ran.outcome,
                rejoin_core::Outcome::Succeeded,
                "{version} {cut}"
            );
            let unseen = ProcessEnd {
                cause: EndCause::Unseen,
                ..ProcessEnd::default()
            };
            let (_, _, ran) = run(&whole[..cut], &unseen);
            assert!(
                matches!(ran.outcome, rejoin_core::Outcome::Lost(_)),
                "{version} {cut}"
            );
        }
    }
}

mod any {
    use proptest::prelude::*;

    use super::{ProcessEnd, bytes, run};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            run(&bytes, &ProcessEnd::default());
        }

        #[test]
        fn changed_streams_never_panic(
            name in prop::sample::select(vec!["subagent_turn", "ask_user_question_turn", "edit_turn", "api_error_e401", "autocompact_turn"]),
            version in prop::sample::select(vec!["2.1.197", "2.1.325"]),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            drop in any::<prop::sample::Index>(),
        ) {
            let mut stream = bytes(version, name);
            for (at, byte) in changes {
                let at = at.index(stream.len());
                stream[at] = byte;
            }
            let at = drop.index(stream.len());
            run(&stream, &ProcessEnd::default());
            run(&stream[at..], &ProcessEnd::default());
            run(&stream[..at], &ProcessEnd { torn: true, ..ProcessEnd::default() });
        }

        /// Values of another kind where the CLI has a number, a text or a list.
        #[test]
        fn other_values_never_panic(
            line in any::<prop::sample::Index>(),
            field in any::<prop::sample::Index>(),
            value in prop::sample::select(vec!["null", "-1", "1e400", "[]", "{}", "\"x\"", "true", "18446744073709551616"]),
        ) {
            let stream = bytes("2.1.325", "background_agents_turn");
            let text = String::from_utf8(stream).unwrap();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            let at = line.index(lines.len());
            let colons: Vec<usize> = lines[at].match_indices("\":").map(|(i, _)| i + 2).collect();
            let colon = colons[field.index(colons.len())];
            let rest = &lines[at][colon..];
            let end = rest.find([',', '}']).unwrap_or(rest.len());
            lines[at] = format!("{}{value}{}", &lines[at][..colon], &rest[end..]);
            run(lines.join("\n").as_bytes(), &ProcessEnd::default());
        }
    }
}

const HELD: &str =
    r#""tool_input":{"questions":[{"question":"Which?","options":[{"label":"A"}]}]}"#;

/// A hook holds the question, then the CLI itself asks: one question, answered when somebody listens.
#[test]
fn a_question_that_a_hook_holds_is_asked_once() {
    let held = format!(r#"{{"tool_use_id":"q","tool_name":"AskUserQuestion",{HELD}}}"#);
    let asks = br#"{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"AskUserQuestion","tool_use_id":"q","input":{}}}"#;
    let mut parser = adapter("claude").unwrap().parser();
    parser.aside(b"nonsense");
    parser.aside(held.as_bytes());
    let asked = parser.asked();
    assert_eq!(
        (asked.len(), asked[0].questions[0].text.as_str()),
        (1, "Which?")
    );
    assert_eq!(parser.reply("q", None), None);
    parser.line(asks);
    assert_eq!(parser.asked(), []);
    assert!(parser.reply("q", None).unwrap().line.contains("r1"));
    parser.aside(held.as_bytes());
    assert_eq!(parser.asked(), []);
    assert_eq!(parser.deferred(), None);
}

#[test]
fn a_run_that_put_its_question_off_says_so() {
    let result = |tool: &str, why: &str, failed: bool| {
        let input = HELD.replace("tool_input", "input");
        let line = format!(
            r#"{{"type":"result","subtype":"success","is_error":{failed},"stop_reason":"{why}","deferred_tool_use":{{"id":"q","name":"{tool}",{input}}}}}"#
        );
        let mut parser = adapter("claude").unwrap().parser();
        parser.line(line.as_bytes());
        (parser.deferred(), parser.asked().len())
    };
    let off = "tool_deferred";
    assert_eq!(result("AskUserQuestion", off, false), (Some("q".into()), 1));
    assert_eq!(result("AskUserQuestion", off, true).0, None);
    assert_eq!(
        result("AskUserQuestion", "tool_deferred_unavailable", false).0,
        None
    );
    // Of a hook of the user's own.
    assert_eq!(result("Bash", off, false), (None, 0));
}
