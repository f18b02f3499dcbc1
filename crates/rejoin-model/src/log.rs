//! Log of received requests: kept in memory for tests, and as JSON lines for people.

use std::{
    collections::{BTreeMap, VecDeque},
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use axum::http::{HeaderMap, Uri, request::Parts};
use serde::Serialize;
use serde_json::Value;

/// Maximum bytes of bodies to keep. A server that runs for days must not grow for days.
const KEPT_BYTES: usize = 64 << 20;

/// A request as it arrived, without secrets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Request {
    /// Number of the request on this server, from 1, over all requests.
    pub seq: u64,
    /// Arrival, in milliseconds since 1970.
    pub at_ms: u64,
    pub method: String,
    /// Path with query.
    pub path: String,
    /// Length of the body.
    pub bytes: usize,
    /// Result of the request, for people.
    pub note: String,
    /// Script that answered: its name, `json` for one in the prompt, `queue` for a queued step.
    pub script: Option<String>,
    /// Position of the answer in its script.
    pub step: usize,
    /// Reason why the real API would refuse this history, if it would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub irregular: Option<String>,
    pub headers: BTreeMap<String, String>,
    /// Body of the request; a string if it is not JSON.
    pub body: Value,
}

impl Request {
    /// Returns the part of the body that contains the history, in any dialect.
    pub fn history(&self) -> &Value {
        let parts = ["messages", "input", "contents"];
        let found = parts.iter().find_map(|name| self.body.get(name));
        found.unwrap_or(&Value::Null)
    }

    /// Creates the entry of a new request. The log numbers it.
    pub(crate) fn arrived(parts: &Parts, bytes: usize, body: Value) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "a log line says when; nothing depends on it"
        )]
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            seq: 0,
            at_ms: now.as_millis() as u64,
            method: parts.method.to_string(),
            path: shown_path(&parts.uri),
            bytes,
            note: String::new(),
            script: None,
            step: 0,
            irregular: None,
            headers: shown_headers(&parts.headers),
            body,
        }
    }
}

/// Target of a request: the model, or only the server around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reached {
    Model,
    Server,
}

#[derive(Debug)]
pub(crate) struct RequestLog {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    last: u64,
    kept: VecDeque<Request>,
    kept_bytes: usize,
    file: Option<File>,
}

impl RequestLog {
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        let open = |path| {
            OpenOptions::new()
                .create(true)
                .append(true)
                .mode(0o600)
                .open(path)
        };
        let file = path.map(open).transpose()?;
        let inner = Inner {
            last: 0,
            kept: VecDeque::new(),
            kept_bytes: 0,
            file,
        };
        Ok(Self {
            inner: Mutex::new(inner),
        })
    }

    /// Numbers and stores a request. The line is written before the answer and under the lock, so
    /// that a caller with the answer finds the line, and lines are in the order of numbers.
    pub(crate) fn record(&self, mut request: Request, reached: Reached) -> io::Result<u64> {
        let mut inner = self.lock();
        inner.last += 1;
        request.seq = inner.last;
        if let Some(file) = &mut inner.file {
            let mut line = serde_json::to_vec(&request)?;
            line.push(b'\n');
            file.write_all(&line)?;
        }
        match reached {
            Reached::Model => inner.keep(request),
            Reached::Server => {}
        }
        Ok(inner.last)
    }

    /// Returns the requests to the model with a number above this one.
    pub(crate) fn after(&self, seq: u64) -> Vec<Request> {
        self.lock()
            .kept
            .iter()
            .filter(|request| request.seq > seq)
            .cloned()
            .collect()
    }

    pub(crate) fn clear(&self) {
        let mut inner = self.lock();
        inner.kept.clear();
        inner.kept_bytes = 0;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn keep(&mut self, request: Request) {
        self.kept_bytes += request.bytes;
        self.kept.push_back(request);
        while self.kept_bytes > KEPT_BYTES && self.kept.len() > 1 {
            let Some(oldest) = self.kept.pop_front() else {
                break;
            };
            self.kept_bytes -= oldest.bytes;
        }
    }
}

/// Returns the headers by name, without secrets. A dummy key may be a real one that was left in a
/// user's environment.
fn shown_headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    const SECRET: [&str; 6] = [
        "authorization",
        "proxy-authorization",
        "x-api-key",
        "x-goog-api-key",
        "api-key",
        "cookie",
    ];
    let shown = headers.iter().map(|(name, value)| {
        let value = if SECRET.contains(&name.as_str()) {
            "<redacted>".into()
        } else {
            String::from_utf8_lossy(value.as_bytes())
        };
        (name.to_string(), value.into_owned())
    });
    shown.collect()
}

/// Returns path and query without secrets. Some APIs take their key in the query.
fn shown_path(uri: &Uri) -> String {
    let Some(query) = uri.query() else {
        return uri.path().to_owned();
    };
    let shown = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name @ ("key" | "api_key" | "access_token"), _)) => format!("{name}=<redacted>"),
        _ => pair.to_owned(),
    });
    format!("{}?{}", uri.path(), shown.collect::<Vec<_>>().join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(bytes: usize) -> Request {
        let (parts, ()) = axum::http::Request::builder()
            .uri("/v1/messages?beta=true&key=secret")
            .header("X-Api-Key", "secret")
            .header("user-agent", "cli")
            .body(())
            .unwrap()
            .into_parts();
        Request::arrived(&parts, bytes, Value::Null)
    }

    #[test]
    fn secrets_are_taken_out() {
        let request = request(1);
        assert_eq!(request.path, "/v1/messages?beta=true&key=<redacted>");
        assert_eq!(request.headers["x-api-key"], "<redacted>");
        assert_eq!(request.headers["user-agent"], "cli");
    }

    #[test]
    fn old_requests_make_room() {
        let log = RequestLog::open(None).unwrap();
        log.record(request(1), Reached::Server).unwrap();
        for bytes in [10, KEPT_BYTES - 5, 5, KEPT_BYTES * 2] {
            log.record(request(bytes), Reached::Model).unwrap();
            assert!(log.lock().kept_bytes <= KEPT_BYTES || log.lock().kept.len() == 1);
        }
        let kept: Vec<u64> = log.after(0).iter().map(|request| request.seq).collect();
        assert_eq!(kept, [5]);
        log.clear();
        assert_eq!(log.after(0), []);
        assert_eq!(log.record(request(1), Reached::Model).unwrap(), 6);
        assert_eq!(log.after(5).len(), 1);
    }
}
