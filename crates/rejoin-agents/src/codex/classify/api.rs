//! Classification of API failures, by the CLI's own message about them.

use rejoin_core::{Class, Failure};
use serde_json::Value;

use crate::failure;

/// Lower case, like all lists below.
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
/// Texts with which the API refuses the history itself. The session keeps the refused content, so
/// every retry fails.
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
    failure::of_api(class(text), &sentence(text))
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
        // For a 400 the CLI prints the whole body, without the status.
        Class::InvalidRequest
    } else {
        Class::Unknown
    }
}

/// Parses the HTTP status in `unexpected status 401 Unauthorized: …` or `last status: 429 Too Many
/// Requests`.
fn status(lower: &str) -> Option<u16> {
    let after = |word: &str| lower.split_once(word).map(|(_, rest)| rest);
    let rest = after("unexpected status ").or_else(|| after("last status: "))?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Returns the API's own message from the body of a refusal. None if the text is not JSON.
fn body(text: &str) -> Option<String> {
    let body: Value = serde_json::from_str(text.trim()).ok()?;
    let error = &body["error"];
    let said = [&error["message"], &body["detail"], &body["message"]];
    said.iter()
        .find_map(|said| said.as_str())
        .map(str::to_owned)
        .or_else(|| error.is_object().then(|| error.to_string()))
}

pub(super) fn sentence(text: &str) -> String {
    let body = body(text);
    failure::sentence(body.as_deref().unwrap_or(text), "Error: ")
}
