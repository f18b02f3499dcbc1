use serde_json::json;

use super::*;

fn flow() -> Workflow {
    let text = concat!(
        "name: x\ninputs:\n  pr: { required: true }\n  depth: { type: integer, default: 2 }\n",
        "  files: { type: list }\n  limit: { type: number }\n  deep: { type: boolean }\n  map: { type: object }\n",
        "steps: { a: { run: [b] } }\n",
    );
    crate::parse(text, &|_| Err(String::new())).unwrap()
}

fn given(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

#[test]
fn defaults_fill_in() {
    let bound = flow().bind(&given(&json!({ "pr": "7" }))).unwrap();
    assert_eq!(
        (&bound["depth"], &bound["files"]),
        (&json!(2), &Value::Null)
    );
}

#[test]
fn each_mistake_is_a_sentence() {
    let mistakes = flow()
        .bind(&given(&json!({ "dept": 1, "depth": "2", "zzzzzzz": 1 })))
        .unwrap_err();
    assert_eq!(
        mistakes,
        [
            "unknown input `dept`; did you mean `depth`?",
            "unknown input `zzzzzzz`; known: pr, depth, files, limit, deep, map",
            "the input `pr` is required",
            "the input `depth` must be an integer",
        ]
    );
}

#[test]
fn texts_of_the_command_line() {
    let flow = flow();
    for (name, text, expected) in [
        ("pr", "7", json!("7")),
        ("depth", "7", json!(7)),
        ("limit", "0.5", json!(0.5)),
        ("deep", "true", json!(true)),
        ("files", "[1]", json!([1])),
        ("map", "{\"a\": 1}", json!({ "a": 1 })),
    ] {
        assert_eq!(flow.input_from_text(name, text), Ok(expected));
    }
    for (name, text) in [
        ("depth", "1.5"),
        ("deep", "yes"),
        ("files", "{}"),
        ("map", "x"),
        ("no", "1"),
    ] {
        assert!(flow.input_from_text(name, text).is_err(), "{name}={text}");
    }
}
