//! The API as pages call it: in this process, with the rights of the caller. A page can do nothing that a client
//! of the API cannot.

use std::fmt::Write as _;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tower::ServiceExt as _;

use super::Pages;
use super::error::{Failure, Result};
use crate::guard::Caller;

/// Longest answer in bytes: a page of a conversation with long messages.
const LONGEST: usize = 64 << 20;

/// The API, called for one caller.
pub(super) struct Client<'a> {
    pub(super) pages: &'a Pages,
    pub(super) caller: &'a Caller,
}

/// Error of the API.
#[derive(Deserialize)]
struct Problem {
    detail: String,
    #[serde(rename = "try")]
    next: Option<String>,
}

impl Client<'_> {
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.call(Method::GET, path, None, None).await
    }

    pub(super) async fn post<T: DeserializeOwned>(&self, path: &str, body: Value) -> Result<T> {
        self.call(Method::POST, path, Some(body), None).await
    }

    /// Sends a request that has the same effect if it is repeated with the same key.
    pub(super) async fn post_once<T: DeserializeOwned>(
        &self,
        path: &str,
        body: Value,
        key: Option<&str>,
    ) -> Result<T> {
        self.call(Method::POST, path, Some(body), key).await
    }

    pub(super) async fn patch<T: DeserializeOwned>(&self, path: &str, body: Value) -> Result<T> {
        self.call(Method::PATCH, path, Some(body), None).await
    }

    pub(super) async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.call(Method::DELETE, path, None, None).await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
        key: Option<&str>,
    ) -> Result<T> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let request = request.body(body);
        let unfit = |_| failure(StatusCode::BAD_REQUEST, "the address is not complete");
        let mut request = request.map_err(unfit)?;
        let share = self.pages.app.bodies.share();
        request.extensions_mut().insert(share);
        request.extensions_mut().insert(self.caller.clone());
        let Ok(response) = self.pages.api.clone().oneshot(request).await;
        let status = response.status();
        let bytes = axum::body::to_bytes(response.into_body(), LONGEST).await;
        let too_long = |_| failure(StatusCode::INTERNAL_SERVER_ERROR, "the answer is too long");
        let bytes = bytes.map_err(too_long)?;
        if !status.is_success() {
            let problem: Problem = serde_json::from_slice(&bytes)
                .map_err(|_| failure(status, "the request was refused"))?;
            return Err(Failure {
                status,
                detail: problem.detail,
                next: problem.next,
            });
        }
        let text: &[u8] = if bytes.is_empty() { b"null" } else { &bytes };
        serde_json::from_slice(text).map_err(|error| {
            tracing::error!(%error, path, "an answer of the API cannot be read");
            failure(
                StatusCode::INTERNAL_SERVER_ERROR,
                "an answer cannot be read",
            )
        })
    }
}

fn failure(status: StatusCode, detail: &str) -> Failure {
    Failure {
        status,
        detail: detail.into(),
        next: None,
    }
}

/// Returns a part of a path or query, encoded.
pub(super) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(byte as char);
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Returns a query of the fields that have a value.
pub(super) fn query(fields: &[(&str, Option<String>)]) -> String {
    let given = fields
        .iter()
        .filter_map(|(name, value)| Some((name, value.as_ref()?)));
    let pairs: Vec<String> = given
        .map(|(name, value)| format!("{name}={}", encoded(value)))
        .collect();
    if pairs.is_empty() {
        String::new()
    } else {
        format!("?{}", pairs.join("&"))
    }
}
