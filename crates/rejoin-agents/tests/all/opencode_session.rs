//! Captured sessions of OpenCode, and what is read in them.

use std::fmt::Write as _;

use rejoin_agents::{ReadEntry, Reading, adapter, text_mark};
use serde_json::{Value, json};

fn read(lines: &[Vec<u8>], cursor: Option<&str>) -> Reading {
    let mut reader = adapter("opencode").unwrap().reader(cursor);
    for line in lines {
        reader.line(line);
    }
    reader.finish()
}

/// What the CLI exports, as the rows of its database.
fn exported(name: &str) -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/opencode/1.18.33");
    let text = std::fs::read_to_string(format!("{folder}/{name}.json")).unwrap();
    let export: Value = serde_json::from_str(&text).unwrap();
    let rows = export["messages"].as_array().unwrap().iter();
    rows.map(|m| row(m["info"]["id"].as_str().unwrap(), &m["info"], &m["parts"]))
        .collect()
}

fn row(id: &str, message: &Value, parts: &Value) -> Vec<u8> {
    let row = json!({"id": id, "session": "ses_a", "message": message, "parts": parts});
    row.to_string().into_bytes()
}

fn prompt(id: &str, text: &str) -> Vec<u8> {
    let parts = json!([{"type": "text", "text": text}]);
    row(id, &json!({"role": "user"}), &parts)
}

fn answer(id: &str, text: &str) -> Vec<u8> {
    let parts = json!([{"type": "text", "text": text}]);
    row(id, &json!({"role": "assistant", "finish": "stop"}), &parts)
}

fn told(name: &str, reading: &Reading) -> String {
    let mut out = format!(
        "== {name}: connected {} unfinished {} damaged {} orphaned {} compacted {} cursor {:?} model {:?} of {:?}\n",
        reading.connected,
        reading.unfinished,
        reading.damaged_lines,
        reading.orphaned_calls,
        reading.compacted,
        reading.cursor,
        reading.model,
        reading.provider
    );
    for entry in &reading.entries {
        let line: String = format!("{entry:?}").chars().take(160).collect();
        writeln!(out, "  {line}").unwrap();
    }
    for note in &reading.begun {
        writeln!(out, "  {note:?}").unwrap();
    }
    out
}

#[test]
fn whole_sessions() {
    let names = ["export", "export_killed", "import_synthetic"];
    let told = names.map(|name| told(name, &read(&exported(name), None)));
    insta::assert_snapshot!(told.concat());
}

#[test]
fn a_turn_is_confirmed_by_its_words() {
    let sent = "<rejoin>\nStanding instructions of the product you work in:\nx\n</rejoin>\n\nhello";
    let lines = [prompt("m1", sent), answer("m2", "hi")];
    let reading = read(&lines, None);
    let mark = text_mark(sent);
    assert_eq!(reading.confirms(&mark, "hi"), Ok(()));
    assert!(reading.confirms(&mark, "ho").is_err());
    assert!(reading.confirms(&text_mark("hello"), "hi").is_err());
    let own = &reading.entries[0];
    assert!(
        matches!(own, ReadEntry::Prompt { text, .. } if text == "hello"),
        "{own:?}"
    );
}

#[test]
fn it_goes_on_from_the_cursor() {
    let (one, two) = (prompt("m1", "a"), answer("m2", "b"));
    let (three, four) = (prompt("m3", "c"), answer("m4", "d"));
    assert_eq!(
        read(&[one.clone(), two.clone()], None).cursor.unwrap(),
        "m2"
    );
    let on = read(&[two.clone(), three.clone(), four.clone()], Some("m2"));
    assert_eq!(on.confirms(&text_mark("c"), "d"), Ok(()));
    assert_eq!(on.cursor.as_deref(), Some("m4"));
    // Nothing was added.
    let same = read(std::slice::from_ref(&two), Some("m2"));
    assert!(same.connected && same.entries.is_empty());
    assert_eq!(same.cursor.as_deref(), Some("m2"));
    // Something stands before it, it is gone, or somebody else's session is in there too.
    assert!(!read(&[three.clone(), two.clone(), four.clone()], Some("m2")).connected);
    assert!(!read(&[one.clone(), three.clone(), four.clone()], Some("m2")).connected);
    assert!(!read(&[], Some("m2")).connected);
    assert!(read(&[two.clone(), four.clone()], Some("m2")).only_added);
    let undone = String::from_utf8(two.clone()).unwrap();
    let undone = undone.replacen('{', r#"{"taken_back":1,"#, 1).into_bytes();
    assert!(!read(&[undone], Some("m2")).connected);
    // The end was taken back: what is later was added, and nothing else was.
    let taken_back = read(std::slice::from_ref(&four), Some("m2"));
    assert!(taken_back.only_added && !taken_back.connected);
    assert!(!read(&[one.clone(), four.clone()], Some("m2")).only_added);
    assert!(!read(&[three.clone(), two.clone()], Some("m2")).only_added);
    let foreign = String::from_utf8(four).unwrap().replace("ses_a", "ses_b");
    assert!(!read(&[two, foreign.into_bytes()], Some("m2")).connected);
}

#[test]
fn what_is_broken_off_is_not_confirmed() {
    let open = json!([{"type": "tool", "tool": "bash", "callID": "c",
        "state": {"status": "running", "input": {"command": "sleep 9"}}}]);
    let calls = json!({"role": "assistant", "finish": "tool-calls"});
    let reading = read(&[prompt("m1", "a"), row("m2", &calls, &open)], None);
    assert_eq!(reading.orphaned_calls, 1);
    let note = &reading.begun[0];
    assert_eq!((note.subject.as_str(), note.finished), ("sleep 9", false));
    let half = row("m2", &json!({"role": "assistant"}), &json!([]));
    let half = read(&[prompt("m1", "a"), half], None);
    assert!(half.unfinished && half.whole().is_err());
    assert_eq!(read(&[b"{".to_vec()], None).damaged_lines, 1);
}

/// The CLI's own words are never a message; a denied call did nothing.
#[test]
fn synthetic_words() {
    let summary = json!({"role": "assistant", "finish": "stop", "summary": true});
    let said = json!([{"type": "text", "text": "we did this and that"}]);
    let compaction = json!([{"type": "compaction", "auto": true}]);
    let go_on = json!([{"type": "text", "text": "Continue", "synthetic": true}]);
    let user = json!({"role": "user", "summary": {"diffs": []}});
    let denied = json!([{"type": "tool", "tool": "bash", "state": {"status": "error",
        "input": {}, "error": "The user has specified a rule which prevents you"}}]);
    let reading = read(
        &[
            prompt("m1", "a"),
            answer("m2", "b"),
            row("m3", &user, &compaction),
            row("m4", &summary, &said),
            row("m5", &user, &go_on),
            row(
                "m6",
                &json!({"role": "assistant", "finish": "tool-calls"}),
                &denied,
            ),
            answer("m7", "c"),
        ],
        None,
    );
    assert!(reading.compacted && reading.begun.is_empty());
    assert_eq!(reading.confirms(&text_mark("a"), "b\n\nc"), Ok(()));
}

mod any {
    use proptest::prelude::*;

    use super::{exported, read};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn bytes_never_panic(lines in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..20)) {
            read(&lines, Some("x y"));
            read(&lines, None);
        }

        #[test]
        fn changed_sessions_never_panic(at in any::<prop::sample::Index>(), byte in any::<u8>(), place in any::<prop::sample::Index>()) {
            let mut lines = exported("export_killed");
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
