//! Checks if the real Gemini API would accept a history. Uses its own messages as far as known.
//!
//! Gemini CLI 0.61.0 itself breaks these rules: when it resumes a session with tools it sends each
//! `functionResponse` twice, and after a refused tool one without its call. It was not tried if the
//! real API is that strict about ids; according to many reports it is about the counts.

use serde_json::Value;

/// Checks a history. Returns the error.
pub(super) fn check(body: &Value) -> Result<(), String> {
    let contents = super::list(&body["contents"]);
    if contents.is_empty() {
        return Err("* GenerateContentRequest.contents: contents is not specified".to_owned());
    }
    let mut open: Vec<&Value> = Vec::new();
    for (position, content) in contents.iter().enumerate() {
        let parts = super::list(&content["parts"]);
        check_role(content)?;
        if parts.is_empty() {
            return Err(format!(
                "* GenerateContentRequest.contents[{position}].parts: contents.parts must not be \
                 empty."
            ));
        }
        check_responses(&open, &named(parts, "functionResponse"))?;
        open = named(parts, "functionCall");
        if !open.is_empty() && (position == 0 || content["role"] != "model") {
            return Err(
                "Please ensure that function call turn comes immediately after a user turn or \
                 after a function response turn."
                    .to_owned(),
            );
        }
    }
    check_responses(&open, &[])
}

fn check_role(content: &Value) -> Result<(), String> {
    match content["role"].as_str() {
        Some("user" | "model") | None => Ok(()),
        Some(_) => Err("Please use a valid role: user, model.".to_owned()),
    }
}

/// Checks that the content after one with calls answers each of them once, and that no other
/// content has answers.
fn check_responses(calls: &[&Value], responses: &[&Value]) -> Result<(), String> {
    if calls.is_empty() && !responses.is_empty() {
        return Err(
            "Please ensure that function response turn comes immediately after a function call \
             turn."
                .to_owned(),
        );
    }
    if calls.len() != responses.len() {
        return Err(
            "Please ensure that the number of function response parts is equal to the number of \
             function call parts of the function call turn."
                .to_owned(),
        );
    }
    let (called, answered) = (keys(calls), keys(responses));
    if called != answered {
        return Err(format!(
            "Please ensure that each function response part answers a function call part of the \
             function call turn: {} are not {}",
            answered.join(", "),
            called.join(", ")
        ));
    }
    Ok(())
}

/// Returns names or ids in a fixed order: answers may come in any order.
fn keys(parts: &[&Value]) -> Vec<String> {
    let ids = parts.iter().all(|part| part["id"].is_string());
    let mut keys: Vec<String> = parts
        .iter()
        .map(|part| if ids { &part["id"] } else { &part["name"] })
        .map(|key| key.as_str().unwrap_or_default().to_owned())
        .collect();
    keys.sort();
    keys
}

fn named<'a>(parts: &'a [Value], name: &str) -> Vec<&'a Value> {
    parts.iter().filter_map(|part| part.get(name)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(role: &str, text: &str) -> Value {
        json!({"role": role, "parts": [{"text": text}]})
    }

    fn parts(role: &str, name: &str, ids: &[&str]) -> Value {
        let parts = ids
            .iter()
            .map(|id| json!({name: {"id": id, "name": "shell"}}));
        json!({"role": role, "parts": parts.collect::<Vec<_>>()})
    }

    fn calls(ids: &[&str]) -> Value {
        parts("model", "functionCall", ids)
    }

    fn responses(ids: &[&str]) -> Value {
        parts("user", "functionResponse", ids)
    }

    #[test]
    fn good_histories_are_taken() {
        let hi = said("user", "hi");
        let table = [
            vec![hi.clone(), hi.clone(), said("model", "a"), hi.clone()],
            vec![
                hi.clone(),
                calls(&["1", "2"]),
                responses(&["2", "1"]),
                said("model", "a"),
            ],
            vec![
                hi,
                calls(&["1"]),
                responses(&["1"]),
                calls(&["2"]),
                responses(&["2"]),
            ],
            vec![json!({"parts": [{"text": "no role"}]})],
        ];
        for contents in table {
            assert_eq!(check(&json!({"contents": contents})), Ok(()));
        }
    }

    #[test]
    fn bad_histories_are_refused() {
        let hi = said("user", "hi");
        let table = [
            (vec![], "contents is not specified"),
            (vec![said("assistant", "x")], "valid role"),
            (
                vec![json!({"role": "user", "parts": []})],
                "contents[0].parts",
            ),
            (
                vec![hi.clone(), responses(&["1"])],
                "immediately after a function call",
            ),
            (
                vec![hi.clone(), calls(&["1"]), responses(&["2"])],
                "2 are not 1",
            ),
            (
                vec![hi.clone(), calls(&["1"]), responses(&["1", "1"])],
                "number of function",
            ),
            (
                vec![hi.clone(), calls(&["1", "2"]), responses(&["1"])],
                "number of function",
            ),
            (
                vec![hi.clone(), calls(&["1"]), hi.clone()],
                "number of function",
            ),
            (vec![hi, calls(&["1"])], "number of function"),
            (vec![calls(&["1"]), responses(&["1"])], "after a user turn"),
        ];
        for (contents, expected) in table {
            let error = check(&json!({"contents": contents})).unwrap_err();
            assert!(error.contains(expected), "{contents:?}: {error}");
        }
        assert!(check(&json!(null)).is_err());
    }
}
