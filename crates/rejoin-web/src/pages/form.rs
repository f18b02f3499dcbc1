//! Fields of forms, read and checked before any handler of a page that changes something.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request};
use axum::http::Method;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::error::Failure;
use crate::body;
use crate::guard::Caller;
use crate::problem::{Refusal, Result};

/// Fields of a form, in their order.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields(Arc<Vec<(String, String)>>);

impl Fields {
    /// Returns the first field with this name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// Returns the first field with this name, if it has more than white space.
    pub(super) fn some(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.trim().is_empty())
    }

    /// Returns the fields whose name begins so, with the rest of the name.
    pub(super) fn under<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let own = self.0.iter();
        own.filter_map(move |(key, value)| Some((key.strip_prefix(prefix)?, value.as_str())))
    }
}

/// Parses fields as a browser encodes them.
pub(super) fn parse(bytes: &[u8]) -> Fields {
    let pairs = reqwest::Url::parse("http://x/").map(|mut url| {
        url.set_query(std::str::from_utf8(bytes).ok());
        // Browsers send line ends of text areas as two characters.
        let pair = |(key, value): (std::borrow::Cow<'_, str>, std::borrow::Cow<'_, str>)| {
            (key.into_owned(), value.replace("\r\n", "\n"))
        };
        url.query_pairs().map(pair).collect()
    });
    Fields(Arc::new(pairs.unwrap_or_default()))
}

impl<S: Send + Sync> FromRequestParts<S> for Fields {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let fields = parts.extensions.get::<Self>().cloned();
        fields.ok_or_else(|| Refusal::usage("a form is expected here"))
    }
}

/// Middleware of all pages: reads the form of a request that changes something, and refuses one that does
/// not carry the token of its session.
pub(super) async fn checked(request: Request, next: Next) -> Response {
    if *request.method() != Method::POST {
        return next.run(request).await;
    }
    match read(request).await {
        Ok(request) => next.run(request).await,
        Err(refusal) => Failure::from(refusal).into_response(),
    }
}

async fn read(request: Request) -> Result<Request> {
    let (mut parts, body) = request.into_parts();
    let extensions = parts.extensions.clone();
    let mut whole = Request::new(body);
    *whole.headers_mut() = parts.headers.clone();
    *whole.extensions_mut() = extensions;
    let fields = parse(&body::whole(whole).await?);
    let expected = parts
        .extensions
        .get::<Caller>()
        .and_then(|caller| caller.csrf.clone());
    if let Some(expected) = expected {
        let given = fields.get("csrf").unwrap_or_default();
        if !same(given, &expected) {
            return Err(Refusal::forbidden(
                "the form is from an earlier session or from another site; nothing was changed",
            )
            .try_this("reload the page and send it again"));
        }
    }
    parts.extensions.insert(fields);
    Ok(Request::from_parts(parts, axum::body::Body::empty()))
}

/// Compares in constant time.
pub(crate) fn same(given: &str, expected: &str) -> bool {
    blake3::hash(given.as_bytes()) == blake3::hash(expected.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_a_browser_sends_them() {
        let fields = parse(b"text=a+b%0D%0Ac%26d&answer.q1=Yes&empty=+");
        assert_eq!(fields.get("text"), Some("a b\nc&d"));
        assert_eq!(fields.under("answer.").collect::<Vec<_>>(), [("q1", "Yes")]);
        assert_eq!(fields.some("empty"), None);
    }
}
