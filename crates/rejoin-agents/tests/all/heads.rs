//! What the beginning of a session says of it, and where sessions of the user's own are looked for.

use std::collections::BTreeMap;
use std::path::Path;

use rejoin_agents::{Adopt, SessionHeader, SessionStorage, adapter};
use serde_json::json;

fn bytes(path: &str) -> Vec<u8> {
    let path = format!("{}/fixtures/{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn adopt(agent: &str) -> &'static dyn Adopt {
    adapter(agent).unwrap().capabilities().adopt.unwrap()
}

/// The head, and how many lines it took.
fn head_of(
    agent: &str,
    path: &str,
    folder: Option<&str>,
    beside: &BTreeMap<String, String>,
    bytes: &[u8],
) -> (Option<SessionHeader>, usize) {
    let read = |name: &str| beside.get(name).map(|text| text.clone().into_bytes());
    let mut reader = adopt(agent).header(path, folder, &read);
    let mut lines = 0;
    for line in bytes.split(|b| *b == b'\n') {
        lines += 1;
        if reader.line(line) {
            break;
        }
    }
    (reader.finish(), lines)
}

fn told(head: Option<SessionHeader>) -> String {
    let Some(head) = head else {
        return "nothing".into();
    };
    let words: String = head.words.chars().take(40).collect();
    let time = |at: Option<i64>| at.map_or_else(|| "-".into(), |at| at.to_string());
    let folder = head.folder.unwrap_or_else(|| "-".into());
    let (began, used) = (time(head.began), time(head.used));
    format!(
        "{} in {folder} began {began} used {used}: {words:?}",
        head.session
    )
}

fn plain(agent: &str, path: &str, bytes: &[u8]) -> String {
    told(head_of(agent, path, None, &BTreeMap::new(), bytes).0)
}

#[test]
fn beginnings_of_files() {
    let id = "b731fd0c-68de-4452-a02a-ef7d040b8069";
    let claude = |fixture: &str, name: &str| {
        let path = format!("projects/-srv-claude-w/{name}.jsonl");
        plain("claude", &path, &bytes(&format!("claude/{fixture}.jsonl")))
    };
    let agent = "subagent/934bb01a-4544-46b4-9af9-57621e6d98de/subagents/agent-ae1fdcdd1e74ac2bb";
    let codex = |name: &str| {
        let bytes = bytes(&format!("codex/0.166.0/sessions/{name}.jsonl"));
        plain("codex", "sessions/2026/11/15/rollout-x.jsonl", &bytes)
    };
    let gemini = |name: &str| {
        let bytes = bytes(&format!("gemini/0.61.0/sessions/{name}.session.jsonl"));
        plain("gemini", "tmp/a/chats/session-x.jsonl", &bytes)
    };
    let shown = [
        claude("2.1.197/sessions/seven_turns", id),
        claude("2.1.325/sessions/seven_turns", id),
        // Of a sub-agent, by its name and by its lines.
        claude("2.1.197/sessions/seven_turns", "agent-ae1fdcdd1e74ac2bb"),
        claude(&format!("2.1.197/sessions/{agent}"), id),
        codex("simple/rollout-2026-11-15T08-18-17-01a1de49-2494-7391-a595-647f5b1aba14"),
        codex("fork_child/rollout-2026-11-15T08-23-36-01a1de4e-0022-7291-a4bb-9ad910c40fc2"),
        gemini("simple-turn"),
        gemini("resumed"),
        // Without its first line.
        gemini("race-headerless"),
    ];
    insta::assert_snapshot!(shown.join("\n"), @r#"
    b731fd0c-68de-4452-a02a-ef7d040b8069 in /srv/claude/w began 1794737907681000 used -: "turn 0 #s:hello"
    b731fd0c-68de-4452-a02a-ef7d040b8069 in /srv/claude/w began 1794737914243000 used -: "turn 0 #s:hello"
    nothing
    nothing
    01a1de49-2494-7391-a595-647f5b1aba14 in /srv/codex/srv/repo began 1794730697882000 used -: "SAY:hello one"
    01a1de4e-0022-7291-a4bb-9ad910c40fc2 in /srv/codex/srv/repo began 1794731016233000 used -: "SAY:forked"
    33b024d5-7a1b-49d8-a5a5-3eba03dcf48e in /srv/gemini/proj/a began 1794730727551000 used -: "hello %% say Hi there"
    b573ea3c-6491-4edc-b77b-13ade9bd44c3 in /srv/gemini/proj/a began 1794730745533000 used -: "tool turn %% tool run_shell_command {\"co"
    nothing
    "#);
}

/// A big session is not read whole to be listed.
#[test]
fn a_beginning_is_enough() {
    let mut long = bytes("claude/2.1.197/sessions/seven_turns.jsonl");
    let more = long.clone();
    for _ in 0..50 {
        long.extend_from_slice(&more);
    }
    let path = "projects/x/b731fd0c-68de-4452-a02a-ef7d040b8069.jsonl";
    let (head, lines) = head_of("claude", path, None, &BTreeMap::new(), &long);
    assert!(head.is_some() && lines < 10, "{lines}");
}

#[test]
fn sub_agents_and_foreign_lines_are_no_sessions() {
    let meta = |source: serde_json::Value| {
        let id = "01a1de49-2494-7391-a595-647f5b1aba14";
        let head = json!({"type": "session_meta", "ordinal": 0,
            "payload": {"id": id, "cwd": "/w", "source": source}});
        let said = json!({"type": "response_item", "ordinal": 1, "payload": {"type": "message",
            "role": "user", "content": [{"type": "input_text", "text": "hello"}]}});
        format!("{head}\n{said}\n")
    };
    let of = |text: String| plain("codex", "sessions/1/1/1/rollout-x.jsonl", text.as_bytes());
    assert!(of(meta(json!("cli"))).contains("hello"));
    assert_eq!(of(meta(json!({"subagent": "review"}))), "nothing");
    let chat = |kind: &str| {
        let head = json!({"sessionId": "s-1", "kind": kind});
        let said = json!({"id": "m", "type": "user", "content": [{"text": "hello"}]});
        let text = format!("{head}\n{said}\n");
        plain("gemini", "tmp/a/chats/session-x.jsonl", text.as_bytes())
    };
    assert!(chat("main").contains("hello"));
    assert_eq!(chat("subagent"), "nothing");
    for agent in ["claude", "codex", "gemini", "opencode"] {
        let path = "projects/x/b731fd0c-68de-4452-a02a-ef7d040b8069.jsonl";
        for junk in [
            &b""[..],
            b"\xff\x00",
            b"{}",
            b"[1]\n\"x\"\nnull",
            b"{\"type\":\"user\"}",
        ] {
            assert_eq!(plain(agent, path, junk), "nothing", "{agent} {junk:?}");
        }
    }
}

/// Folders whose names differ in signs only share a place: the lines tell whose session it is. One
/// that was put there from elsewhere belongs there, for its CLI finds it.
#[test]
fn a_claude_session_belongs_where_its_cli_looks() {
    let line = |cwd: &str| {
        let line = json!({"type": "user", "uuid": "u", "cwd": cwd,
            "message": {"role": "user", "content": "hello"}});
        line.to_string().into_bytes()
    };
    let path = "projects/-srv-a-b/b731fd0c-68de-4452-a02a-ef7d040b8069.jsonl";
    let folder = |cwd: &str, asked: Option<&str>| {
        let (head, _) = head_of("claude", path, asked, &BTreeMap::new(), &line(cwd));
        head.unwrap().folder.unwrap()
    };
    assert_eq!(folder("/srv/a.b", Some("/srv/a_b")), "/srv/a.b");
    assert_eq!(folder("/elsewhere", Some("/srv/a_b")), "/srv/a_b");
    assert_eq!(folder("/elsewhere", Some("/srv/other")), "/elsewhere");
    assert_eq!(folder("/elsewhere", None), "/elsewhere");
}

#[test]
fn a_gemini_chat_is_found_by_what_lies_beside_it() {
    let chat = bytes("gemini/0.61.0/sessions/simple-turn.session.jsonl");
    let beside = |files: &[(&str, &str)]| {
        let files = files
            .iter()
            .map(|(n, t)| ((*n).to_owned(), (*t).to_owned()));
        let path = "tmp/a/chats/session-x.jsonl";
        let (head, _) = head_of("gemini", path, None, &files.collect(), &chat);
        head.unwrap().folder.unwrap()
    };
    assert_eq!(beside(&[]), "/srv/gemini/proj/a");
    let known = r#"{"projects": {"/known": "a", "/other": "b"}}"#;
    assert_eq!(beside(&[("projects.json", known)]), "/known");
    let both = [
        ("projects.json", known),
        ("tmp/a/.project_root", "/marked\n"),
    ];
    assert_eq!(beside(&both), "/marked");
}

/// Older versions kept a chat as one document.
#[test]
fn an_old_gemini_chat_is_read_as_one_of_today() {
    let old = json!({
        "sessionId": "s-1", "projectHash": "x",
        "startTime": "2025-09-01T10:00:00.000Z", "lastUpdated": "2025-09-01T11:00:00.000Z",
        "messages": [
            {"id": "1", "timestamp": "2025-09-01T10:00:01.000Z", "type": "user", "content": "hello"},
            {"id": "2", "timestamp": "2025-09-01T10:00:02.000Z", "type": "gemini", "content": "hi"},
        ],
    });
    let pretty = format!("{old:#}");
    let adapter = adapter("gemini").unwrap();
    let lines = adopt("gemini").as_lines(pretty.as_bytes()).unwrap();
    let head = plain("gemini", "tmp/a/chats/session-x.json", &lines);
    assert_eq!(head, "s-1 in - began 1756720800000000 used -: \"hello\"");
    let mut reader = adapter.reader(None);
    lines.split(|b| *b == b'\n').for_each(|l| reader.line(l));
    let reading = reader.finish();
    assert!(reading.connected && reading.damaged_lines == 0);
    let said: Vec<String> = reading.said().into_iter().map(|s| s.text).collect();
    assert_eq!(said, ["hello", "hi"]);
    for junk in [&b""[..], b"{}", b"[]", b"{\"messages\":[]}", b"\xff"] {
        assert_eq!(adopt("gemini").as_lines(junk), None);
    }
}

/// A fork of Codex holds only what followed; with its parent's part before it, it is whole.
#[test]
fn a_fork_goes_on_from_its_parent() {
    let folder = "codex/0.166.0/sessions";
    let parent = format!(
        "{folder}/fork_parent/rollout-2026-11-15T08-23-31-01a1de4d-ef76-7022-95ec-184c021dc815.jsonl"
    );
    let child = format!(
        "{folder}/fork_child/rollout-2026-11-15T08-23-36-01a1de4e-0022-7291-a4bb-9ad910c40fc2.jsonl"
    );
    let (parent, child) = (bytes(&parent), bytes(&child));
    let adapter = adapter("codex").unwrap();
    let first = child.split(|b| *b == b'\n').next().unwrap();
    let ancestor = adopt("codex").ancestor(first).unwrap();
    assert_eq!(
        ancestor.session.as_str(),
        "01a1de4d-ef76-7022-95ec-184c021dc815"
    );
    let first = parent.split(|b| *b == b'\n').next().unwrap();
    assert_eq!(adopt("codex").ancestor(first), None);
    let mut reader = adapter.reader(None);
    let lines = usize::try_from(ancestor.lines).unwrap();
    let before = parent.split(|b| *b == b'\n').filter(|l| !l.is_empty());
    for line in before.take(lines).chain(child.split(|b| *b == b'\n')) {
        reader.line(line);
    }
    let reading = reader.finish();
    assert!(reading.connected, "{reading:?}");
    let said: Vec<String> = reading.said().into_iter().map(|s| s.text).collect();
    insta::assert_debug_snapshot!(said, @r#"
    [
        "SAY:base",
        "base",
        "SLOW:20x100",
        "w0 w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12 w13 w14 w15 w16 w17 w18 w19 ",
        "SAY:B",
        "B",
        "SLOW:20x100",
        "SAY:forked",
        "forked",
    ]
    "#);
}

#[test]
fn where_they_lie() {
    let env = |name: &str| (name == "HOME").then(|| "/h".to_owned());
    let mut shown = vec![];
    for agent in ["claude", "codex", "gemini", "opencode"] {
        let found = adopt(agent).own_sessions(&env, Some("/srv/w")).unwrap();
        let (kept, ends) = match found.kept {
            SessionStorage::Files {
                folders,
                begins,
                ends,
            } => (format!("{}/{begins}*", folders.join(" ")), ends.join(" ")),
            SessionStorage::Rows { begins, ends, .. } => (format!("{begins}*"), ends.to_owned()),
        };
        let home = found.home.strip_prefix(Path::new("/h")).unwrap().display();
        shown.push(format!(
            "{agent}: {home} {kept} {ends} copied {}",
            found.copied
        ));
    }
    insta::assert_snapshot!(shown.join("\n"), @r#"
    claude: .claude projects/-srv-w/* .jsonl copied false
    codex: .codex sessions/*/*/*/rollout-* .jsonl copied false
    gemini: .gemini tmp/*/chats/session-* .jsonl .json copied true
    opencode: .local/share/opencode opencode* .db copied true
    "#);
    assert!(adapter("demo").unwrap().capabilities().adopt.is_none());
}
