//! Common parts of OpenAI's two APIs.

use serde_json::{Value, json};

use crate::answer::Fault;

/// Body of a failure, see <https://platform.openai.com/docs/guides/error-codes>.
pub(super) fn failure(fault: &Fault) -> Value {
    let (kind, code) = usual(fault.status);
    let kind = fault.kind.as_deref().unwrap_or(kind);
    let code = if too_long(fault) {
        Some(TOO_LONG)
    } else {
        code
    };
    json!({"error": {"message": fault.message, "type": kind, "param": null, "code": code}})
}

/// Code by which clients tell a full context window from other bad requests.
pub(super) const TOO_LONG: &str = "context_length_exceeded";

pub(super) fn too_long(fault: &Fault) -> bool {
    fault.message.starts_with("prompt is too long")
}

/// Returns type and code of a failure with this status.
fn usual(status: u16) -> (&'static str, Option<&'static str>) {
    match status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        429 => ("requests", Some("rate_limit_exceeded")),
        500.. => ("server_error", None),
        _ => ("invalid_request_error", None),
    }
}

/// Returns a list of models: one for OpenAI's clients, and none under the key that Codex reads,
/// which then uses those it knows.
pub(super) fn models() -> Value {
    let model = json!({"id": "scripted", "object": "model", "created": 0, "owned_by": "rejoin"});
    json!({"object": "list", "data": [model], "models": []})
}

/// Returns the text blocks of a message: a plain string, or the parts of these types.
pub(super) fn texts(content: &Value, types: &[&str]) -> Vec<String> {
    if let Some(text) = content.as_str() {
        return vec![text.to_owned()];
    }
    let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
    parts
        .iter()
        .filter(|part| {
            part["type"]
                .as_str()
                .is_some_and(|kind| types.contains(&kind))
        })
        .filter_map(|part| part["text"].as_str().map(str::to_owned))
        .collect()
}

/// Returns true if a message contains more than text.
pub(super) fn attachment(content: &Value, types: &[&str]) -> bool {
    let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
    parts.iter().any(|part| {
        !part["type"]
            .as_str()
            .is_some_and(|kind| types.contains(&kind))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_have_type_and_code() {
        let long = "prompt is too long: 2 tokens > 1 maximum";
        let table = [
            (400, "m", "invalid_request_error", json!(null)),
            (
                400,
                long,
                "invalid_request_error",
                json!("context_length_exceeded"),
            ),
            (401, "m", "invalid_request_error", json!("invalid_api_key")),
            (429, "m", "requests", json!("rate_limit_exceeded")),
            (529, "m", "server_error", json!(null)),
        ];
        for (status, message, kind, code) in table {
            let error = json!({"message": message, "type": kind, "param": null, "code": code});
            assert_eq!(
                failure(&Fault::new(status, message)),
                json!({"error": error})
            );
        }
    }
}
