//! Captured streams: their events and what the run came to.

use std::fmt::Write as _;

use rejoin_agents::{EndCause, ProcessEnd, RunReport, adapter};
use rejoin_core::{Class, EventBody, Outcome, SessionId};

fn folder() -> String {
    format!("{}/fixtures/gemini/0.61.0", env!("CARGO_MANIFEST_DIR"))
}

fn streams() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".jsonl").map(str::to_owned))
        .collect();
    names.sort();
    names
}

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/{name}.jsonl", folder())).unwrap()
}

fn run(bytes: &[u8], stderr: &str, end: &ProcessEnd) -> (Vec<EventBody>, RunReport) {
    let mut parser = adapter("gemini").unwrap().parser();
    let mut events = vec![];
    for line in bytes.split(|b| *b == b'\n') {
        events.extend(parser.line(line));
        assert!(parser.asked().is_empty() && parser.says().is_empty());
    }
    for line in stderr.lines() {
        parser.stderr(line.as_bytes());
    }
    (events, parser.finish(end))
}

/// The end each capture had.
fn end(name: &str) -> ProcessEnd {
    let code = match name {
        "api-error-400" | "api-error-after-tool" => Some(144),
        "api-error-429" => Some(173),
        "api-stream-dropped" => Some(1),
        "unknown-session" => Some(42),
        _ if name.starts_with("killed") => None,
        _ => Some(0),
    };
    ProcessEnd {
        code,
        signal: code.is_none().then_some(9),
        ..ProcessEnd::default()
    }
}

fn told(name: &str) -> String {
    let (events, ran) = run(&bytes(name), "", &end(name));
    let mut out = format!("== {name}\n");
    let mut deltas = String::new();
    for event in &events {
        if let EventBody::TextDelta { text } = event {
            deltas.push_str(text);
            continue;
        }
        let json = serde_json::to_value(event).unwrap();
        let line: String = json.to_string().chars().take(260).collect();
        writeln!(out, "  {line}").unwrap();
    }
    if !deltas.is_empty() {
        writeln!(out, "  deltas: {deltas:?}").unwrap();
    }
    writeln!(out, "  outcome {:?} refused {}", ran.outcome, ran.refused).unwrap();
    writeln!(out, "  text {:?} model {:?}", ran.text, ran.model).unwrap();
    let session = ran.session.as_ref().map(SessionId::as_str);
    writeln!(out, "  session {session:?} usage {:?}", ran.usage).unwrap();
    for denied in &ran.denied {
        writeln!(out, "  denied {} {}", denied.tool, denied.input).unwrap();
    }
    for note in &ran.trail {
        writeln!(out, "  tool {note:?}").unwrap();
    }
    writeln!(
        out,
        "  tools {} unknown {}",
        ran.tools_run, ran.unknown_lines
    )
    .unwrap();
    out
}

#[test]
fn streams_of_0_61_0() {
    let told: String = streams().iter().map(|name| told(name)).collect();
    insta::assert_snapshot!(told);
}

#[test]
fn every_line_of_the_captures_is_understood() {
    for name in streams() {
        let (events, ran) = run(&bytes(&name), "", &end(&name));
        let raw: Vec<_> = events.iter().filter(|e| e.kind() == "raw").collect();
        assert_eq!((ran.unknown_lines, raw.len()), (0, 0), "{name}: {raw:?}");
    }
}

/// E-01, E-33: the init line of the document gives the session.
#[test]
fn the_documents_init_line_gives_the_session() {
    let line = br#"{"type":"init","timestamp":"2026-04-07T21:55:36.994Z","session_id":"031da63a-73be-42f5-ae0d-890aae0b6323","model":"auto-gemini-3"}"#;
    let (_, ran) = run(line, "", &ProcessEnd::default());
    let session = ran.session.as_ref().map(SessionId::as_str);
    assert_eq!(session, Some("031da63a-73be-42f5-ae0d-890aae0b6323"));
    assert_eq!(
        (ran.model.as_deref(), ran.unknown_lines),
        (Some("auto-gemini-3"), 0)
    );
}

#[test]
fn a_session_that_is_not_known_is_refused() {
    let stderr =
        std::fs::read_to_string(format!("{}/unknown-session.stderr.txt", folder())).unwrap();
    let asked = |id: &str, code| ProcessEnd {
        asked_session: SessionId::new(id).ok(),
        code: Some(code),
        ..ProcessEnd::default()
    };
    let noise = format!("Warning: Basic terminal detected\n{stderr}");
    assert!(run(b"", &noise, &asked("x", 42)).1.refused);
    // In the words of the answer it means nothing.
    let simple = bytes("simple-turn");
    let id = "33b024d5-7a1b-49d8-a5a5-3eba03dcf48e";
    assert!(!run(&simple, &noise, &asked(id, 0)).1.refused);
    // Another one was opened instead.
    assert!(run(&simple, "", &asked("other", 0)).1.refused);
    // An id that exists already was not to be resumed.
    let exists = "Error starting session: Session ID \"x\" already exists.";
    assert!(!run(b"", exists, &asked("x", 42)).1.refused);
}

/// Exit codes lie: only the last line counts.
#[test]
fn success_is_what_the_last_line_says() {
    let whole = bytes("tool-turn-yolo");
    let result = String::from_utf8_lossy(&whole)
        .find("{\"type\":\"result\"")
        .unwrap();
    let end = |code, cause| ProcessEnd {
        code,
        cause,
        ..ProcessEnd::default()
    };
    let outcome = |bytes: &[u8], end: &ProcessEnd| run(bytes, "", end).1.outcome;
    assert_eq!(
        outcome(&whole, &end(Some(1), EndCause::ByItself)),
        Outcome::Succeeded
    );
    assert_eq!(
        outcome(&whole, &end(None, EndCause::Unseen)),
        Outcome::Succeeded
    );
    for (code, cause, class) in [
        (Some(0), EndCause::ByItself, Class::Interrupted),
        (Some(1), EndCause::ByItself, Class::Crashed),
        (Some(0), EndCause::WallLimit, Class::TimeLimit),
        (None, EndCause::Unseen, Class::Lost),
    ] {
        let cut = outcome(&whole[..result], &end(code, cause));
        assert_eq!(cut.failure().map(|f| f.class), Some(class), "{code:?}");
    }
    let cancelled = end(Some(0), EndCause::Cancelled);
    assert_eq!(outcome(&whole[..result], &cancelled), Outcome::Cancelled);
    let torn = ProcessEnd {
        torn: true,
        ..end(Some(0), EndCause::ByItself)
    };
    assert_ne!(outcome(&whole, &torn), Outcome::Succeeded);
}

#[test]
fn what_kept_it_from_beginning() {
    let class = |code, stderr: &str| {
        let end = ProcessEnd {
            code: Some(code),
            ..ProcessEnd::default()
        };
        let ran = run(b"", stderr, &end).1;
        let failure = ran.outcome.failure().unwrap().clone();
        (failure.class, failure.message)
    };
    let login = "Warning: x\nPlease set an Auth method in your settings.json";
    let (found, message) = class(41, login);
    assert_eq!(found, Class::Auth);
    assert!(
        message.ends_with("Please set an Auth method in your settings.json"),
        "{message}"
    );
    assert_eq!(
        class(55, "Gemini CLI is not running in a trusted directory").0,
        Class::NotStarted
    );
    assert_eq!(class(1, "Unknown argument: zork").0, Class::NotStarted);
    assert_eq!(
        class(52, "Error: Cannot start in YOLO mode since it is disabled").0,
        Class::Permissions
    );
}

#[test]
fn strange_lines_are_kept_as_they_are() {
    let strange: &[&[u8]] = &[
        b"plain words",
        b"\xff\xfe\x00",
        b"{\"type\":\"new_thing\",\"x\":1}",
        b"{\"type\":\"tool_use\"}",
        b"[]",
        b"null",
        b"{\"type\":7}",
    ];
    let (events, ran) = run(&strange.join(&b'\n'), "", &ProcessEnd::default());
    assert!(events.iter().all(|e| e.kind() == "raw"));
    assert_eq!(ran.unknown_lines, strange.len() as u64);
    // New fields and new words in known ones are no trouble.
    let newer = br#"{"type":"init","session_id":"s","new":{}}
{"type":"message","role":"assistant","content":"hi","delta":true,"new":[1]}
{"type":"message","role":"new","content":"other"}
{"type":"tool_result","tool_id":"never-called","status":"new"}
{"type":"result","status":"success","stats":{"new":1}}"#;
    let (_, ran) = run(newer, "", &end("simple-turn"));
    assert_eq!(
        (ran.outcome, ran.text.as_str(), ran.unknown_lines),
        (Outcome::Succeeded, "hi", 0)
    );
}

mod any {
    use proptest::prelude::*;

    use super::{ProcessEnd, bytes, run};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            run(&bytes, "x", &ProcessEnd::default());
        }

        #[test]
        fn changed_streams_never_panic(
            name in prop::sample::select(vec!["tool-turn-yolo", "api-error-400", "api-error-after-tool", "loop-detected-turn"]),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            drop in any::<prop::sample::Index>(),
            code in any::<Option<i32>>(),
        ) {
            let mut stream = bytes(name);
            for (at, byte) in changes {
                let at = at.index(stream.len());
                stream[at] = byte;
            }
            let at = drop.index(stream.len());
            let end = ProcessEnd { code, ..ProcessEnd::default() };
            run(&stream, "", &end);
            run(&stream[at..], "", &end);
            run(&stream[..at], "", &ProcessEnd { torn: true, ..end });
        }
    }
}
