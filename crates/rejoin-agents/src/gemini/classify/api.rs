//! Classification of API failures.

use rejoin_core::{Class, Failure};
use serde_json::Value;

use crate::failure;

/// Texts with which the API refuses the history itself. The session keeps the refused content, so
/// every retry fails. Lower case.
const POISON: &[&str] = &[
    "function call parts",
    "function call turn",
    "function response turn",
    "thought_signature",
    "thought signature",
    "parts must not be empty",
    "unable to process input image",
];
const OVERFLOW: &[&str] = &[
    "maximum number of tokens",
    "input token count",
    "prompt is too long",
    "token limit",
    "context window",
];
const LOGIN: &[&str] = &[
    "api key not valid",
    "api_key_invalid",
    "unauthenticated",
    "invalid authentication",
    "permission_denied",
];
const LIMIT: &[&str] = &[
    "quota",
    "rate limit",
    "resource_exhausted",
    "resource has been exhausted",
    "suggested retry after",
    "increase your limits",
];
const NETWORK: &[&str] = &[
    "econn",
    "eai_again",
    "enotfound",
    "etimedout",
    "fetch failed",
    "incomplete",
    "internal error",
    "network",
    "overloaded",
    "socket",
    "stream ended",
    "terminated",
    "timed out",
    "timeout",
    "unavailable",
];
/// The model answered, but without text.
const EMPTY: &[&str] = &["empty response", "only thoughts", "thinking", "malformed"];
const BLOCKED: &[&str] = &["blocked", "recitation", "safety"];

/// Derives the HTTP status from the exit code, which is the status modulo 256. None if the code is
/// one of the CLI's own, which are 1, 41 to 55 and 130.
pub(super) fn status_of(code: Option<i32>) -> Option<u64> {
    let code = u64::try_from(code?).ok()?;
    match code {
        144..=255 => Some(code + 256),
        17 => Some(529),
        _ => None,
    }
}

pub(super) fn failure(text: &str, status: Option<u64>) -> Failure {
    let (said, named) = unwrapped(text);
    let class = class(&said, named.or(status));
    failure::of_api(class, &failure::sentence(&said, ""))
}

fn class(said: &str, status: Option<u64>) -> Class {
    let text = said.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    match status {
        Some(401 | 403) => Class::Auth,
        Some(413) => Class::ContextOverflow,
        // Over the protocol, 0.51.0 reports the same status for every failure.
        Some(500..) if says(&["rate limit", "quota"]) => Class::Quota,
        Some(408 | 409 | 500..) => Class::Transient,
        Some(402 | 429) => Class::Quota,
        Some(400) if says(LOGIN) => Class::Auth,
        Some(400) if says(OVERFLOW) => Class::ContextOverflow,
        Some(400) if says(POISON) => Class::Poisoned,
        Some(400..=499) => Class::InvalidRequest,
        Some(_) | None => {
            if says(OVERFLOW) {
                Class::ContextOverflow
            } else if says(POISON) {
                Class::Poisoned
            } else if says(LIMIT) {
                Class::Quota
            } else if says(LOGIN) {
                Class::Auth
            } else if says(BLOCKED) {
                Class::InvalidRequest
            } else if says(NETWORK) || says(EMPTY) {
                Class::Transient
            } else {
                Class::Unknown
            }
        }
    }
}

/// Parses `[API Error: {"error":{"code":400,"message":"…"}}]`, or plain text in these brackets.
fn unwrapped(text: &str) -> (String, Option<u64>) {
    let inner = text.trim().strip_prefix("[API Error: ").unwrap_or(text);
    let json = inner.find('{').and_then(|from| {
        let mut values = serde_json::Deserializer::from_str(&inner[from..]).into_iter::<Value>();
        values.next()?.ok()
    });
    let error = json.as_ref().map(|json| &json["error"]);
    let status = error.and_then(|error| error["code"].as_u64());
    match error.and_then(|error| error["message"].as_str()) {
        Some(said) => (said.to_owned(), status),
        None => (inner.replacen(']', "", 1), status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes() {
        let json = |code: u64, message: &str| {
            format!(
                r#"[API Error: {{"error":{{"code":{code},"message":"{message}","status":"X"}}}}]"#
            )
        };
        let table: &[(&str, Option<i32>, Class)] = &[
            (&json(400, "bad"), Some(144), Class::InvalidRequest),
            (&json(400, "API key not valid."), Some(144), Class::Auth),
            (&json(401, "x"), Some(145), Class::Auth),
            (
                &json(404, "models/x is not found"),
                Some(1),
                Class::InvalidRequest,
            ),
            (&json(500, "x"), Some(244), Class::Transient),
            (
                &json(
                    400,
                    "The input token count (5) exceeds the maximum number of tokens allowed (4).",
                ),
                Some(144),
                Class::ContextOverflow,
            ),
            (
                &json(
                    400,
                    "Please ensure that the number of function response parts is equal to the number of function call parts",
                ),
                Some(144),
                Class::Poisoned,
            ),
            (
                "[API Error: rate limited\nSuggested retry after 1s.]\nPlease wait",
                Some(173),
                Class::Quota,
            ),
            (
                "[API Error: rate limited\nSuggested retry after 1s.]\nPlease wait",
                None,
                Class::Quota,
            ),
            ("[API Error: Overloaded]", Some(17), Class::Transient),
            ("[API Error: terminated]", Some(1), Class::Transient),
            ("[API Error: fetch failed]", Some(1), Class::Transient),
            ("[API Error: what]", Some(1), Class::Unknown),
            ("[API Error: {not json]", Some(144), Class::InvalidRequest),
        ];
        for (text, code, expected) in table {
            let failure = failure(text, status_of(*code));
            assert_eq!(failure.class, *expected, "{text}");
            assert!(
                !failure.message.contains("API Error"),
                "{}",
                failure.message
            );
        }
    }
}
