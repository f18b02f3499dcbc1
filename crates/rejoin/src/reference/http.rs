//! `docs/http.md`: every route of the HTTP API, from its OpenAPI description.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

const INTRO: &str = "\
The daemon serves this API ([embedding.md](embedding.md) shows how to use it). Bodies, parameters and answers of every route are in
[openapi.json](openapi.json), also at `GET /openapi.json` of a daemon.

Every request needs a token (`Authorization: Bearer …`) or the session of a browser ([dashboard.md](dashboard.md)), except `/healthz`,
`/readyz`, `/api/shared/{secret}` and requests over `hub.sock`. A session sends `x-csrf-token` with every change. `GET` needs the scope
`read`, all other methods `send`, and `/api/tokens` `admin`. Errors are `application/problem+json` with a code of [errors.md](errors.md).
";

/// Titles of the groups, in their order on the page.
const GROUPS: [(&str, &str); 10] = [
    ("conversations", "Conversations"),
    ("turns", "Turns"),
    ("questions", "Questions"),
    ("history", "History"),
    ("events", "Events"),
    ("shares", "Share links"),
    ("workflows", "Workflows"),
    ("tokens", "Tokens"),
    ("sessions", "Sessions of browsers"),
    ("status", "Status"),
];

/// Returns the text of the page.
pub(super) fn page() -> String {
    let document = serde_json::to_value(rejoin_web::document()).unwrap_or_default();
    let mut rows: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let empty = serde_json::Map::new();
    for (path, methods) in document["paths"].as_object().unwrap_or(&empty) {
        for (method, route) in methods.as_object().unwrap_or(&empty) {
            let group = route["tags"][0].as_str().unwrap_or_default();
            rows.entry(group)
                .or_default()
                .push(row(method, path, route));
        }
    }
    let mut text = super::head("HTTP API") + INTRO;
    for (tag, title) in GROUPS {
        let rows = rows.remove(tag).unwrap_or_default().join("\n");
        let _infallible = write!(text, "\n## {title}\n\n| request | |\n|---|---|\n{rows}\n");
    }
    debug_assert!(rows.is_empty(), "no group for {rows:?}");
    text
}

fn row(method: &str, path: &str, route: &Value) -> String {
    let mut about = route["summary"].as_str().unwrap_or_default().to_owned();
    if let Some(more) = route["description"].as_str() {
        let more = more.split_whitespace().collect::<Vec<_>>().join(" ");
        let _infallible = write!(about, ". {more}");
    }
    format!(
        "| `{} {path}` | {} |",
        method.to_uppercase(),
        about.replace('|', "\\|")
    )
}
