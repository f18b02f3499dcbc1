//! Classification of API failures.

use rejoin_core::{Class, Failure};

use super::ApiError;
use crate::failure::{self, when};

/// Texts with which the API refuses the history itself. The session keeps the refused content, so
/// every retry fails. Lower case.
const POISON: &[&str] = &[
    "tool_use ids were found without",
    "tool_use` ids were found without",
    "unexpected `tool_use_id`",
    "unexpected tool_use_id",
    "tool_result block",
    "tool use concurrency",
    "each tool_use must have",
    "ids must be unique",
    "thinking blocks",
    "thinking block",
    "invalid `signature`",
    "invalid signature",
    "must be non-empty",
    "non-empty content",
    "empty text block",
    "cache_control cannot be set for empty",
    "image exceeds",
    "image dimensions exceed",
    "could not process image",
    "image was too large",
    "could not process pdf",
    "roles must alternate",
];
const OVERFLOW: &[&str] = &[
    "prompt is too long",
    "exceed context limit",
    "context window",
    "input is too long",
];
const NETWORK: &[&str] = &[
    "unable to connect",
    "connection error",
    "connection refused",
    "connection closed",
    "connection lost",
    "econn",
    "enotfound",
    "etimedout",
    "eai_again",
    "timed out",
    "timeout",
    "socket",
    "network",
    "fetch failed",
    "terminated",
    "stream ended",
    "stream idle",
    "overloaded",
    "internal server error",
    "bad gateway",
    "service unavailable",
];
const LIMIT: &[&str] = &[
    "usage limit",
    "hit your",
    "credit balance",
    "spend limit",
    "out of usage",
    "quota",
];
const LOGIN: &[&str] = &[
    "not logged in",
    "please run /login",
    "run /login",
    "invalid api key",
    "oauth token",
    "authentication",
    "api key",
];

pub(super) fn failure(error: &ApiError, reason: &str, resets: Option<&str>) -> Failure {
    let class = class(error, reason);
    let said = sentence(&error.text);
    if class == Class::Quota {
        return failure::failure(class, quota(&said, resets));
    }
    failure::of_api(class, &said)
}

fn class(error: &ApiError, reason: &str) -> Class {
    let text = error.text.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let word = error.word.as_deref().unwrap_or_default();
    match (reason, word) {
        ("prompt_too_long" | "blocking_limit" | "rapid_refill_breaker", _) => {
            return Class::ContextOverflow;
        }
        ("image_error", _) => return Class::Poisoned,
        (_, "authentication_failed" | "oauth_org_not_allowed") => return Class::Auth,
        (_, "billing_error") => return Class::Quota,
        (_, "overloaded") => return Class::Transient,
        (_, "model_not_found") => return Class::InvalidRequest,
        (_, _) => {}
    }
    match error.status {
        Some(401 | 403) => Class::Auth,
        Some(413) => Class::ContextOverflow,
        Some(408 | 409 | 500..) => Class::Transient,
        Some(429) if says(&["overloaded", "not your usage limit"]) => Class::Transient,
        Some(402 | 429) => Class::Quota,
        Some(400) if says(OVERFLOW) => Class::ContextOverflow,
        Some(400) if says(&["credit balance"]) => Class::Quota,
        Some(400) if says(POISON) => Class::Poisoned,
        Some(404 | 400 | 405..=499) => Class::InvalidRequest,
        Some(_) | None => {
            if says(OVERFLOW) {
                Class::ContextOverflow
            } else if says(&["not your usage limit"]) {
                Class::Transient
            } else if word == "rate_limit" || says(LIMIT) {
                Class::Quota
            } else if says(LOGIN) {
                Class::Auth
            } else if word == "server_error" || says(NETWORK) {
                Class::Transient
            } else if word == "invalid_request" {
                if says(POISON) {
                    Class::Poisoned
                } else {
                    Class::InvalidRequest
                }
            } else {
                Class::Unknown
            }
        }
    }
}

/// Formats a quota failure. Both `Claude AI usage limit reached|1763218800` and the event before it
/// contain the time of the reset.
fn quota(said: &str, resets: Option<&str>) -> String {
    let (text, at) = match said.rsplit_once('|') {
        Some((text, stamp)) => (text, stamp.trim().parse().ok().and_then(when)),
        None => (said, None),
    };
    match at.as_deref().or(resets) {
        Some(at) if !said.contains("reset") => format!("{text}, resets {at}"),
        Some(_) | None => text.to_owned(),
    }
}

pub(super) fn sentence(text: &str) -> String {
    failure::sentence(text, "API Error: ")
}
