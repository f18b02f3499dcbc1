//! Histories that are accepted and histories that are refused.

use serde_json::{Value, json};

use super::check;

fn user(content: &Value) -> Value {
    json!({"role": "user", "content": content})
}

fn assistant(content: &Value) -> Value {
    json!({"role": "assistant", "content": content})
}

fn uses(ids: &[&str]) -> Value {
    let blocks = ids
        .iter()
        .map(|id| json!({"type": "tool_use", "id": id, "name": "B", "input": {}}));
    assistant(&Value::Array(blocks.collect()))
}

fn results(ids: &[&str]) -> Value {
    let blocks = ids
        .iter()
        .map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": ""}));
    user(&Value::Array(blocks.collect()))
}

fn checked(messages: &[Value]) -> Result<(), String> {
    check(&json!({"messages": messages}))
}

#[test]
fn good_histories_are_taken() {
    let hi = user(&json!("hi"));
    let text = |text| json!([{"type": "text", "text": text}]);
    let system = json!({"role": "system", "content": "reminder"});
    let table = [
        vec![hi.clone()],
        vec![hi.clone(), hi.clone()],
        vec![hi.clone(), assistant(&json!([]))],
        vec![hi.clone(), assistant(&json!(""))],
        vec![
            hi.clone(),
            assistant(&text("a")),
            assistant(&text("b")),
            user(&text("c")),
        ],
        vec![hi.clone(), uses(&["1"]), results(&["1"])],
        vec![
            hi.clone(),
            uses(&["1", "2"]),
            results(&["2", "1"]),
            system.clone(),
        ],
        vec![
            hi.clone(),
            uses(&["1", "2"]),
            results(&["2"]),
            results(&["1"]),
        ],
        vec![
            hi.clone(),
            uses(&["1"]),
            system,
            results(&["1"]),
            hi.clone(),
        ],
        vec![
            hi.clone(),
            uses(&["1"]),
            results(&["1"]),
            uses(&["2"]),
            results(&["2"]),
        ],
        vec![
            hi.clone(),
            json!({"role": "system", "content": [], "output_config": {"effort": "medium"}}),
        ],
        vec![
            hi,
            assistant(&json!([{"type": "server_tool_use", "id": "s"}])),
        ],
    ];
    for messages in table {
        assert_eq!(checked(&messages), Ok(()), "{messages:?}");
    }
}

#[test]
fn bad_histories_are_refused() {
    let hi = user(&json!("hi"));
    let text = |text| user(&json!([{"type": "text", "text": text}]));
    let table = [
        (vec![], "at least one message"),
        (vec![json!(1)], "messages.0.role"),
        (
            vec![json!({"role": "tool", "content": "x"})],
            "messages.0.role",
        ),
        (vec![json!({"role": "user"})], "messages.0.content"),
        (
            vec![user(&json!([]))],
            "messages.0: all messages must have non-empty content",
        ),
        (
            vec![user(&json!(""))],
            "all messages must have non-empty content",
        ),
        (
            vec![assistant(&json!([])), hi.clone()],
            "all messages must have non-empty content",
        ),
        (
            vec![hi.clone(), text("")],
            "messages.1: text content blocks must be non-empty",
        ),
        (vec![text(" \n")], "must contain non-whitespace text"),
        (vec![user(&json!("  "))], "must contain non-whitespace text"),
        (
            vec![hi.clone(), results(&["1"])],
            "messages.1.content.0: unexpected `tool_use_id`",
        ),
        (
            vec![hi.clone(), uses(&["1"]), results(&["2"])],
            "messages.1: `tool_use` ids were found",
        ),
        (
            vec![hi.clone(), uses(&["1"]), results(&["1", "2"])],
            "messages.2.content.1: unexpected",
        ),
        (
            vec![hi.clone(), uses(&["1"]), results(&["1", "1"])],
            "must have a single result",
        ),
        (
            vec![
                hi.clone(),
                uses(&["1"]),
                results(&["1"]),
                assistant(&json!("x")),
                results(&["1"]),
            ],
            "messages.4.content.0: unexpected",
        ),
        (
            vec![hi.clone(), uses(&["1", "2"]), results(&["1"])],
            "immediately after: 2.",
        ),
        (vec![hi.clone(), uses(&["1"])], "immediately after: 1."),
        (vec![hi.clone(), uses(&["1"]), hi], "immediately after: 1."),
    ];
    for (messages, expected) in table {
        let error = checked(&messages).unwrap_err();
        assert!(error.contains(expected), "{messages:?}: {error}");
    }
}

#[test]
fn a_body_without_messages_is_refused() {
    for body in [json!({}), json!(null), json!({"messages": "hi"})] {
        assert!(check(&body).is_err(), "{body}");
    }
}
