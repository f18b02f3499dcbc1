//! The frame of every page: bar, theme, the identity of the caller; and the answer around a template.

use std::sync::Arc;

use askama::Template;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use flate2::Compression;
use rejoin_store::TokenScope;

use super::assets;
use super::html::{Html, icon, verdict};
use super::session::cookie;
use crate::guard::Caller;
use crate::state::App;

/// Scripts, styles and requests come from this daemon alone, and nothing is inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types rejoin";
/// Shorter pages are sent as they are.
const WORTH_PACKING: usize = 2048;

/// Entries of the bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Conversations,
    Inbox,
    Settings,
    More,
    Elsewhere,
}

/// Facts that the frame of a page shows.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub(super) place: Place,
    /// `light`, `dark`, or empty: as the system.
    pub(super) theme: &'static str,
    pub(super) csrf: String,
    pub(super) name: String,
    pub(super) scope: TokenScope,
    /// Number of turns that wait for a person.
    pub(super) waiting: usize,
    pub(super) machine: String,
    packs: bool,
}

impl Frame {
    /// Returns the frame of a page for this caller.
    pub(super) async fn of(app: &App, caller: &Caller, headers: &HeaderMap, place: Place) -> Self {
        // Without the store the page itself says so.
        let waiting = app
            .hub(caller)
            .inbox()
            .await
            .map_or(0, |inbox| inbox.turns.len());
        Self {
            place,
            name: caller.name.to_string(),
            scope: caller.scope,
            csrf: caller.csrf.as_deref().unwrap_or_default().to_owned(),
            waiting,
            ..Self::outside(app, headers)
        }
    }

    /// Returns the frame of a page for a visitor who is not signed in.
    pub(super) fn outside(app: &App, headers: &HeaderMap) -> Self {
        let theme = match cookie(headers, "rejoin_theme") {
            Some("light") => "light",
            Some("dark") => "dark",
            Some(_) | None => "",
        };
        Self {
            place: Place::Elsewhere,
            theme,
            csrf: String::new(),
            name: String::new(),
            scope: TokenScope::Read,
            waiting: 0,
            machine: app.runner.hub.machine.clone(),
            packs: assets::takes_gzip(headers),
        }
    }

    pub(super) fn i(&self, name: &str) -> Html {
        let _ = self;
        icon(name)
    }

    pub(super) fn v(&self, name: &str) -> Html {
        let _ = self;
        verdict(name)
    }

    pub(super) fn asset(&self, name: &str) -> String {
        let _ = self;
        assets::address(name)
    }

    pub(super) fn symbols(&self) -> Html {
        let _ = self;
        Html(assets::SYMBOLS.to_owned())
    }

    pub(super) fn signed_in(&self) -> bool {
        !self.name.is_empty()
    }

    pub(super) fn may_send(&self) -> bool {
        self.scope.includes(TokenScope::Send)
    }

    pub(super) fn may_administer(&self) -> bool {
        self.scope.includes(TokenScope::Admin)
    }

    /// Marks the current entry of the bar.
    pub(super) fn at(&self, place: &str) -> Html {
        let here = match self.place {
            Place::Conversations => "conversations",
            Place::Inbox => "inbox",
            Place::Settings => "settings",
            Place::More => "more",
            Place::Elsewhere => "",
        };
        Html(
            if here == place {
                " aria-current=\"page\""
            } else {
                ""
            }
            .to_owned(),
        )
    }
}

/// Answers with a page.
pub(super) fn page(frame: &Frame, status: StatusCode, template: &impl Template) -> Response {
    let text = match template.render() {
        Ok(text) => text,
        Err(error) => {
            tracing::error!(%error, "a page cannot be rendered");
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
    };
    html(frame.packs, status, text)
}

/// Answers with HTML: a page, or a part of one.
pub(super) fn html(packs: bool, status: StatusCode, text: String) -> Response {
    let long = packs && text.len() > WORTH_PACKING;
    let packed = long
        .then(|| assets::gzip(text.as_bytes(), Compression::fast()))
        .flatten();
    let mut response = match packed {
        Some(packed) => {
            let encoding = [(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
            (status, encoding, packed).into_response()
        }
        None => (status, text).into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "same-origin"),
        (header::VARY, "cookie, accept, accept-encoding"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let opener = HeaderValue::from_static("same-origin");
    headers.insert("cross-origin-opener-policy", opener);
    response
}

/// Sends the browser to another page after a form.
pub(super) fn go(to: &str) -> Response {
    // An address with characters that a header does not take leads to the first page.
    if HeaderValue::try_from(to).is_err() {
        return Redirect::to("/").into_response();
    }
    Redirect::to(to).into_response()
}

/// Name of the part that script wants instead of the page: `Accept: text/html; part=NAME`.
pub(super) fn part(headers: &HeaderMap) -> Option<Arc<str>> {
    let accept = headers.get(header::ACCEPT)?.to_str().ok()?;
    let name = accept.split_once("part=")?.1;
    let end = name
        .find(|c: char| !c.is_ascii_alphanumeric())
        .unwrap_or(name.len());
    Some(name[..end].into())
}
