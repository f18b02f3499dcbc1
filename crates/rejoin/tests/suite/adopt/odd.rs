//! Sessions that are not as they should be, or not anybody's to adopt.

use rejoin_testkit::{CLAUDE_197, CODEX_166, GEMINI_061, World, assert_shown, user};
use serde_json::json;

use super::together::{put, put_claude};
use super::{adopted, alone, goes_on, keep_gemini, listed, messages};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// Whatever lies there, nothing fails.
#[test]
fn other_files_are_passed_over() {
    let Some(world) = World::of(REJOIN, &CLAUDE_197) else {
        return;
    };
    alone(&world, world.cli, None, 1);
    let id = "5a1b7f8e-0000-4000-8000-00000000000";
    let junk: [(&str, &str); 9] = [
        ("1.jsonl", ""),
        ("2.jsonl", "\0\0\0"),
        ("3.jsonl", "{}\n[]\n\"x\"\n"),
        ("4.jsonl", "not JSON\n{\"type\":\"user\""),
        (
            "5.jsonl",
            "{\"type\":\"summary\",\"summary\":\"x\",\"leafUuid\":\"y\"}\n",
        ),
        ("6.json", "{}"),
        ("agent-7.jsonl", "{}"),
        ("8.jsonl.bak", "{}"),
        ("9/x.jsonl", "{}"),
    ];
    let file = world.sessions().pop().unwrap();
    for (name, text) in junk {
        let path = file.parent().unwrap().join(format!("{id}{name}"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    std::fs::create_dir(file.parent().unwrap().join(format!("{id}a.jsonl"))).unwrap();
    let gone = file.parent().unwrap().join(format!("{id}b.jsonl"));
    std::os::unix::fs::symlink("/nowhere", gone).unwrap();
    let codex = "rollout-2026-11-15T08-18-19-01a1de49-2a24-76f0-a68b-5ddf34f7f103.jsonl";
    put(
        &world,
        &format!(".codex/sessions/2026/11/15/{codex}"),
        "junk\n",
    );
    put(
        &world,
        ".gemini/tmp/x/chats/session-2026-11-15T08-19-aaaaaaaa.json",
        "[1]",
    );
    put(
        &world,
        ".gemini/tmp/x/chats/session-2026-11-15T08-19-bbbbbbbb.jsonl",
        "{\"sessionId\":7}",
    );
    put(
        &world,
        ".local/share/opencode/opencode.db",
        "not a database",
    );
    put(&world, ".local/share/opencode/opencode-2.db", "");
    assert_eq!(listed(&world, &["--everywhere"]).len(), 1);
    assert_eq!(adopted(&world, &["--all", "--everywhere"]).len(), 1);
}

/// What was cut off, or cannot be read, is told to the next session: all of it, once.
#[test]
fn what_cannot_be_resumed_is_told() {
    let Some(world) = World::of(REJOIN, &CLAUDE_197) else {
        return;
    };
    alone(&world, world.cli, None, 1);
    let id = listed(&world, &[])[0]["session_id"]
        .as_str()
        .unwrap()
        .to_owned();
    alone(&world, world.cli, Some(&id), 2);
    // The answer to the second message is gone.
    let file = world.sessions().pop().unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let answered = text.rfind("\"type\":\"assistant\"").unwrap();
    let line = text[..answered].rfind('\n').unwrap() + 1;
    std::fs::write(&file, &text[..line]).unwrap();
    let one = &adopted(&world, &[&id])[0];
    assert_eq!(
        (&one["messages"], &one["resumable"]),
        (&json!(3), &json!(false)),
        "{one:#}"
    );
    let note = one["note"].as_str().unwrap();
    assert!(note.starts_with("its last message has no answer"), "{note}");
    let said = messages(&world, one);
    assert_eq!(said[2]["state"], "unanswered", "{said:#?}");
    // Nothing of the user's was changed; what they say there next is taken in as well.
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text[..line]);
    alone(&world, world.cli, Some(&id), 3);
    let grown = listed(&world, &[]);
    assert_eq!(
        (&grown[0]["state"], &grown[0]["new_messages"]),
        (&json!("grown"), &json!(2))
    );
    let text = format!("{} #s:a4", user(4));
    let handle = one["handle"].as_str().unwrap();
    let turn = world
        .run(&["send", "--json", "-c", handle, &text])
        .ok()
        .json();
    assert_eq!(
        (&turn["verdict"], &turn["reason"]),
        (&json!("reseeded"), &json!("no_session"))
    );
    let mut words = rejoin_testkit::said([1]);
    words.push(user(2));
    words.extend(rejoin_testkit::said([3]));
    words.push(user(4));
    assert_shown(&world.model.last(), &words);
}

#[test]
fn a_damaged_session_is_told() {
    let Some(world) = World::of(REJOIN, &CODEX_166) else {
        return;
    };
    alone(&world, world.cli, None, 1);
    let id = listed(&world, &[])[0]["session_id"]
        .as_str()
        .unwrap()
        .to_owned();
    alone(&world, world.cli, Some(&id), 2);
    let file = world.sessions().pop().unwrap();
    let mut lines: Vec<String> = std::fs::read_to_string(&file)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    let counted = lines.iter().position(|l| l.contains("token_count"));
    lines[counted.unwrap()] = "garbage".into();
    std::fs::write(&file, lines.join("\n") + "\n").unwrap();
    let one = &adopted(&world, &["--all"])[0];
    assert_eq!(one["resumable"], false, "{one:#}");
    let note = one["note"].as_str().unwrap();
    assert!(note.starts_with("1 line of it cannot be read"), "{note}");
    let turn = goes_on(&world, one, 3, &[1, 2]);
    assert_eq!(turn["verdict"], "reseeded");
}

/// A chat as older versions of Gemini kept it goes on as well, in a copy.
#[test]
fn an_old_chat_goes_on() {
    let Some(world) = World::of(REJOIN, &GEMINI_061) else {
        return;
    };
    keep_gemini(&world);
    let work = world.work().canonicalize().unwrap();
    let message = |id: &str, kind: &str, text: String| json!({"id": id, "timestamp": "2025-09-01T10:00:01.000Z", "type": kind, "content": text});
    let old = json!({
        "sessionId": "0b9e2f6a-1111-4222-8333-444455556666", "projectHash": "x",
        "startTime": "2025-09-01T10:00:00.000Z", "lastUpdated": "2025-09-01T11:00:00.000Z",
        "messages": [
            message("1", "user", format!("{} #s:a1", user(1))),
            message("2", "gemini", rejoin_testkit::answer(1)),
        ],
    });
    let file = ".gemini/tmp/w/chats/session-2025-09-01T10-00-0b9e2f6a.json";
    put(&world, file, &format!("{old:#}"));
    put(
        &world,
        ".gemini/tmp/w/.project_root",
        work.to_str().unwrap(),
    );
    let one = &adopted(&world, &["--all"])[0];
    assert_eq!(
        (&one["copied"], &one["resumable"]),
        (&json!(true), &json!(true)),
        "{one:#}"
    );
    let turn = goes_on(&world, one, 2, &[1]);
    assert_eq!(turn["verdict"], "resumed", "{turn:#}");
    let left = std::fs::read_to_string(world.home().join(file)).unwrap();
    assert_eq!(left, format!("{old:#}"));
}

/// Piped it is a list, and nothing happens; mistakes are said.
#[test]
fn a_script_gets_a_list_and_errors() {
    let Some(world) = World::of(REJOIN, &CLAUDE_197) else {
        return;
    };
    let none = world.run(&["adopt"]).ok();
    assert_eq!(none.stdout, "");
    assert!(
        none.stderr.contains("rejoin adopt --everywhere"),
        "{none:?}"
    );
    let id = "b731fd0c-68de-4452-a02a-ef7d040b8069";
    put_claude(&world, &format!("2.1.197/sessions/{id}"), id);
    let list = world.run(&["adopt"]).ok();
    assert!(
        list.stdout.starts_with(&format!("{id}  claude  ")),
        "{list:?}"
    );
    assert!(list.stderr.contains("nothing was adopted"), "{list:?}");
    let conversations = world.run(&["list", "--json"]).ok().json();
    assert_eq!(conversations["conversations"], json!([]));
    for (args, code, word) in [
        (&["adopt", "nosuch"][..], 3, "no session `nosuch`"),
        (&["adopt", "b73"], 3, "no session `b73`"),
        (&["adopt", "--agent", "nobody"], 3, "nobody"),
        (&["adopt", "./nowhere"], 2, "does not exist"),
        (&["adopt", ".", ".."], 2, "only one folder"),
    ] {
        let done = world.run(args);
        assert_eq!(done.code, code, "{args:?} {done:?}");
        assert!(
            done.stderr.contains(word) && done.stderr.contains("try: "),
            "{done:?}"
        );
    }
    let done = world.run(&["adopt", &id[..8]]).ok();
    assert!(done.stdout.contains("claude  2 messages"), "{done:?}");
    let again = world.run(&["adopt", "--all"]).ok();
    assert_eq!(again.stdout, "");
    assert!(again.stderr.contains("nothing new"), "{again:?}");
}

#[test]
fn its_help_fits_a_screen() {
    let world = crate::suite::terminal::world();
    insta::assert_snapshot!(world.run(&["adopt", "--help"]).ok().stdout, @r"
    Adopt sessions that were made without rejoin

    Usage: rejoin adopt [OPTIONS] [DIR]...

    Arguments:
      [DIR]...  Folder (default: this one), or session ids or prefixes of them

    Options:
      -a, --agent <AGENT>  Only sessions of this agent
          --all            Adopt all of them
          --everywhere     Sessions of all folders

    Examples:
      rejoin adopt                 choose among the sessions of this folder
      rejoin adopt --all           all of them
      rejoin adopt 01a1de49        the session whose id begins so, in any folder

    Everywhere: --json, -q, --config FILE, -h
    ");
}
