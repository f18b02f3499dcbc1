//! Captured streams of OpenCode: their events and what the run came to.

use std::fmt::Write as _;

use rejoin_agents::{EndCause, ProcessEnd, RunReport, adapter};
use rejoin_core::{Class, EventBody, Outcome, SessionId};

fn file(name: &str) -> Option<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/opencode/1.18.33");
    std::fs::read(format!("{folder}/{name}")).ok()
}

fn streams() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/opencode/1.18.33");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".jsonl").map(str::to_owned))
        .collect();
    names.sort();
    names
}

fn run(out: &[u8], err: &[u8], end: &ProcessEnd) -> (Vec<EventBody>, Option<String>, RunReport) {
    let mut parser = adapter("opencode").unwrap().parser();
    let mut events = vec![];
    for line in out.split(|b| *b == b'\n') {
        events.extend(parser.line(line));
    }
    let stop = parser.stop();
    for line in err.split(|b| *b == b'\n') {
        parser.stderr(line);
    }
    (events, stop, parser.finish(end))
}

/// As it was captured: with its exit code, or killed, or stopped because it would not end.
fn captured(name: &str) -> (Vec<u8>, Vec<u8>, ProcessEnd) {
    let out = file(&format!("{name}.jsonl")).unwrap();
    let err = file(&format!("{name}.stderr")).unwrap_or_default();
    let code = file(&format!("{name}.rc")).map(|rc| String::from_utf8(rc).unwrap());
    let code: Option<i32> = code.and_then(|code| code.trim().parse().ok());
    let end = match code {
        Some(137) => ProcessEnd {
            signal: Some(9),
            ..ProcessEnd::default()
        },
        None if name.starts_with("killed") => ProcessEnd {
            signal: Some(9),
            ..ProcessEnd::default()
        },
        None if name.ends_with("_head") => ProcessEnd {
            code: Some(143),
            cause: EndCause::Cancelled,
            ..ProcessEnd::default()
        },
        code => ProcessEnd {
            code: Some(code.unwrap_or(0)),
            ..ProcessEnd::default()
        },
    };
    let asked = name.contains("session") && !name.contains("fresh");
    let asked_session = asked.then(|| SessionId::new("ses_asked0000000000").unwrap());
    let end = ProcessEnd {
        asked_session,
        ..end
    };
    (out, err, end)
}

fn told(name: &str) -> String {
    let (out, err, end) = captured(name);
    let (events, stop, ran) = run(&out, &err, &end);
    let mut told = format!("== {name}\n");
    for event in &events {
        let json = serde_json::to_value(event).unwrap();
        let line: String = json.to_string().chars().take(260).collect();
        writeln!(told, "  {line}").unwrap();
    }
    if let Some(why) = stop {
        writeln!(told, "  stop: {why}").unwrap();
    }
    writeln!(told, "  outcome {:?} refused {}", ran.outcome, ran.refused).unwrap();
    let session = ran.session.as_ref().map(SessionId::as_str);
    writeln!(told, "  text {:?} session {session:?}", ran.text).unwrap();
    writeln!(told, "  usage {:?} total {:?}", ran.usage, ran.total).unwrap();
    for denied in &ran.denied {
        let input: String = denied.input.chars().take(80).collect();
        writeln!(told, "  denied {} {} {input}", denied.tool, denied.id).unwrap();
    }
    for note in &ran.trail {
        writeln!(told, "  tool {note:?}").unwrap();
    }
    writeln!(
        told,
        "  tools {} compacted {} unknown {}",
        ran.tools_run, ran.compacted, ran.unknown_lines
    )
    .unwrap();
    told
}

#[test]
fn streams_of_1_18_33() {
    let told: String = streams().iter().map(|name| told(name)).collect();
    insta::assert_snapshot!(told);
}

/// All but the last of a capture that was cut off.
#[test]
fn every_line_of_the_captures_is_understood() {
    for name in streams() {
        let (out, err, end) = captured(&name);
        let (events, _, ran) = run(&out, &err, &end);
        let raw: Vec<_> = events.iter().filter(|e| e.kind() == "raw").collect();
        let cut = u64::from(name.ends_with("_head") && !out.ends_with(b"\n"));
        assert!(ran.unknown_lines <= cut, "{name}: {raw:?}");
    }
}

const DONE: ProcessEnd = ProcessEnd {
    code: Some(0),
    signal: None,
    cause: EndCause::ByItself,
    torn: false,
    asked_session: None,
};

fn text(message: &str, text: &str) -> String {
    format!(
        r#"{{"type":"text","sessionID":"ses_a","part":{{"messageID":"{message}","text":"{text}"}}}}"#
    )
}

fn finish(message: &str, reason: &str) -> String {
    format!(
        r#"{{"type":"step_finish","sessionID":"ses_a","part":{{"messageID":"{message}","reason":"{reason}"}}}}"#
    )
}

const START: &str = r#"{"type":"step_start","sessionID":"ses_a","part":{}}"#;
const GO_ON: &str = r#"{"type":"text","sessionID":"ses_a","part":{"messageID":"u","synthetic":true,"metadata":{"compaction_continue":true},"text":"Continue"}}"#;

fn answer_of(lines: &[String]) -> (String, bool) {
    let (_, _, ran) = run(lines.join("\n").as_bytes(), b"", &DONE);
    assert_eq!(ran.outcome, Outcome::Succeeded);
    (ran.text, ran.compacted)
}

/// E-06, E-33: the line of the document gives the session; `...`, which it leaves out, is the part.
#[test]
fn the_documents_step_gives_the_session() {
    let line = r#"{"type":"step_start","timestamp":1775599542766,"sessionID":"ses_296052f0bffeFudXE4xOn0vSEJ",...}"#;
    let line = line.replace("...", r#""part":{}"#);
    let (_, _, ran) = run(line.as_bytes(), b"", &DONE);
    let session = ran.session.as_ref().map(SessionId::as_str);
    assert_eq!(session, Some("ses_296052f0bffeFudXE4xOn0vSEJ"));
    assert_eq!(ran.unknown_lines, 0);
}

/// A summary is printed like an answer, and never is one.
#[test]
fn a_summary_is_no_answer() {
    let step = |message: &str, said: &str, reason: &str| {
        vec![
            START.to_owned(),
            text(message, said),
            finish(message, reason),
        ]
    };
    let after = [
        step("a", "answer", "stop"),
        step("s", "summary", "stop"),
        vec![GO_ON.to_owned()],
        step("c", "more", "stop"),
    ];
    assert_eq!(
        answer_of(&after.concat()),
        ("answer\n\nmore".to_owned(), true)
    );
    let between = [
        step("t", "looking", "tool-calls"),
        step("s", "summary", "stop"),
        vec![GO_ON.to_owned()],
        step("c", "answer", "stop"),
    ];
    assert_eq!(
        answer_of(&between.concat()),
        ("looking\n\nanswer".to_owned(), true)
    );
    // It did not fit: summarised first, and the prompt put again, which prints nothing.
    let before = [step("s", "summary", "stop"), step("r", "answer", "stop")];
    assert_eq!(answer_of(&before.concat()), ("answer".to_owned(), true));
    // Some models call a tool and end as if they were done.
    let tool = r#"{"type":"tool_use","sessionID":"ses_a","part":{"messageID":"a","tool":"read","callID":"c","state":{"status":"completed"}}}"#;
    let calling = [
        vec![START.to_owned(), tool.to_owned()],
        vec![text("a", "looking"), finish("a", "stop")],
        step("b", "done", "stop"),
    ];
    assert_eq!(
        answer_of(&calling.concat()),
        ("looking\n\ndone".to_owned(), false)
    );
    let plain = [
        step("a", "looking", "tool-calls"),
        step("b", "done", "stop"),
    ];
    assert_eq!(
        answer_of(&plain.concat()),
        ("looking\n\ndone".to_owned(), false)
    );
}

#[test]
fn another_session_than_the_one_asked_for_is_refused() {
    let (out, _, _) = captured("simple_turn");
    let asked = |id: &str| ProcessEnd {
        asked_session: SessionId::new(id).ok(),
        ..DONE
    };
    let (_, _, ran) = run(&out, b"", &DONE);
    assert!(!ran.refused);
    let own = ran.session.unwrap();
    assert!(!run(&out, b"", &asked(own.as_str())).2.refused);
    assert!(run(&out, b"", &asked("ses_asked0000000000")).2.refused);
    // What a tool or a model says is not the CLI's own word.
    let said = text("m", "Session not found");
    assert!(!run(said.as_bytes(), b"", &asked("ses_a")).2.refused);
}

/// Every way of not ending with an answer is a failure of its own.
#[test]
fn without_an_answer_it_says_why() {
    let class = |lines: &[String], end: &ProcessEnd| {
        let (_, _, ran) = run(lines.join("\n").as_bytes(), b"", end);
        ran.outcome.failure().unwrap().class
    };
    let said = |reason: &str| vec![START.to_owned(), text("m", "half"), finish("m", reason)];
    assert_eq!(class(&[], &DONE), Class::Crashed);
    assert_eq!(class(&said("tool-calls"), &DONE), Class::Interrupted);
    assert_eq!(class(&said("length"), &DONE), Class::Interrupted);
    assert_eq!(class(&said("unknown"), &DONE), Class::Transient);
    assert_eq!(class(&said("content-filter"), &DONE), Class::InvalidRequest);
    assert_eq!(class(&said("new-reason"), &DONE), Class::Unknown);
    assert_eq!(
        class(&[START.to_owned(), finish("m", "stop")], &DONE),
        Class::Unknown
    );
    let torn = ProcessEnd { torn: true, ..DONE };
    assert_eq!(class(&said("stop"), &torn), Class::Crashed);
    let killed = ProcessEnd {
        code: None,
        signal: Some(9),
        ..DONE
    };
    assert_eq!(class(&said("stop"), &killed), Class::Crashed);
    let limit = ProcessEnd {
        cause: EndCause::WallLimit,
        ..killed
    };
    assert_eq!(class(&said("stop"), &limit), Class::TimeLimit);
}

#[test]
fn strange_lines_are_kept_as_they_are() {
    let strange: &[&[u8]] = &[
        b"plain words",
        b"\xff\xfe\x00",
        b"{\"type\":\"new_thing\",\"x\":1}",
        b"{\"type\":\"text\",\"part\":{}}",
        b"{\"type\":\"tool_use\",\"part\":7}",
        b"{\"type\":\"error\"}",
        b"[]",
        b"null",
        b"{\"type\":7}",
    ];
    let (events, _, ran) = run(&strange.join(&b'\n'), b"", &DONE);
    assert!(events.iter().all(|e| e.kind() == "raw"), "{events:?}");
    assert_eq!(ran.unknown_lines, strange.len() as u64);
}

mod any {
    use proptest::prelude::*;

    use super::{DONE, ProcessEnd, captured, run, streams};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            run(&bytes, &bytes, &DONE);
        }

        #[test]
        fn changed_streams_never_panic(
            name in prop::sample::select(streams()),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            drop in any::<prop::sample::Index>(),
        ) {
            let (mut stream, err, end) = captured(&name);
            stream.push(b'\n');
            for (at, byte) in changes {
                let at = at.index(stream.len());
                stream[at] = byte;
            }
            let at = drop.index(stream.len());
            run(&stream, &err, &end);
            run(&stream[at..], &err, &end);
            run(&stream[..at], &err, &ProcessEnd { torn: true, ..end });
        }

        /// Values of another kind where the CLI has a number, a text or a list.
        #[test]
        fn other_values_never_panic(
            name in prop::sample::select(vec!["tool_turn", "compaction_turn", "api_error_401"]),
            line in any::<prop::sample::Index>(),
            field in any::<prop::sample::Index>(),
            value in prop::sample::select(vec!["null", "-1", "1e400", "[]", "{}", "\"x\"", "true", "18446744073709551616"]),
        ) {
            let text = String::from_utf8(captured(name).0).unwrap();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            let at = line.index(lines.len());
            let colons: Vec<usize> = lines[at].match_indices("\":").map(|(i, _)| i + 2).collect();
            let colon = colons[field.index(colons.len())];
            let rest = &lines[at][colon..];
            let end = rest.find([',', '}']).unwrap_or(rest.len());
            lines[at] = format!("{}{value}{}", &lines[at][..colon], &rest[end..]);
            run(lines.join("\n").as_bytes(), b"", &DONE);
        }
    }
}
