//! OpenCode's server as the bridge passes it on: what it asks, what it is answered, what came of it.

use rejoin_agents::serve::{SESSION, ServeOrder};
use rejoin_agents::{ProcessEnd, RunReport, StreamParser};
use rejoin_core::{Choice, Class, EventBody, Given, Outcome, PermissionMode, Permissions};
use serde_json::{Value, json};

use crate::order::{Ask, Kind, PLAIN, command};

const CAPTURED: &str = include_str!("../../fixtures/opencode/1.18.33/serve/events.jsonl");
const ID: &str = "ses_e21a21ac8ffe2mwLHVqNDewT9o";

const QUIET: &[&str] = &[
    "message.part.delta",
    "message.updated",
    "plugin.added",
    "session.created",
    "session.diff",
    "session.updated",
    "catalog.updated",
    "reference.updated",
    "integration.updated",
    "server.connected",
    "server.heartbeat",
];

/// The turns of the capture, without what the bridge leaves out.
fn turns() -> Vec<Vec<&'static str>> {
    let mut turns = vec![vec![]];
    for line in CAPTURED.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let kind = event["type"].as_str().unwrap();
        if !QUIET.contains(&kind) {
            turns.last_mut().unwrap().push(line);
        }
        if kind == "session.idle" {
            turns.push(vec![]);
        }
    }
    turns
}

fn begun() -> Box<dyn StreamParser> {
    let mut parser = crate::dialogue_parser("opencode", "serve");
    let session = json!({"type": SESSION, "properties": {"sessionID": ID}});
    let events = parser.line(session.to_string().as_bytes());
    assert_eq!(events.len(), 1, "the session is known at once");
    parser
}

fn given(decision: Choice, message: Option<&str>) -> Given {
    Given {
        decision,
        message: message.map(str::to_owned),
        answers: [("1".to_owned(), vec!["B".to_owned()])].into(),
    }
}

/// Reads a turn; what it asks is answered.
fn read(lines: &[&str], given: Option<&Given>) -> (Vec<EventBody>, Vec<String>, RunReport) {
    let mut parser = begun();
    let (mut events, mut said) = (vec![], vec![]);
    for line in lines {
        events.extend(parser.line(line.as_bytes()));
        for asked in parser.asked() {
            said.push(serde_json::to_string(&asked).unwrap());
            said.push(parser.reply(&asked.call_id, given).unwrap().line);
        }
    }
    let end = ProcessEnd {
        code: Some(0),
        ..ProcessEnd::default()
    };
    (events, said, parser.finish(&end))
}

#[test]
fn a_permission_is_asked_for_with_the_call_that_needs_it() {
    let yes = given(Choice::Allow, None);
    let (events, said, ran) = read(&turns()[0], Some(&yes));
    insta::assert_snapshot!(said.join("\n"), @r#"
    {"call_id":"per_1de5df247001zF5i0RWcIDLVPA","kind":"approval","tool":"bash","input":{"command":"echo served","description":"e"},"questions":[]}
    {"to":"permission","id":"per_1de5df247001zF5i0RWcIDLVPA","body":{"reply":"once"}}
    "#);
    let kinds: Vec<&str> = events.iter().map(EventBody::kind).collect();
    insta::assert_snapshot!(kinds.join(" "), @r"tool.call tool.result usage text usage");
    assert_eq!(ran.outcome, Outcome::Succeeded);
    assert_eq!((ran.text.as_str(), ran.unknown_lines), ("tool-done", 0));
    // Of both steps.
    assert_eq!((ran.usage.input, ran.usage.output), (200, 20));
    assert_eq!((ran.tools_run, ran.trail.len()), (1, 1));
    assert_eq!(ran.session.unwrap().as_str(), ID);
}

#[test]
fn each_decision_in_the_words_of_the_server() {
    let reply = |turn: usize, given: Option<&Given>| {
        let (_, said, ran) = read(&turns()[turn], given);
        let answer: Value = serde_json::from_str(&said[1]).unwrap();
        (answer["body"].clone(), ran.denied)
    };
    let always = given(Choice::Always, None);
    assert_eq!(reply(0, Some(&always)).0, json!({"reply": "always"}));
    let no = given(Choice::Deny, Some("not now"));
    let denied = json!({"reply": "reject", "message": "not now"});
    assert_eq!(reply(0, Some(&no)).0, denied);
    // Without a message the turn would end there.
    for nothing in [None, Some(&given(Choice::Deny, None))] {
        let (body, _) = reply(0, nothing);
        assert_eq!(body["reply"], "reject");
        assert!(body["message"].as_str().unwrap().len() > 20, "{body}");
    }
    let (body, denied) = reply(1, Some(&given(Choice::Allow, None)));
    assert_eq!((body, denied.len()), (json!({"answers": [["B"]]}), 0));
    let (body, denied) = reply(1, Some(&no));
    assert_eq!((body, denied.len()), (json!({"answers": [["not now"]]}), 1));
}

#[test]
fn parts_that_are_told_twice_count_once_and_the_first_error_is_the_cause() {
    let twice: Vec<&str> = turns()[0].iter().flat_map(|line| [*line, *line]).collect();
    let (_, said, ran) = read(&twice, Some(&given(Choice::Allow, None)));
    assert_eq!(said.len(), 2);
    assert_eq!((ran.usage.input, ran.tools_run), (200, 1));
    let error = |message: &str| {
        json!({"type": "session.error", "properties": {"sessionID": ID,
            "error": {"name": "UnknownError", "data": {"message": message}}}})
        .to_string()
    };
    let (first, second) = (error("Model not found: a/b."), error("odd"));
    let (_, _, ran) = read(&[&first, &second], None);
    let Outcome::Failed(failure) = ran.outcome else {
        panic!("{:?}", ran.outcome)
    };
    assert_eq!(failure.class, Class::InvalidRequest, "{failure:?}");
}

/// A tool that had begun when everything ended has been run, for all we know.
#[test]
fn what_had_begun_is_known() {
    let lines: Vec<&str> = turns()[0]
        .iter()
        .copied()
        .take_while(|line| !line.contains("\"completed\""))
        .collect();
    let (_, _, ran) = read(&lines, None);
    assert_eq!((ran.tools_run, ran.trail.len()), (1, 1));
    assert!(!ran.trail[0].finished);
}

#[test]
fn the_call_of_a_turn_that_asks() {
    let permissions = Permissions {
        mode: PermissionMode::Ask,
        tools: None,
        deny_tools: vec!["bash(rm *)".to_owned()],
        commands: false,
    };
    let ask = Ask {
        agent: "opencode",
        session: ID,
        model: Some("scripted/m1/x"),
        permissions: &permissions,
        message: "/init @x",
        ..PLAIN
    };
    let spec = command(&ask);
    insta::assert_snapshot!(spec.args.join(" "), @r"serve --hostname 127.0.0.1 --port 0 --mdns=false");
    assert_eq!(spec.through, Some("opencode-bridge"));
    assert!(spec.hold_stdin && spec.dialogue.is_some());
    insta::assert_snapshot!(spec.stdin, @r#"{"folder":"/w","session":null,"fork":false,"begin":{"title":"rejoin"},"prompt":{"agent":"rejoin-01900000-0000-7000-8000-000000000001","model":{"modelID":"m1/x","providerID":"scripted"},"parts":[{"text":"/init @x","type":"text"}]},"decides":"person","nobody":"This run has nobody who could allow this, so it is denied. Do not try to reach the same by other means; go on with what is allowed and say in your answer what could not be done."}"#);
    let env: Vec<String> = spec.env.iter().map(|(n, v)| format!("{n}={v}")).collect();
    insta::assert_snapshot!(env.join("\n"), @r#"
    PWD=/w
    OPENCODE_PERMISSION={"*":"deny","codesearch":"allow","glob":"allow","grep":"allow","list":"allow","todoread":"allow","todowrite":"allow","webfetch":"allow","websearch":"allow","invalid":"allow","read":{"*":"allow","*.env":"deny","*.env.*":"deny","*.env.example":"allow"},"task":"deny","*_*":"ask","edit":"ask","bash":"deny","plan_enter":"deny","plan_exit":"deny","question":"deny"}
    OPENCODE_CONFIG_CONTENT={"agent":{"rejoin-01900000-0000-7000-8000-000000000001":{"mode":"primary","permission":{"*":"deny","codesearch":"allow","glob":"allow","grep":"allow","list":"allow","todoread":"allow","todowrite":"allow","webfetch":"allow","websearch":"allow","invalid":"allow","read":{"*":"allow","*.env":"deny","*.env.*":"deny","*.env.example":"allow"},"task":"deny","*_*":"ask","edit":"ask","bash":"deny","plan_enter":"deny","plan_exit":"deny","question":"deny"}}},"experimental":{"continue_loop_on_deny":true},"instructions":["/w/AGENTS.md"],"plugin":["file:///home/u/.cli/rejoin/guard-1.js"]}
    OPENCODE_DB=/home/u/.cli/place/of/the/session
    REJOIN_OPENCODE_GUARD={"agent":"rejoin-01900000-0000-7000-8000-000000000001","bash":{"*":"ask","rm *":"deny"}}
    "#);
    let order = |kind| -> ServeOrder {
        let spec = command(&Ask { kind, ..ask });
        serde_json::from_str(&spec.stdin).unwrap()
    };
    let (resumed, forked) = (order(Kind::Resume), order(Kind::Fork));
    assert_eq!(
        (resumed.session.as_deref(), resumed.fork),
        (Some(ID), false)
    );
    assert_eq!((forked.session.as_deref(), forked.fork), (Some(ID), true));
}
