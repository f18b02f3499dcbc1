//! How each CLI goes on with a copy of a session; data in, data out.

use rejoin_agents::{ADAPTERS, Denied, Forking, ReadEntry, Reading, SessionAt, adapter};
use rejoin_core::{SessionId, ToolNote};

use crate::order::{Ask, Kind, NEW, OLD, ORIGIN, PLAIN, command};

const THREAD: &str = "01a1de49-2494-7391-a595-647f5b1aba14";
const OPENED: &str = "ses_e21a13099ffesPgMJlFhtDvy9X";

fn args(agent: &str, session: &str, kind: Kind) -> Vec<String> {
    let ask = Ask {
        agent,
        session,
        kind,
        ..PLAIN
    };
    command(&ask).args
}

/// Only what names the session differs from a resume: model and permissions are said all the same.
/// No command names the parent's session where its owner may be writing.
#[test]
fn a_fork_names_the_copy() {
    for (agent, session, resume, fork) in [
        (
            "claude",
            OLD,
            vec!["--resume", OLD],
            vec!["--resume", ORIGIN],
        ),
        (
            "gemini",
            OLD,
            vec!["--resume", OLD],
            vec!["--session-file", ORIGIN],
        ),
        ("codex", THREAD, vec![THREAD], vec![NEW]),
        ("demo", OLD, vec!["--resume", OLD], vec!["--resume", NEW]),
        // In a copy of the database.
        ("opencode", OPENED, vec![], vec!["--fork"]),
    ] {
        let (was, is) = (
            args(agent, session, Kind::Resume),
            args(agent, session, Kind::Fork),
        );
        let taken: Vec<_> = was.iter().filter(|arg| !is.contains(arg)).collect();
        let added: Vec<_> = is.iter().filter(|arg| !was.contains(arg)).collect();
        let own = ["--fork-session", "--session-id", NEW];
        let own: Vec<_> = own.iter().filter(|_| agent == "claude").collect();
        let fork: Vec<_> = fork
            .iter()
            .filter(|arg| !resume.contains(arg))
            .chain(own)
            .collect();
        assert_eq!(added, fork, "{agent}");
        let resume: Vec<_> = resume
            .iter()
            .filter(|arg| !is.iter().any(|a| a == *arg))
            .collect();
        assert_eq!(taken, resume, "{agent}");
    }
}

#[test]
fn every_cli_can() {
    for adapter in ADAPTERS {
        assert!(adapter.capabilities().fork.is_some(), "{}", adapter.name());
    }
}

/// The CLI goes by the first line and by the name of the file.
#[test]
fn a_copy_of_codex_has_another_id() {
    let codex = adapter("codex").unwrap();
    let Forking::ByCopy(rename) = codex.capabilities().fork.unwrap().forking() else {
        panic!("codex copies the file");
    };
    let new = SessionId::new("01a1e008-0df0-7e1a-8ca3-a84f13b2bbe5").unwrap();
    let first = format!(
        r#"{{"ordinal":0,"type":"session_meta","payload":{{"session_id":"{THREAD}","id":"{THREAD}","cwd":"/w/{THREAD}","b":1.50}}}}"#
    );
    let renamed = rename(first.as_bytes(), &new).unwrap();
    assert_eq!(
        String::from_utf8(renamed).unwrap(),
        format!(
            r#"{{"ordinal":0,"type":"session_meta","payload":{{"session_id":"{new}","id":"{new}","cwd":"/w/{THREAD}","b":1.50}}}}"#
        )
    );
    for other in [
        "",
        "{}",
        r#"{"type":"event_msg","payload":{"id":"x"}}"#,
        "\u{1}",
    ] {
        assert_eq!(rename(other.as_bytes(), &new), None, "{other}");
    }
    let at = SessionAt {
        folder: "/w",
        session: &new,
        pin: "p",
    };
    assert_eq!(
        codex.place(&at).of_copy().unwrap(),
        format!("sessions/2026/11/15/rollout-2026-11-15T16-26-26-{new}.jsonl")
    );
}

fn asked(id: &str) -> ReadEntry {
    ReadEntry::Prompt {
        id: id.into(),
        text: id.to_uppercase(),
        at: None,
    }
}

fn told(text: &str) -> ReadEntry {
    ReadEntry::Answer {
        text: text.into(),
        at: None,
    }
}

fn reading(entries: Vec<ReadEntry>) -> Reading {
    let prompts = entries.iter().filter_map(|entry| match entry {
        ReadEntry::Prompt { id, .. } => Some(id.clone()),
        ReadEntry::Answer { .. } | ReadEntry::Did(_) | ReadEntry::Synthetic => None,
    });
    Reading {
        prompts: prompts.collect(),
        entries,
        connected: true,
        ..Reading::default()
    }
}

/// Promise 1: a fork is only gone on with if it holds what its parent held, then the new turn.
#[test]
fn what_was_added_to_a_copy() {
    let origin = reading(vec![asked("a"), told("1"), asked("b"), told("2")]);
    let grown = |more: &[ReadEntry]| reading([&origin.entries[..], more].concat());
    let own = [asked("c"), told("3")];
    let since = grown(&own).since(&origin).unwrap();
    assert_eq!(
        (&since.entries[..], &since.prompts[..]),
        (&own[..], &["c".to_owned()][..])
    );
    assert_eq!(since.confirms("c", "3"), Ok(()));
    // The CLI's own words do not count, on either side.
    let padded = [
        &[
            ReadEntry::Synthetic,
            asked("a"),
            told("1"),
            ReadEntry::Synthetic,
        ][..],
        &[asked("b"), told("2")],
        &own,
    ];
    let since = reading(padded.concat()).since(&origin).unwrap();
    assert_eq!(since.confirms("c", "3"), Ok(()));
    // The same words again are another prompt, also where it has no id of its own.
    let again = grown(&[asked("a"), told("1")]).since(&origin).unwrap();
    assert_eq!(again.confirms("a", "1"), Ok(()));
    for lost in [
        vec![],
        vec![asked("a"), told("1"), asked("c"), told("3")],
        vec![
            asked("b"),
            told("2"),
            asked("a"),
            told("1"),
            asked("c"),
            told("3"),
        ],
        vec![
            asked("a"),
            told("1"),
            asked("b"),
            told("other"),
            asked("c"),
            told("3"),
        ],
        own.to_vec(),
    ] {
        assert!(reading(lost.clone()).since(&origin).is_err(), "{lost:?}");
    }
    let twice = grown(&[asked("b"), told("2"), asked("c"), told("3")]);
    assert!(twice.since(&origin).unwrap().confirms("c", "3").is_err());
}

/// What the parent's tools did is not done again by a turn of the copy.
#[test]
fn tools_of_the_parent_are_not_the_turns_own() {
    let note = |subject: &str| ToolNote {
        tool: "Bash".into(),
        subject: subject.into(),
        changed_file: false,
        finished: true,
    };
    let denied = |id: &str| Denied {
        tool: "Bash".into(),
        id: id.into(),
        input: String::new(),
    };
    let origin = Reading {
        begun: vec![note("ls"), note("make")],
        denied: vec![denied("1")],
        compacted: true,
        ..reading(vec![])
    };
    let copy = Reading {
        begun: vec![note("ls"), note("make"), note("ls"), note("rm x")],
        denied: vec![denied("1"), denied("2")],
        compacted: true,
        ..reading(vec![])
    };
    let since = copy.since(&origin).unwrap();
    assert_eq!(since.begun, [note("ls"), note("rm x")]);
    assert_eq!(since.denied, [denied("2")]);
    assert!(!since.compacted);
}

/// Claude leaves out of a fork what it has summed up (2.1.197 and 2.1.325): the model is not shown it
/// by the parent either.
#[test]
fn what_was_summed_up_need_not_be_in_a_copy() {
    let claude = adapter("claude").unwrap();
    let line = |uuid: &str, parent: Option<&str>, kind: &str, text: &str| {
        serde_json::json!({
            "type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": false,
            "message": {"role": kind, "content": [{"type": "text", "text": text}]},
        })
        .to_string()
    };
    let boundary = r#"{"type":"system","subtype":"compact_boundary","uuid":"b","parentUuid":null,"logicalParentUuid":"a1"}"#;
    let summary = r#"{"type":"user","uuid":"s","parentUuid":"b","isCompactSummary":true,"message":{"role":"user","content":"in short"}}"#;
    let whole = [
        line("u1", None, "user", "one"),
        line("a1", Some("u1"), "assistant", "first"),
        boundary.to_owned(),
        summary.to_owned(),
        line("u2", Some("s"), "user", "two"),
        line("a2", Some("u2"), "assistant", "second"),
    ];
    let added = [
        line("u3", Some("a2"), "user", "three"),
        line("a3", Some("u3"), "assistant", "third"),
    ];
    let read = |lines: &[String]| {
        let mut reader = claude.reader(None);
        for line in lines {
            reader.line(line.as_bytes());
        }
        reader.finish()
    };
    let origin = read(&whole);
    assert!(origin.compacted && origin.connected);
    let since = |from: usize, lost: usize| {
        let mut lines = whole[from..].to_vec();
        lines.drain(lines.len() - lost..);
        let copy = read(&[&lines[..], &added[..]].concat());
        copy.since(&origin)?.confirms("u3", "third")
    };
    assert_eq!(since(0, 0), Ok(()));
    assert_eq!(since(2, 0), Ok(()));
    // But what came after it must be.
    assert!(since(2, 2).is_err());
    assert!(since(3, 0).is_err());
    assert!(since(4, 0).is_err());
    // The end of what was summed up may stand behind the boundary, which still names it.
    let kept = line("a1", Some("s"), "assistant", "first");
    let two = line("u2", Some("a1"), "user", "two");
    let [.., last] = &whole;
    let copy = [
        boundary.to_owned(),
        summary.to_owned(),
        kept,
        two,
        last.clone(),
    ];
    let copy = read(&[&copy[..], &added[..]].concat());
    assert_eq!(copy.since(&origin).unwrap().confirms("u3", "third"), Ok(()));
}
