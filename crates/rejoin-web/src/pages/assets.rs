//! Static files, embedded in the binary. Their address contains a hash of all of them, so browsers keep them for ever.

use std::io::Write as _;
use std::sync::{LazyLock, OnceLock};

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// File below `/assets/HASH/`.
pub(crate) struct Asset {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
    packed: OnceLock<Bytes>,
}

macro_rules! assets {
    ($($name:literal $kind:literal $($file:literal)+,)+) => {
        [$(Asset {
            name: $name,
            kind: $kind,
            text: concat!($(include_str!(concat!("../../assets/", $file)),)+),
            packed: OnceLock::new(),
        },)+]
    };
}

static ASSETS: [Asset; 9] = assets! {
    "rejoin.css" "text/css; charset=utf-8" "base.css" "talk.css" "parts.css" "phone.css" "more.css",
    "icon.svg" "image/svg+xml" "icon.svg",
    "app.js" "text/javascript; charset=utf-8" "app.js",
    "dom.js" "text/javascript; charset=utf-8" "dom.js",
    "live.js" "text/javascript; charset=utf-8" "live.js",
    "talk.js" "text/javascript; charset=utf-8" "talk.js",
    "composer.js" "text/javascript; charset=utf-8" "composer.js",
    "list.js" "text/javascript; charset=utf-8" "list.js",
    "keys.js" "text/javascript; charset=utf-8" "keys.js",
};

/// Symbols of the icons and verdict marks, inlined into every page.
pub(crate) const SYMBOLS: &str = include_str!("../../assets/icons.svg");

static HASH: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = blake3::Hasher::new();
    for asset in &ASSETS {
        hasher.update(asset.text.as_bytes());
    }
    hasher.finalize().to_hex()[..12].to_owned()
});

/// Returns the address of a file.
pub(crate) fn address(name: &str) -> String {
    format!("/assets/{}/{name}", *HASH)
}

/// Compresses a text as browsers expect it.
pub(crate) fn gzip(text: &[u8], level: Compression) -> Option<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::with_capacity(text.len() / 3), level);
    packed.write_all(text).ok()?;
    packed.finish().ok()
}

/// True if the browser takes compressed answers.
pub(crate) fn takes_gzip(headers: &HeaderMap) -> bool {
    let given = headers.get(header::ACCEPT_ENCODING);
    given
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.contains("gzip"))
}

/// Handler for files. A file of another version is served under its own address only.
pub(crate) async fn serve(
    Path((hash, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let found = ASSETS.iter().find(|asset| asset.name == name);
    let Some(asset) = found.filter(|_| hash == *HASH) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let mut response = if takes_gzip(&headers) {
        let packed = asset.packed.get_or_init(|| {
            gzip(asset.text.as_bytes(), Compression::best())
                .unwrap_or_default()
                .into()
        });
        let encoding = [(header::CONTENT_ENCODING, "gzip")];
        (encoding, packed.clone()).into_response()
    } else {
        asset.text.into_response()
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    let keep = HeaderValue::from_static("public, max-age=31536000, immutable");
    headers.insert(header::CACHE_CONTROL, keep);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_together_stay_small() {
        let packed = |text: &str| gzip(text.as_bytes(), Compression::best()).unwrap().len();
        let size: usize = ASSETS.iter().map(|asset| packed(asset.text)).sum();
        let size = size + packed(SYMBOLS);
        assert!(size < 60 << 10, "{size} bytes compressed");
        assert!(size > 10 << 10, "{size} bytes compressed");
    }
}
