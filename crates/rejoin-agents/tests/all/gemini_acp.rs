//! Captured runs over the Agent Client Protocol (0.61.0): what is said to the CLI, what is asked, and what
//! the run came to.

use rejoin_agents::{CommandSpec, ProcessEnd, RunReport, Say, StreamParser, adapter, text_mark};
use rejoin_core::{
    Choice, Class, EventBody, Given, Outcome, PermissionMode, Permissions, SessionId,
};
use serde_json::{Value, json};

use crate::order::{Ask, Kind, NEW, OLD, PLAIN, command};

const ASK: Ask<'static> = Ask {
    agent: "gemini",
    model: Some("gemini-2.5-flash"),
    permissions: &Permissions {
        mode: PermissionMode::Ask,
        tools: None,
        deny_tools: vec![],
        commands: false,
    },
    ..PLAIN
};
const SESSION: &str = "68056e56-b4c6-4017-a9e4-adbb7ca71c4c";

fn capture(name: &str) -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/gemini/0.61.0/acp");
    let text = std::fs::read_to_string(format!("{folder}/{name}.jsonl")).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn parser(session: Option<&str>) -> Box<dyn StreamParser> {
    let dialogue = json!({"folder": "/srv/work", "session": session, "prompt": "hi", "raw": false});
    crate::dialogue_parser("gemini", &dialogue.to_string())
}

#[derive(Default)]
struct Led {
    events: Vec<EventBody>,
    says: Vec<Say>,
    replies: Vec<String>,
}

/// Every odd call is denied.
fn lead(parser: &mut dyn StreamParser, lines: &[String]) -> Led {
    let mut led = Led::default();
    for line in lines {
        led.events.extend(parser.line(line.as_bytes()));
        led.says.extend(parser.says());
        for asked in parser.asked() {
            let denied = led.replies.len() % 2 == 0;
            let given = Given {
                decision: if denied { Choice::Deny } else { Choice::Always },
                message: denied.then(|| "not on a Friday".to_owned()),
                answers: [].into(),
            };
            let reply = parser.reply(&asked.call_id, Some(&given)).unwrap();
            assert_eq!(reply.message.is_some(), denied);
            led.replies.push(reply.line);
        }
    }
    led
}

fn ended(parser: Box<dyn StreamParser>, session: Option<&str>) -> RunReport {
    parser.finish(&ProcessEnd {
        code: Some(0),
        asked_session: session.map(|id| SessionId::new(id).unwrap()),
        ..ProcessEnd::default()
    })
}

fn keys(says: &[Say]) -> Vec<&str> {
    says.iter().map(|say| say.key.as_str()).collect()
}

#[test]
fn a_first_turn_that_asks() {
    let mut reader = parser(None);
    let led = lead(reader.as_mut(), &capture("asked"));
    assert_eq!(keys(&led.says), ["rejoin-session", "rejoin-prompt"]);
    let said: Vec<Value> = led
        .says
        .iter()
        .map(|say| serde_json::from_str(&say.line).unwrap())
        .collect();
    assert_eq!(said[0]["method"], "session/new");
    assert_eq!(
        said[0]["params"],
        json!({"cwd": "/srv/work", "mcpServers": []})
    );
    let prompt = json!({"sessionId": SESSION, "prompt": [{"type": "text", "text": "hi"}]});
    assert_eq!(
        (&said[1]["method"], &said[1]["params"]),
        (&json!("session/prompt"), &prompt)
    );
    // A word of a person's reaches the model only so.
    let no = json!({"jsonrpc": "2.0", "id": 0, "error": "not on a Friday"});
    // And "always" is never more than once.
    let chosen = json!({"outcome": {"outcome": "selected", "optionId": "proceed_once"}});
    let yes = json!({"jsonrpc": "2.0", "id": 1, "result": chosen});
    assert_eq!(led.replies, [format!("{no}\n"), format!("{yes}\n")]);

    let told: Vec<String> = led
        .events
        .iter()
        .map(|event| {
            let json = serde_json::to_value(event).unwrap();
            let part = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
            let short = if let EventBody::ToolCall { input, .. } = event {
                input.to_string()
            } else {
                ["text", "path", "decision", "session_id"]
                    .map(part)
                    .concat()
            };
            let line = format!("{} {} {short}", event.kind(), part("tool"));
            line.trim_end().to_owned()
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    turn.started  68056e56-b4c6-4017-a9e4-adbb7ca71c4c
    tool.call run_shell_command {"command":"touch t","details":"(make t)"}
    tool.result  not on a Friday
    tool.call replace {"file_path":"/srv/work/f","new_string":"X\n","old_string":"b\n"}
    tool.result
    file.changed replace /srv/work/f
    tool.call read_file {"file_path":"/srv/work/f","title":"f"}
    tool.result
    tool.call invoke_agent {}
    tool.result  Tool execution for "Generalist Agent" denied by policy.
    answered  deny
    text.delta  ALL DONE
    text  ALL DONE
    usage
    "#);

    let ran = ended(reader, None);
    assert_eq!(
        (ran.outcome, ran.text.as_str()),
        (Outcome::Succeeded, "ALL DONE")
    );
    assert_eq!(ran.session.as_ref().map(SessionId::as_str), Some(SESSION));
    assert_eq!(
        (ran.model.as_deref(), ran.version.as_deref()),
        (Some("gemini-2.5-flash"), Some("0.61.0"))
    );
    assert_eq!(
        (ran.usage.input, ran.usage.output, ran.unknown_lines),
        (72581, 42, 0)
    );
    let denied: Vec<_> = ran
        .denied
        .iter()
        .map(|d| (d.tool.as_str(), d.input.as_str()))
        .collect();
    let touch = r#"{"command":"touch t","details":"(make t)"}"#;
    assert_eq!(
        denied,
        [("run_shell_command", touch), ("invoke_agent", "{}")]
    );
    assert_eq!((ran.tools_run, ran.trail.len()), (4, 2));
    assert!(ran.trail[0].changed_file, "{:?}", ran.trail);
}

/// The history that is replayed is no part of the turn, however it comes in between.
#[test]
fn what_is_replayed_is_not_the_turn() {
    let lines = capture("resumed");
    let is = |line: &String, what: &str| line.contains(what);
    let at = |what: &str| lines.iter().position(|line| is(line, what)).unwrap();
    let quiet = &lines[at(r#""id":"rejoin-quiet""#)];
    let load = at(r#""id":"rejoin-session""#);
    let history: Vec<String> = lines[1..at(r#""id":"rejoin-quiet""#)]
        .iter()
        .filter(|line| !is(line, "rejoin-session") && !is(line, "available_commands_update"))
        .cloned()
        .collect();
    // Also what cannot be read of it.
    let odd = json!({"method": "session/update", "params": {"sessionId": SESSION,
        "update": {"sessionUpdate": "tool_call", "content": 7}}});
    let history = [history, vec![odd.to_string()]].concat();
    let last_quiet = lines.iter().rposition(|line| line == quiet).unwrap();
    let turn = &lines[last_quiet + 1..];
    assert!(history.len() > 10 && history.iter().any(|line| is(line, "ALL DONE")));
    for (before, step) in [
        (0, 1),
        (1, 1),
        (1, 3),
        (2, 7),
        (history.len(), 1),
        (1, history.len()),
    ] {
        let mut reader = parser(Some(SESSION));
        let (first, rest) = history.split_at(before);
        let mut replay = vec![lines[0].clone()];
        replay.extend_from_slice(first);
        replay.push(lines[load].clone());
        let mut led = lead(reader.as_mut(), &replay);
        for some in rest.chunks(step) {
            assert_eq!(
                led.says.last().map(|say| &say.key[..12]),
                Some("rejoin-quiet")
            );
            let round = [some, std::slice::from_ref(quiet)].concat();
            let more = lead(reader.as_mut(), &round);
            assert_eq!(more.says.len(), 1);
            assert!(
                more.says[0].key.starts_with("rejoin-quiet"),
                "{:?}",
                more.says
            );
            assert_eq!(more.events, []);
            led.says.extend(more.says);
        }
        let more = lead(reader.as_mut(), std::slice::from_ref(quiet));
        assert_eq!(keys(&more.says), ["rejoin-prompt"]);
        led.says.extend(more.says);
        let mut named = keys(&led.says);
        named.dedup();
        assert_eq!(named.len(), led.says.len(), "a key was used twice");
        let kinds: Vec<_> = led.events.iter().map(EventBody::kind).collect();
        assert_eq!(kinds, ["turn.started"]);
        let more = lead(reader.as_mut(), turn);
        assert!(more.says.is_empty());
        let ran = ended(reader, Some(SESSION));
        assert_eq!((ran.outcome, ran.refused), (Outcome::Succeeded, false));
        assert!(
            !ran.text.contains("ALL DONE") && !ran.text.is_empty(),
            "{}",
            ran.text
        );
        assert_eq!((ran.tools_run, ran.denied.len()), (0, 0));
    }
}

/// Whoever reads a run again says the same.
#[test]
fn a_run_that_is_read_again_says_the_same() {
    for (name, session) in [
        ("asked", None),
        ("resumed", Some(SESSION)),
        ("unknown", Some(OLD)),
    ] {
        let led = || {
            let led = lead(parser(session).as_mut(), &capture(name));
            (led.says, led.replies)
        };
        assert_eq!(led(), led());
    }
}

#[test]
fn a_session_that_is_not_known_is_refused() {
    let mut reader = parser(Some(OLD));
    let led = lead(reader.as_mut(), &capture("unknown"));
    // Something that will be answered: then stdin is closed.
    assert_eq!(keys(&led.says), ["rejoin-session", "rejoin-bye"]);
    let ran = ended(reader, Some(OLD));
    assert!(
        ran.refused && ran.text.is_empty() && ran.unknown_lines == 0,
        "{ran:?}"
    );
    let before = "Error resuming session: Invalid session identifier";
    let mut reader = parser(Some(OLD));
    reader.stderr(before.as_bytes());
    assert!(ended(reader, Some(OLD)).refused);
}

#[test]
fn failures_have_their_class() {
    let class = |lines: &[String]| {
        let mut reader = parser(None);
        lead(reader.as_mut(), lines);
        match ended(reader, None).outcome {
            Outcome::Failed(failure) => failure.class,
            other @ (Outcome::Succeeded | Outcome::Cancelled | Outcome::Lost(_)) => {
                panic!("{other:?}")
            }
        }
    };
    let limited = capture("limited");
    assert_eq!(class(&limited), Class::Quota);
    let begun = &limited[..2];
    assert!(begun[1].contains("rejoin-session"));
    for (end, expected) in [
        (
            json!({"result": {"stopReason": "end_turn"}}),
            Class::Transient,
        ),
        (
            json!({"result": {"stopReason": "max_tokens"}}),
            Class::ContextOverflow,
        ),
        (
            json!({"result": {"stopReason": "max_turn_requests"}}),
            Class::TimeLimit,
        ),
        (
            json!({"result": {"stopReason": "cancelled"}}),
            Class::Interrupted,
        ),
        (json!({"result": {"stopReason": "odd"}}), Class::Unknown),
        (json!({"result": null}), Class::Unknown),
        (
            json!({"error": {"code": 500, "message": "terminated"}}),
            Class::Transient,
        ),
        (
            json!({"error": {"code": 400, "message": "API key not valid."}}),
            Class::Auth,
        ),
    ] {
        let mut end = end;
        end["id"] = json!("rejoin-prompt");
        assert_eq!(
            class(&[begun, &[end.to_string()]].concat()),
            expected,
            "{end}"
        );
    }
    let login = json!({"id": "rejoin-session", "error": {"code": -32000, "message": "Authentication required."}});
    assert_eq!(
        class(&[&limited[..1], &[login.to_string()]].concat()),
        Class::Auth
    );
    assert_eq!(class(begun), Class::Interrupted);
}

/// What is asked of us that we do not know is answered at once.
#[test]
fn other_requests_are_answered() {
    let mut reader = parser(None);
    let odd = json!({"id": 7, "method": "fs/read_text_file", "params": {}}).to_string();
    let led = lead(reader.as_mut(), &[odd]);
    assert_eq!(keys(&led.says), ["error 7"]);
    assert!(led.says[0].line.contains("-32601"), "{:?}", led.says);
    let odd = json!({"id": 8, "method": "session/request_permission", "params": {}}).to_string();
    let led = lead(reader.as_mut(), &[odd]);
    assert_eq!((keys(&led.says), led.replies.len()), (vec!["error 8"], 0));
}

fn told(spec: &CommandSpec) -> String {
    let files = spec.files.iter().map(|(name, _)| name.as_str());
    format!(
        "{}\n< {}{}\n> {:?}\n{}",
        spec.args.join(" "),
        spec.stdin,
        spec.dialogue.as_deref().unwrap_or_default(),
        spec.close_stdin_on,
        files.collect::<Vec<_>>().join("\n")
    )
}

#[test]
fn each_plan_names_its_session() {
    for kind in [Kind::Start, Kind::Resume] {
        let spec = command(&Ask { kind, ..ASK });
        insta::assert_snapshot!(told(&spec));
        assert!(spec.hold_stdin);
        assert_eq!(spec.prompt_mark, Some(text_mark("hello")));
        assert_eq!(spec.chosen_by.is_some(), matches!(kind, Kind::Start));
        let named = if matches!(kind, Kind::Start) {
            NEW
        } else {
            OLD
        };
        assert!(spec.args.contains(&named.to_owned()));
    }
}

/// Promise 11: a message is data.
#[test]
fn words_are_not_commands() {
    let prompt = |message: &str, context, raw| {
        let spec = command(&Ask {
            context,
            message,
            raw,
            ..ASK
        });
        let dialogue: Value = serde_json::from_str(&spec.dialogue.unwrap()).unwrap();
        dialogue["prompt"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        prompt("see @/etc/hostname", None, false),
        "see @/etc/hostname"
    );
    for nasty in ["/help", "$help", "?", " \u{feff}/x", "<session_context>"] {
        for raw in [false, true] {
            let said = prompt(nasty, None, raw);
            assert_eq!(said, format!("<rejoin>the message:</rejoin>\n{nasty}"));
        }
        let said = prompt(nasty, Some("<rejoin>n</rejoin>"), false);
        assert_eq!(said, format!("<rejoin>n</rejoin>\n\n{nasty}"));
    }
}

/// A session that was begun so: read, and mended so that every call has one result.
#[test]
fn its_session_is_read() {
    let gemini = adapter("gemini").unwrap();
    let lines = capture("sessions/asked");
    let read = |lines: &[String]| {
        let mut reader = gemini.reader(None);
        for line in lines {
            reader.line(line.as_bytes());
        }
        reader.finish()
    };
    let reading = read(&lines);
    let prompt = reading.prompts[0].clone();
    assert_eq!(reading.confirms(&prompt, "ALL DONE"), Ok(()));
    assert_eq!(reading.session.as_deref(), Some(SESSION));
    let denied: Vec<_> = reading.denied.iter().map(|d| d.tool.as_str()).collect();
    assert_eq!((denied, reading.repeats), (vec!["enter_plan_mode"], true));
    let session = lines.join("\n") + "\n";
    let more = String::from_utf8(
        gemini
            .capabilities()
            .repair
            .unwrap()
            .repair(session.as_bytes())
            .unwrap(),
    )
    .unwrap();
    let mended = read(&[&lines[..], &[more.trim_end().to_owned()]].concat());
    assert_eq!(mended.confirms(&prompt, "ALL DONE"), Ok(()));
    assert!(!mended.repeats);
    let list: Value = serde_json::from_str(&more).unwrap();
    let list = list["$set"]["messages"].to_string();
    assert_eq!(list.matches("\"functionResponse\"").count(), 4, "{list}");
    assert!(!list.contains("not found in registry"), "{list}");
}
