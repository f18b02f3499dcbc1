//! Errors over HTTP: problem+json, with the texts of the command line.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rejoin_errors::{CommandError, codes};
use serde::Serialize;
use utoipa::ToSchema;

/// Why a request was refused (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Problem {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) title: &'static str,
    pub(crate) status: u16,
    /// A sentence.
    pub(crate) detail: String,
    /// Error code, as on the command line; see docs/errors.md.
    pub(crate) code: &'static str,
    /// Remedy: a command or a step to take next.
    #[serde(rename = "try", skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// Error of a handler.
#[derive(Debug)]
pub(crate) struct Refusal(pub(crate) CommandError);

pub(crate) type Result<T, E = Refusal> = std::result::Result<T, E>;

impl Refusal {
    #[must_use]
    pub(crate) fn try_this(self, next: impl Into<String>) -> Self {
        Self(self.0.try_this(next))
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self(CommandError::usage(message).try_this("GET /openapi.json"))
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self(CommandError::not_found(message).try_this("GET /api/conversations"))
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self(CommandError::new(codes::FORBIDDEN, message))
    }

    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self(CommandError::new(codes::UNAUTHORIZED, message))
    }

    pub(crate) fn code(&self) -> &'static str {
        self.0.code
    }

    /// Answers with another status than the usual one of the code.
    pub(crate) fn answer(self, status: StatusCode) -> Response {
        let problem = Problem {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("error"),
            status: status.as_u16(),
            detail: self.0.message,
            code: self.0.code,
            next: self.0.next,
        };
        let mut response = (status, Json(problem)).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(
                header::WWW_AUTHENTICATE,
                HeaderValue::from_static("Bearer realm=\"rejoin\""),
            );
        }
        if status == StatusCode::TOO_MANY_REQUESTS {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("30"));
        }
        response
    }
}

impl<E: Into<CommandError>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status =
            StatusCode::from_u16(self.0.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        self.answer(status)
    }
}
