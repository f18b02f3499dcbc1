use serde_json::json;

use super::*;

fn schema() -> AnswerSchema {
    let schema = json!({
        "type": "object",
        "required": ["verdict"],
        "properties": { "verdict": { "enum": ["approve", "change"] }, "notes": { "type": "array" } },
    });
    AnswerSchema::new(&schema).unwrap()
}

#[test]
fn the_value_of_an_answer() {
    let approve = json!({ "verdict": "approve" });
    for answer in [
        r#"{"verdict":"approve"}"#,
        "  \n{\"verdict\":\"approve\"}\n",
        "Here:\n```json\n{\"verdict\": \"approve\"}\n```\nDone.",
        "First:\n```json\n{\"verdict\": \"change\"}\n```\nno:\n~~~\n{\"verdict\": \"approve\"}\n~~~",
        "```json\n{\"verdict\": \"approve\"}\n```\n```sh\nls -l\n```",
        "````\n{\"verdict\":\n\"approve\"}\n````",
    ] {
        assert_eq!(schema().check(answer), Ok(approve.clone()), "{answer}");
    }
}

#[test]
fn an_answer_that_does_not_fit() {
    let error = schema()
        .check("```json\n{\"verdict\": \"maybe\", \"notes\": 1}\n```")
        .unwrap_err();
    assert!(
        error.contains("/verdict: \"maybe\" is not one of"),
        "{error}"
    );
    assert!(
        error.contains("/notes: 1 is not of type \"array\""),
        "{error}"
    );
    assert!(
        schema()
            .check("I approve.")
            .unwrap_err()
            .contains("not JSON")
    );
    assert!(schema().check("").is_err());
    assert!(schema().check("{\"verdict\"").is_err());
}

#[test]
fn an_error_is_short() {
    let list =
        AnswerSchema::new(&json!({ "type": "array", "items": { "type": "integer" } })).unwrap();
    let error = list
        .check(&format!("[{}\"\"]", "\"x\", ".repeat(100)))
        .unwrap_err();
    assert_eq!(error.lines().count(), MAX_LINES + 1);
    let long = list
        .check(&format!("[\"{}\"]", "x".repeat(100_000)))
        .unwrap_err();
    assert!(long.len() < 2_000);
}

#[test]
fn references_stay_within() {
    for reference in [
        "https://example.com/a.json",
        "file:///etc/passwd",
        "other.json",
        "#name",
    ] {
        let error = AnswerSchema::new(
            &json!({ "type": "object", "properties": { "a": { "$ref": reference } } }),
        );
        assert!(
            error.unwrap_err().contains("leads out of the schema"),
            "{reference}"
        );
    }
    for schema in [
        json!({ "type": "object", "$ref": "#" }),
        json!({ "type": "object", "allOf": [{ "$ref": "#/$defs/a" }], "$defs": { "a": { "anyOf": [{ "$ref": "#" }] } } }),
        json!({ "type": "object", "$defs": { "a": { "$ref": "#/$defs/a" } } }),
    ] {
        assert!(
            AnswerSchema::new(&schema)
                .unwrap_err()
                .contains("leads back to itself"),
            "{schema}"
        );
    }
    let tree = json!({ "type": "object", "properties": { "child": { "$ref": "#" } }, "additionalProperties": false });
    let tree = AnswerSchema::new(&tree).unwrap();
    assert!(tree.check(r#"{"child":{"child":{}}}"#).is_ok());
    assert!(tree.check(r#"{"child":{"child":{"x":1}}}"#).is_err());
}

#[test]
fn a_schema_must_be_valid() {
    assert!(
        AnswerSchema::new(&json!({ "type": "objekt" }))
            .unwrap_err()
            .contains("not valid")
    );
    assert!(AnswerSchema::new(&json!({ "type": "string", "pattern": "(" })).is_err());
    assert!(AnswerSchema::new(&json!({ "type": "string", "$id": "https://x.y" })).is_err());
}
