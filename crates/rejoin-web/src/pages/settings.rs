//! Settings of this browser, tokens, and browsers that are signed in.

use std::fmt::Write as _;

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use qrcodegen::{QrCode, QrCodeEcc};
use rejoin_hub::{BrowserSessionView, LinkView, NewTokenView, TokenView};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Pages;
use super::client::{Client, encoded};
use super::error::Result;
use super::form::Fields;
use super::format::when;
use super::frame::{self, Frame, Place, go};
use super::html::{Html, plain};
use super::list;
use crate::guard::Caller;

#[derive(Template)]
#[template(path = "settings.html")]
struct SettingsPage {
    f: Frame,
    here: &'static str,
    version: &'static str,
    machine: String,
    namespace: String,
    ceiling: String,
    agents: Vec<String>,
}

#[derive(Template)]
#[template(path = "more.html")]
struct MorePage {
    f: Frame,
    version: &'static str,
}

pub(super) async fn show(State(pages): State<Pages>, caller: Caller, headers: HeaderMap) -> Result {
    let ceiling = caller.ceiling.map(|mode| mode.to_string());
    let page = SettingsPage {
        f: Frame::of(&pages.app, &caller, &headers, Place::Settings).await,
        here: "general",
        version: env!("CARGO_PKG_VERSION"),
        machine: plain(&pages.app.runner.hub.machine),
        namespace: caller.namespace.to_string(),
        ceiling: ceiling.unwrap_or_else(|| "full".into()),
        agents: list::agents(&pages),
    };
    Ok(frame::page(&page.f, StatusCode::OK, &page))
}

pub(super) async fn more(State(pages): State<Pages>, caller: Caller, headers: HeaderMap) -> Result {
    let page = MorePage {
        f: Frame::of(&pages.app, &caller, &headers, Place::More).await,
        version: env!("CARGO_PKG_VERSION"),
    };
    Ok(frame::page(&page.f, StatusCode::OK, &page))
}

#[derive(Template)]
#[template(path = "keys.html")]
struct KeysPage {
    f: Frame,
}

pub(super) async fn keys(State(pages): State<Pages>, caller: Caller, headers: HeaderMap) -> Result {
    let page = KeysPage {
        f: Frame::of(&pages.app, &caller, &headers, Place::More).await,
    };
    Ok(frame::page(&page.f, StatusCode::OK, &page))
}

struct TokenRow {
    view: TokenView,
    created: Html,
    used: Html,
    expires: String,
}

#[derive(Template)]
#[template(path = "tokens.html")]
struct TokensPage {
    f: Frame,
    here: &'static str,
    tokens: Vec<TokenRow>,
    made: Option<NewTokenView>,
    problem: String,
}

#[derive(Deserialize)]
struct Tokens {
    tokens: Vec<TokenView>,
}

pub(super) async fn tokens(
    State(pages): State<Pages>,
    caller: Caller,
    headers: HeaderMap,
) -> Result {
    tokens_page(
        &pages,
        &caller,
        &headers,
        StatusCode::OK,
        (None, String::new()),
    )
    .await
}

async fn tokens_page(
    pages: &Pages,
    caller: &Caller,
    headers: &HeaderMap,
    status: StatusCode,
    (made, problem): (Option<NewTokenView>, String),
) -> Result {
    let found: Tokens = Client { pages, caller }.get("/api/tokens").await?;
    let now = pages.app.runner.hub.clock.now();
    let row = |view: TokenView| TokenRow {
        created: when(&view.created_at, now),
        used: view
            .used_at
            .as_deref()
            .map_or_else(|| Html("never".into()), |at| when(at, now)),
        expires: view
            .expires_at
            .as_deref()
            .and_then(|at| at.get(..10))
            .unwrap_or("never")
            .to_owned(),
        view,
    };
    let page = TokensPage {
        f: Frame::of(&pages.app, caller, headers, Place::Settings).await,
        here: "tokens",
        tokens: found.tokens.into_iter().map(row).collect(),
        made,
        problem,
    };
    Ok(frame::page(&page.f, status, &page))
}

/// Creates a token, and shows it this once.
pub(super) async fn create_token(
    State(pages): State<Pages>,
    caller: Caller,
    headers: HeaderMap,
    fields: Fields,
) -> Result {
    let mut body = json!({"name": fields.get("name").unwrap_or_default().trim()});
    for name in ["scope", "namespace", "max_permission"] {
        if let Some(value) = fields.some(name) {
            body[name] = json!(value.trim());
        }
    }
    if let Some(days) = fields
        .some("days")
        .and_then(|days| days.parse::<u32>().ok())
    {
        body["expires_in_s"] = json!(days.saturating_mul(86_400));
    }
    let client = Client {
        pages: &pages,
        caller: &caller,
    };
    match client.post::<NewTokenView>("/api/tokens", body).await {
        Ok(made) => {
            tokens_page(
                &pages,
                &caller,
                &headers,
                StatusCode::OK,
                (Some(made), String::new()),
            )
            .await
        }
        Err(failure) if failure.status == StatusCode::FORBIDDEN => Err(failure),
        Err(failure) => {
            let problem = super::error::capital(&failure.detail);
            tokens_page(&pages, &caller, &headers, failure.status, (None, problem)).await
        }
    }
}

pub(super) async fn revoke_token(
    State(pages): State<Pages>,
    caller: Caller,
    fields: Fields,
) -> Result {
    let client = Client {
        pages: &pages,
        caller: &caller,
    };
    let name = encoded(fields.get("name").unwrap_or_default());
    client
        .delete::<Value>(&format!("/api/tokens/{name}"))
        .await?;
    Ok(go("/settings/tokens"))
}

struct SessionRow {
    view: BrowserSessionView,
    browser: String,
    created: Html,
    used: Html,
    current: bool,
}

#[derive(Template)]
#[template(path = "sessions.html")]
struct SessionsPage {
    f: Frame,
    here: &'static str,
    sessions: Vec<SessionRow>,
    link: Option<(String, Html)>,
}

#[derive(Deserialize)]
struct Sessions {
    sessions: Vec<BrowserSessionView>,
}

pub(super) async fn sessions(
    State(pages): State<Pages>,
    caller: Caller,
    headers: HeaderMap,
) -> Result {
    sessions_page(&pages, &caller, &headers, None).await
}

async fn sessions_page(
    pages: &Pages,
    caller: &Caller,
    headers: &HeaderMap,
    link: Option<(String, Html)>,
) -> Result {
    let found: Sessions = Client { pages, caller }.get("/api/sessions").await?;
    let now = pages.app.runner.hub.clock.now();
    let own = caller.token.map(|id| id.to_string());
    let row = |view: BrowserSessionView| SessionRow {
        current: own.as_ref() == Some(&view.id),
        browser: described(&view.browser),
        created: when(&view.created_at, now),
        used: view
            .used_at
            .as_deref()
            .map_or_else(|| Html("never".into()), |at| when(at, now)),
        view,
    };
    let page = SessionsPage {
        f: Frame::of(&pages.app, caller, headers, Place::Settings).await,
        here: "sessions",
        sessions: found.sessions.into_iter().map(row).collect(),
        link,
    };
    Ok(frame::page(&page.f, StatusCode::OK, &page))
}

/// Ends a session, or makes a link that starts one.
pub(super) async fn end_session(
    State(pages): State<Pages>,
    caller: Caller,
    headers: HeaderMap,
    fields: Fields,
) -> Result {
    let client = Client {
        pages: &pages,
        caller: &caller,
    };
    if let Some(id) = fields.some("end") {
        client
            .delete::<Value>(&format!("/api/sessions/{}", encoded(id)))
            .await?;
        return Ok(go("/settings/sessions"));
    }
    let link: LinkView = client.post("/api/pair", json!({})).await?;
    // The name by which this browser reaches the daemon is a good one for others.
    let at = headers.get("host").and_then(|h| h.to_str().ok());
    let address = match (at, &pages.app.options.public_url) {
        (Some(at), None) => format!("http://{at}{}", link.path),
        (Some(_) | None, _) => link.url,
    };
    let drawn = qr(&address);
    sessions_page(&pages, &caller, &headers, Some((address, drawn))).await
}

/// Returns the name of a browser and its system.
fn described(agent: &str) -> String {
    let find = |names: &[(&str, &str)]| {
        names
            .iter()
            .find(|(word, _)| agent.contains(word))
            .map(|(_, name)| (*name).to_owned())
    };
    let browser = find(&[
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ]);
    let system = find(&[
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Mac OS", "macOS"),
        ("Windows", "Windows"),
        ("Linux", "Linux"),
    ]);
    match (browser, system) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => plain(&super::html::cut(agent, 60)),
    }
}

/// Returns the QR code of a text.
fn qr(text: &str) -> Html {
    let Ok(code) = QrCode::encode_text(text, QrCodeEcc::Medium) else {
        return Html::default();
    };
    let size = code.size();
    let mut path = String::new();
    for y in 0..size {
        for x in 0..size {
            if code.get_module(x, y) {
                let _ = write!(path, "M{x} {y}h1v1h-1z");
            }
        }
    }
    let all = size + 4;
    Html(format!(
        "<svg class=\"qr\" viewBox=\"-2 -2 {all} {all}\" role=\"img\" aria-label=\"QR code of the link\"><rect x=\"-2\" y=\"-2\" width=\"{all}\" height=\"{all}\" fill=\"#fff\"/><path d=\"{path}\" fill=\"#000\"/></svg>"
    ))
}
