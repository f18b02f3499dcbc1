//! Output that the real CLI cannot be made to print: over-long lines, bytes that are no text, a last
//! line cut off. A stand-in prints it.

use rejoin_testkit::{World, answer};
use serde_json::Value;

use super::REJOIN;

/// Answers like Claude Code, with `middle` before the answer and `last` as its result line.
fn stand_in(middle: &str, last: &str) -> World {
    let mut world = World::new(REJOIN);
    let bin = world.root().join("stand-in");
    let text = format!(
        r#"#!/bin/bash
case "$ANTHROPIC_API_KEY $*" in
  *--version*) echo '2.1.197 (Claude Code)'; exit;;
  *proof*) exit 1;;
  *00000000-0000-4000-8000-*) echo 'No conversation found with session ID'; exit 1;;
esac
while [ $# -gt 0 ]; do
  case $1 in --session-id|--resume) id=$2;; esac
  shift
done
read -r prompt
say() {{ printf '%s\n' "$1"; }}
say '{{"type":"system","subtype":"init","session_id":"'$id'","model":"m","tools":[],"claude_code_version":"2.1.197"}}'
{middle}
say '{{"type":"assistant","session_id":"'$id'","message":{{"id":"m1","role":"assistant","model":"m","content":[{{"type":"text","text":"{answer}"}}],"usage":{{"input_tokens":1,"output_tokens":1}}}}}}'
result='{{"type":"result","subtype":"success","is_error":false,"session_id":"'$id'","num_turns":1,"result":"{answer}","total_cost_usd":0.5,"usage":{{"input_tokens":1,"output_tokens":1}}}}'
{last}
"#,
        answer = answer(1),
    );
    world.script(&bin, &text);
    world.use_claude(&bin);
    world
}

fn notices(world: &World) -> Vec<Value> {
    let events = world.events(1, "", "once");
    events
        .into_iter()
        .filter(|e| e["type"] == "notice")
        .collect()
}

#[test]
fn any_bytes_and_any_length_pass() {
    let middle = r"printf '\xff\xfe{\000}\000\n'
printf '\n\n[]\nnull\n\x22text\x22\n{\x22type\x22:7}\n'
head -c 34000000 /dev/zero | tr '\0' x
printf '\n'";
    let world = stand_in(middle, r#"say "$result""#);
    let turn = world
        .send(1, "", &["--idempotency-key", "once"])
        .ok()
        .json();
    assert_eq!(
        (&turn["status"], &turn["text"]),
        (&"succeeded".into(), &answer(1).into())
    );
    let notices = notices(&world);
    let skipped = 34_000_000 - 32 * 1024 * 1024;
    let said = format!("{skipped} bytes of over-long lines were skipped");
    assert!(
        notices.iter().any(|n| n.to_string().contains(&said)),
        "{notices:?}"
    );
    world.assert_quiet();
}

#[test]
fn a_torn_last_line_is_never_success() {
    for last in [
        // Whole, but its end is missing.
        r#"printf '%s' "$result""#,
        r#"printf '%s' "${result%????}""#,
        // A result, and then half of another line.
        r#"say "$result"; printf '{"type":"assi'"#,
    ] {
        let world = stand_in("", last);
        let done = world.send(1, "", &["--idempotency-key", "once"]);
        let turn = done.json();
        assert_eq!(done.code, 1, "{turn}");
        assert_eq!(
            (&turn["status"], &turn["text"]),
            (&"failed".into(), &Value::Null),
            "{last}"
        );
        assert_eq!(turn["error"]["class"], "crashed", "{last}: {turn}");
        let notices = notices(&world);
        let cut = |n: &Value| n.to_string().contains("the last line is cut off after");
        assert_eq!(notices.iter().filter(|n| cut(n)).count(), 1, "{notices:?}");
        world.assert_quiet();
    }
}

/// It says it is done and then dies: the answer is whole, how the process ended is another matter.
#[test]
fn a_result_and_then_a_crash() {
    let world = stand_in("", r#"say "$result"; kill -9 $$"#);
    let turn = world.send(1, "", &[]).json();
    assert_eq!(
        (&turn["status"], &turn["text"]),
        (&"succeeded".into(), &answer(1).into()),
        "{turn}"
    );
    world.assert_quiet();
}
