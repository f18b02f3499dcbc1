//! Captured dialogues with the server of 0.166.0: what is asked and said, and what the run came to.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rejoin_agents::{ProcessEnd, RunReport, StreamParser};
use rejoin_core::{Choice, Class, Given, Outcome, PermissionMode, Permissions, SessionId};

use crate::order::{Ask, Kind, PLAIN, command};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/codex/0.166.0/server");
const THREAD: &str = "01a1e26f-3863-7402-b66c-f402b4c88796";

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(format!("{FOLDER}/{name}.jsonl")).unwrap()
}

fn led_by(session: Option<&str>) -> Box<dyn StreamParser> {
    let dialogue = serde_json::json!({"prompt": "$x \"y\"", "session": session});
    crate::dialogue_parser("codex", &dialogue.to_string())
}

fn given(decision: Choice, message: Option<&str>) -> Given {
    Given {
        decision,
        message: message.map(str::to_owned),
        answers: BTreeMap::new(),
    }
}

/// Everything that happens, in order; whatever is asked is answered so.
fn told(parser: &mut dyn StreamParser, bytes: &[u8], answer: Option<&Given>) -> String {
    let mut out = String::new();
    for line in bytes.split(|b| *b == b'\n') {
        for event in parser.line(line) {
            let event = serde_json::to_string(&event).unwrap();
            writeln!(out, "event {event}").unwrap();
        }
        for say in parser.says() {
            write!(out, "says {}: {}", say.key, say.line).unwrap();
        }
        for asked in parser.asked() {
            writeln!(out, "asked {}", serde_json::to_string(&asked).unwrap()).unwrap();
            let reply = parser.reply(&asked.call_id, answer).unwrap();
            write!(out, "reply {}", reply.line).unwrap();
            // Whoever reads the run again says the same.
            assert_eq!(parser.reply(&asked.call_id, answer), Some(reply));
        }
    }
    out
}

fn ended(parser: Box<dyn StreamParser>, session: Option<&str>) -> RunReport {
    parser.finish(&ProcessEnd {
        code: Some(0),
        asked_session: session.map(|id| SessionId::new(id).unwrap()),
        ..ProcessEnd::default()
    })
}

fn came_to(ran: &RunReport) -> String {
    format!(
        "{:?} refused {} {:?} {:?} denied {:?} trail {:?} unknown {}",
        ran.outcome, ran.refused, ran.text, ran.usage, ran.denied, ran.trail, ran.unknown_lines
    )
}

#[test]
fn a_command_that_is_denied() {
    let mut parser = led_by(None);
    let no = given(Choice::Deny, Some("not \"now\""));
    let story = told(parser.as_mut(), &bytes("command"), Some(&no));
    insta::assert_snapshot!(story, @r#"
    event {"type":"turn.started","session_id":"01a1e26f-3863-7402-b66c-f402b4c88796","model":"gpt-5.5","version":null,"tools":[],"permission":"untrusted"}
    says rejoin-turn: {"id":"rejoin-turn","method":"turn/start","params":{"input":[{"text":"$x \"y\"","type":"text"}],"threadId":"01a1e26f-3863-7402-b66c-f402b4c88796"}}
    event {"type":"text.delta","text":"Trying"}
    event {"type":"text","text":"Trying"}
    event {"type":"tool.call","id":"call_0464","tool":"exec_command","input":{"command":"/bin/bash -lc 'touch x'"}}
    asked {"call_id":"call_0464","kind":"approval","tool":"exec_command","input":{"command":"touch x","folder":"/srv/codex/w"},"questions":[]}
    reply {"id":"rejoin-note 0","method":"thread/inject_items","params":{"items":[{"content":[{"text":"The user says: not \"now\"","type":"input_text"}],"role":"developer","type":"message"}],"threadId":"01a1e26f-3863-7402-b66c-f402b4c88796"}}
    {"id":0,"result":{"decision":"decline"}}
    event {"type":"tool.result","id":"call_0464","is_error":true,"text":""}
    event {"type":"text.delta","text":"done"}
    event {"type":"text","text":"done"}
    "#);
    insta::assert_snapshot!(came_to(&ended(parser, None)), @r#"Succeeded refused false "Trying\n\ndone" Usage { input: 1200, cache_read: 800, cache_write: 0, output: 100 } denied [Denied { tool: "exec_command", id: "call_0464", input: "{\"command\":\"touch x\",\"folder\":\"/srv/codex/w\"}" }] trail [] unknown 0"#);
}

#[test]
fn a_patch_that_is_allowed() {
    let mut parser = led_by(Some(THREAD));
    let always = given(Choice::Always, None);
    let story = told(parser.as_mut(), &bytes("patch"), Some(&always));
    insta::assert_snapshot!(story, @r#"
    event {"type":"turn.started","session_id":"01a1e26f-3863-7402-b66c-f402b4c88796","model":"gpt-5.5","version":null,"tools":[],"permission":"untrusted"}
    says rejoin-turn: {"id":"rejoin-turn","method":"turn/start","params":{"input":[{"text":"$x \"y\"","type":"text"}],"threadId":"01a1e26f-3863-7402-b66c-f402b4c88796"}}
    event {"type":"tool.call","id":"call_0466","tool":"apply_patch","input":{"changes":[{"diff":"x\n","kind":{"type":"add"},"path":"/srv/codex/w/by-patch"}]}}
    asked {"call_id":"call_0466","kind":"approval","tool":"apply_patch","input":{"changes":[{"diff":"x\n","kind":{"type":"add"},"path":"/srv/codex/w/by-patch"}],"path":"/srv/codex/w/by-patch"},"questions":[]}
    reply {"id":0,"result":{"decision":"acceptForSession"}}
    event {"type":"tool.result","id":"call_0466","is_error":false,"text":""}
    event {"type":"file.changed","path":"/srv/codex/w/by-patch","tool":"apply_patch"}
    event {"type":"text.delta","text":"done"}
    event {"type":"text","text":"done"}
    "#);
    insta::assert_snapshot!(came_to(&ended(parser, Some(THREAD))), @r#"Succeeded refused false "done" Usage { input: 2400, cache_read: 1600, cache_write: 0, output: 200 } denied [] trail [ToolNote { tool: "apply_patch", subject: "/srv/codex/w/by-patch", changed_file: true, finished: true }] unknown 0"#);
}

#[test]
fn a_question() {
    let mut parser = led_by(None);
    let mut yes = given(Choice::Allow, None);
    yes.answers.insert("q1".into(), vec!["B".into()]);
    let story = told(parser.as_mut(), &bytes("question"), Some(&yes));
    let of_it = |line: &&str| line.starts_with("asked") || line.starts_with("reply");
    let story: Vec<&str> = story.lines().filter(of_it).collect();
    insta::assert_snapshot!(story.join("\n"), @r#"
    asked {"call_id":"call_0468","kind":"question","tool":"request_user_input","input":null,"questions":[{"id":"q1","text":"Which?","options":[{"label":"A","description":"a"},{"label":"B","description":"b"}],"multi":false}]}
    reply {"id":0,"result":{"answers":{"q1":{"answers":["B"]}}}}
    "#);
    assert_eq!(ended(parser, None).outcome, Outcome::Succeeded);
    let nobody = told(led_by(None).as_mut(), &bytes("question"), None);
    assert!(nobody.contains("nobody who could answer"), "{nobody}");
    assert!(
        nobody.contains(r#"{"id":0,"result":{"answers":{}}}"#),
        "{nobody}"
    );
}

/// Nothing is sent to a session that is not the one, or that does not keep to what was asked.
#[test]
fn the_prompt_goes_only_where_it_should() {
    let asks = |bytes: &[u8], session| {
        let mut parser = led_by(session);
        let story = told(parser.as_mut(), bytes, None);
        (story.contains("turn/start"), ended(parser, session))
    };
    let patch = String::from_utf8(bytes("patch")).unwrap();
    assert!(asks(patch.as_bytes(), Some(THREAD)).0);
    for (is, instead) in [
        (
            r#""approvalPolicy":"untrusted""#,
            r#""approvalPolicy":"never""#,
        ),
        (r#""approvalPolicy":"untrusted""#, r#""x":0"#),
        (
            r#""approvalsReviewer":"user""#,
            r#""approvalsReviewer":"auto_review""#,
        ),
        (r#""type":"workspaceWrite""#, r#""type":"dangerFullAccess""#),
    ] {
        assert!(patch.contains(is), "{is}");
        let (sent, ran) = asks(patch.replace(is, instead).as_bytes(), Some(THREAD));
        let class = ran.outcome.failure().map(|failure| failure.class);
        assert_eq!(
            (sent, class),
            (false, Some(Class::Permissions)),
            "{instead}"
        );
    }
    let other = "01a1e26f-3863-7402-b66c-000000000000";
    let (sent, ran) = asks(patch.as_bytes(), Some(other));
    assert_eq!((sent, ran.refused), (false, true), "{ran:?}");
}

#[test]
fn what_goes_wrong() {
    let unknown = "01a1de5a-10a1-7173-9133-c93e7f5307f6";
    let mut parser = led_by(Some(unknown));
    let story = told(parser.as_mut(), &bytes("unknown"), None);
    insta::assert_snapshot!(story, @r#"says rejoin-end: {"id":"rejoin-end","method":"thread/loaded/list","params":{}}"#);
    insta::assert_snapshot!(came_to(&ended(parser, Some(unknown))), @r#"Failed(Failure { class: Refused, message: "the CLI does not load the session: no rollout found for thread id 01a1de5a-10a1-7173-9133-c93e7f5307f6" }) refused true "" Usage { input: 0, cache_read: 0, cache_write: 0, output: 0 } denied [] trail [] unknown 0"#);
    let mut parser = led_by(Some(THREAD));
    told(parser.as_mut(), &bytes("failed"), None);
    insta::assert_snapshot!(came_to(&ended(parser, Some(THREAD))), @r#"Failed(Failure { class: Auth, message: "the login is missing or was refused: unexpected status 401 Unauthorized: fake 401 error, url: http://127.0.0.1:18299/v1/responses" }) refused false "" Usage { input: 0, cache_read: 0, cache_write: 0, output: 0 } denied [] trail [] unknown 0"#);
    // What nobody knows is answered at once.
    let request = br#"{"id":7,"method":"mcpServer/elicitation/request","params":{"threadId":"t"}}"#;
    insta::assert_snapshot!(told(led_by(None).as_mut(), request, None), @r#"
    event {"type":"notice","level":"info","message":"rejoin does not answer requests of the kind mcpServer/elicitation/request"}
    says error 7: {"error":{"code":-32601,"message":"rejoin does not answer requests of the kind mcpServer/elicitation/request"},"id":7}
    "#);
}

/// C-40: everything is said again on a resume, in words of the server.
#[test]
fn each_plan_opens_its_session() {
    let permissions = Permissions {
        mode: PermissionMode::Ask,
        tools: None,
        deny_tools: vec![],
        commands: false,
    };
    let of = |kind| {
        command(&Ask {
            agent: "codex",
            session: THREAD,
            kind,
            permissions: &permissions,
            model: Some("gpt-5.5"),
            message: "use $skill",
            ..PLAIN
        })
    };
    let resume = of(Kind::Resume);
    insta::assert_snapshot!(resume.args.join(" "), @r#"app-server -c projects={"/w"={trust_level="untrusted"}} -c shell_environment_policy.set.REJOIN_TURN="01900000-0000-7000-8000-000000000001" -c features.unbounded_connection_retries=false -c features.apps=false -c features.plugins=false -c features.browser_use=false -c features.computer_use=false -c features.image_generation=false --disable unified_exec_tty --disable multi_agent --disable goals"#);
    insta::assert_snapshot!(resume.stdin, @r#"
    {"id":"rejoin-hello","method":"initialize","params":{"capabilities":{"experimentalApi":true,"optOutNotificationMethods":["account/rateLimits/updated","item/commandExecution/outputDelta","item/fileChange/outputDelta","item/fileChange/patchUpdated","item/plan/delta","item/reasoning/summaryPartAdded","item/reasoning/summaryTextDelta","item/reasoning/textDelta","thread/readState/changed","thread/status/changed","turn/diff/updated"]},"clientInfo":{"name":"rejoin","title":"rejoin","version":"0.1.0"}}}
    {"method":"initialized"}
    {"id":"rejoin-thread","method":"thread/resume","params":{"approvalPolicy":"untrusted","approvalsReviewer":"user","cwd":"/w","excludeTurns":true,"model":"gpt-5.5","sandbox":"workspace-write","threadId":"01a1e26f-3863-7402-b66c-f402b4c88796"}}
    "#);
    let dialogue = resume.dialogue.unwrap();
    let shown = dialogue.replace('\u{2060}', "~");
    insta::assert_snapshot!(shown, @r#"{"prompt":"use $~skill","session":"01a1e26f-3863-7402-b66c-f402b4c88796"}"#);
    assert_eq!(
        resume.close_stdin_on,
        ["method:turn/completed", "id:rejoin-end"]
    );
    assert!(resume.hold_stdin);
    let start = of(Kind::Start);
    insta::assert_snapshot!(start.stdin.lines().last().unwrap(), @r#"{"id":"rejoin-thread","method":"thread/start","params":{"approvalPolicy":"untrusted","approvalsReviewer":"user","cwd":"/w","model":"gpt-5.5","sandbox":"workspace-write"}}"#);
    // A copy has another id.
    let fork = of(Kind::Fork).stdin;
    assert!(
        fork.contains("thread/resume") && !fork.contains(THREAD),
        "{fork}"
    );
}
