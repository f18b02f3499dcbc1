//! What a failure of the API means, by the CLI's own sentence about it.

use rejoin_core::{Class, Failure};
use serde_json::Value;

/// Lower case, as all below.
const OVERFLOW: &[&str] = &[
    "context_length_exceeded",
    "context window",
    "maximum context length",
    "prompt is too long",
];
const LIMIT: &[&str] = &[
    "usage limit",
    "usage_limit",
    "rate limit",
    "rate_limit",
    "quota",
    "out of credits",
    "spend limit",
    "billing",
];
const LOGIN: &[&str] = &[
    "missing environment variable",
    "not logged in",
    "codex login",
    "log in again",
    "sign in again",
    "refresh token",
    "access token",
    "invalid_api_key",
    "incorrect api key",
    "unauthorized",
];
/// The API refuses the history as such: what is in it stays in it.
const POISON: &[&str] = &[
    "no tool output found",
    "no tool call found",
    "invalid_encrypted_content",
    "encrypted content could not be",
    "without its required following item",
    "was provided without its required",
    "duplicate item",
    "invalid_image",
];
const NETWORK: &[&str] = &[
    "high demand",
    "at capacity",
    "overloaded",
    "stream disconnected",
    "stream closed",
    "connection failed",
    "error sending request",
    "connection refused",
    "connection reset",
    "reconnecting",
    "timed out",
    "timeout",
    "network",
    "server_error",
    "internal server error",
    "service unavailable",
    "bad gateway",
];

pub(super) fn failure(text: &str) -> Failure {
    let said = sentence(text);
    let class = class(text);
    let message = match class {
        Class::Quota => said,
        Class::Auth => format!("the login is missing or was refused: {said}"),
        Class::Transient => format!("the API could not be reached or failed: {said}"),
        Class::ContextOverflow => format!("the session does not fit the model's context: {said}"),
        Class::Poisoned => format!("the API refuses what is in the session: {said}"),
        Class::InvalidRequest => format!("the API refused the request: {said}"),
        Class::Refused
        | Class::Interrupted
        | Class::Crashed
        | Class::DiskFull
        | Class::NotRecorded
        | Class::TimeLimit
        | Class::IdleLimit
        | Class::CostLimit
        | Class::NotStarted
        | Class::WouldReseed
        | Class::Envelope
        | Class::InUse
        | Class::Lost
        | Class::Unknown => format!("the CLI reported an error: {said}"),
    };
    Failure { class, message }
}

fn class(text: &str) -> Class {
    let lower = text.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if says(OVERFLOW) {
        return Class::ContextOverflow;
    }
    match status(&lower) {
        Some(401 | 403) => return Class::Auth,
        Some(402 | 429) => return Class::Quota,
        Some(413) => return Class::ContextOverflow,
        Some(408 | 409 | 500..) => return Class::Transient,
        Some(400..=499) if says(POISON) => return Class::Poisoned,
        Some(400..=499) => return Class::InvalidRequest,
        Some(_) | None => {}
    }
    if says(POISON) {
        Class::Poisoned
    } else if says(LIMIT) {
        Class::Quota
    } else if says(LOGIN) {
        Class::Auth
    } else if says(NETWORK) {
        Class::Transient
    } else if body(text).is_some() || says(&["invalid_request", "exceeds the maximum length"]) {
        // Of a 400 the whole body is printed, without its status.
        Class::InvalidRequest
    } else {
        Class::Unknown
    }
}

/// `unexpected status 401 Unauthorized: …`, `last status: 429 Too Many Requests`.
fn status(lower: &str) -> Option<u16> {
    let after = |word: &str| lower.split_once(word).map(|(_, rest)| rest);
    let rest = after("unexpected status ").or_else(|| after("last status: "))?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// The API's own words in the body of a refusal.
fn body(text: &str) -> Option<String> {
    let body: Value = serde_json::from_str(text.trim()).ok()?;
    let error = &body["error"];
    let said = [&error["message"], &body["detail"], &body["message"]];
    said.iter()
        .find_map(|said| said.as_str())
        .map(str::to_owned)
        .or_else(|| error.is_object().then(|| error.to_string()))
}

/// On one line, not endless, without the CLI's own prefix.
pub(super) fn sentence(text: &str) -> String {
    let text = body(text).unwrap_or_else(|| text.to_owned());
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.strip_prefix("Error: ").unwrap_or(&line);
    if line.is_empty() {
        return "it did not say why".into();
    }
    line.chars().take(300).collect()
}
