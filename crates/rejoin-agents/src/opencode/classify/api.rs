//! Classification of API failures.

use rejoin_core::{Class, Failure};
use serde_json::Value;

use crate::failure;

/// Texts with which the API refuses the history itself. The session keeps the refused content, so
/// every retry fails. Lower case.
const POISON: &[&str] = &[
    "tool_call_id",
    "tool_calls",
    "tool_use",
    "tool_result",
    "thinking block",
    "invalid signature",
    "non-empty content",
    "could not process image",
    "image exceeds",
    "roles must alternate",
];
/// Messages of all vendors.
const OVERFLOW: &[&str] = &[
    "prompt is too long",
    "context length",
    "context_length_exceeded",
    "context window",
    "exceeds the maximum number of tokens",
    "input is too long",
    "input token count",
    "maximum context",
    "too large to compact",
    "too many tokens",
];
const LIMIT: &[&str] = &[
    "usage limit",
    "credit balance",
    "quota",
    "insufficient balance",
    "billing",
    "rate limit",
    "too many requests",
];
const WAIT: &[&str] = &["please wait", "throttl", "usage exceeded"];
const LOGIN: &[&str] = &[
    "api key",
    "apikey",
    "api_key",
    "authentication",
    "unauthorized",
    "not logged in",
];
const NETWORK: &[&str] = &[
    "unable to connect",
    "cannot connect",
    "connection",
    "econn",
    "enotfound",
    "etimedout",
    "timed out",
    "timeout",
    "socket",
    "network",
    "fetch failed",
    "terminated",
    "overloaded",
    "server error",
    "bad gateway",
    "unavailable",
];
const MODEL: &[&str] = &["model not found", "modelnotfound", "no such model"];

/// Error from an `error` line.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct ApiError {
    name: String,
    status: Option<u64>,
    retryable: bool,
    text: String,
}

impl ApiError {
    pub(in super::super) fn read(error: &Value) -> Self {
        let data = &error["data"];
        let said = [&data["message"], &error["message"], &error["name"]];
        Self {
            name: error["name"].as_str().unwrap_or_default().to_owned(),
            status: data["statusCode"].as_u64(),
            retryable: data["isRetryable"] == true,
            text: said
                .iter()
                .find_map(|said| said.as_str())
                .map_or_else(|| error.to_string(), str::to_owned),
        }
    }

    /// Creates an error of which only the text is known, and that the CLI retries.
    pub(super) fn said(text: String) -> Self {
        Self {
            text,
            retryable: true,
            ..Self::default()
        }
    }

    pub(super) fn failure(&self) -> Failure {
        failure::of_api(self.class(), &sentence(&self.text))
    }

    fn class(&self) -> Class {
        let text = self.text.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
        match self.name.as_str() {
            "ProviderAuthError" => return Class::Auth,
            "ContextOverflowError" => return Class::ContextOverflow,
            "MessageAbortedError" | "MessageOutputLengthError" => return Class::Interrupted,
            "ProviderModelNotFoundError" | "ModelNotFoundError" => return Class::InvalidRequest,
            _ => {}
        }
        match self.status {
            Some(401 | 403) => Class::Auth,
            Some(413) => Class::ContextOverflow,
            Some(429) if says(&["overloaded"]) => Class::Transient,
            Some(402 | 429) => Class::Quota,
            Some(408 | 409 | 500..) => Class::Transient,
            Some(400..=499) if says(OVERFLOW) => Class::ContextOverflow,
            Some(400..=499) if says(&["credit balance", "insufficient"]) => Class::Quota,
            Some(400) if says(POISON) => Class::Poisoned,
            Some(400..=499) => Class::InvalidRequest,
            Some(_) | None => {
                // A request that is retried was not too long, even if its message contains such a
                // text.
                if self.retryable && says(WAIT) {
                    Class::Quota
                } else if says(OVERFLOW) {
                    Class::ContextOverflow
                } else if says(LIMIT) {
                    Class::Quota
                } else if says(LOGIN) {
                    Class::Auth
                } else if self.retryable || says(NETWORK) {
                    Class::Transient
                } else if says(MODEL) {
                    Class::InvalidRequest
                } else {
                    Class::Unknown
                }
            }
        }
    }
}

pub(super) fn sentence(text: &str) -> String {
    failure::sentence(text, "Error: ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn classes_by_structure_then_words() {
        let class = |name: &str, status: Option<u64>, text: &str, retryable: bool| {
            let data = json!({"message": text, "statusCode": status, "isRetryable": retryable});
            let error = ApiError::read(&json!({"name": name, "data": data}));
            error.failure().class
        };
        let api = |status, text: &str| class("APIError", Some(status), text, false);
        assert_eq!(api(400, "bad request made up"), Class::InvalidRequest);
        assert_eq!(
            api(400, "prompt is too long: 9 > 8"),
            Class::ContextOverflow
        );
        assert_eq!(
            api(400, "'tool_calls' must be followed by"),
            Class::Poisoned
        );
        assert_eq!(api(401, "bad key"), Class::Auth);
        assert_eq!(api(402, "x"), Class::Quota);
        assert_eq!(api(404, "x"), Class::InvalidRequest);
        assert_eq!(api(413, "x"), Class::ContextOverflow);
        assert_eq!(api(429, "rate limited"), Class::Quota);
        assert_eq!(api(429, "Overloaded"), Class::Transient);
        assert_eq!(api(500, "boom"), Class::Transient);
        assert_eq!(api(529, "Overloaded"), Class::Transient);
        let named = |name: &str| class(name, None, "x", false);
        assert_eq!(named("ContextOverflowError"), Class::ContextOverflow);
        assert_eq!(named("ProviderAuthError"), Class::Auth);
        assert_eq!(named("MessageAbortedError"), Class::Interrupted);
        assert_eq!(named("Zork"), Class::Unknown);
        let said = |text: &str| class("UnknownError", None, text, false);
        assert_eq!(
            said("Cannot connect to API: Unable to connect."),
            Class::Transient
        );
        assert_eq!(said("Incorrect API key provided"), Class::Auth);
        assert_eq!(said("You exceeded your quota"), Class::Quota);
        assert_eq!(said("Model not found: x"), Class::InvalidRequest);
        assert_eq!(class("APIError", None, "odd", true), Class::Transient);
    }

    #[test]
    fn anything_can_be_an_error() {
        for odd in [
            json!(null),
            json!(7),
            json!([]),
            json!({"data": 1}),
            json!("text"),
        ] {
            let failure = ApiError::read(&odd).failure();
            assert!(!failure.message.is_empty());
        }
    }
}
