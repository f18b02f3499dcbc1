//! Sign-in: a token or a one-time link starts a session, which a cookie authenticates.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use rejoin_hub::{SessionAccess, SignedIn};

use super::Pages;
use super::error::Result;
use super::form::Fields;
use super::frame::{self, Frame};
use crate::address;
use crate::guard::{Caller, Peer};
use crate::problem::Refusal;
use crate::state::App;

const COOKIE: &str = "rejoin_session";

/// Returns the value of a cookie.
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let all = headers.get_all(header::COOKIE).into_iter();
    all.filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(key, value)| (key == name).then_some(value))
}

/// Returns the caller of a session, if the request has its cookie.
pub(crate) async fn caller(
    app: &App,
    headers: &HeaderMap,
) -> crate::problem::Result<Option<Caller>> {
    let Some(secret) = cookie(headers, COOKIE) else {
        return Ok(None);
    };
    let session = app.runner.hub.browser_session(secret).await?;
    Ok(session.map(|session| {
        let access = SessionAccess {
            name: session.name,
            scope: session.scope,
            namespace: session.namespace,
            max_permission: session.max_permission,
            token: session.token,
        };
        Caller {
            name: access.name.as_str().into(),
            namespace: access.namespace.as_str().into(),
            scope: access.scope,
            local: false,
            token: Some(session.id),
            ceiling: Some(access.max_permission.unwrap_or(app.options.max_permission)),
            access: Arc::new(access),
            csrf: Some(csrf(secret).into()),
        }
    }))
}

/// Returns the token that forms and requests of a session carry, so that no other site can send them.
fn csrf(secret: &str) -> String {
    rejoin_core::hex(&blake3::derive_key("rejoin 2026 csrf", secret.as_bytes()))
}

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignIn {
    f: Frame,
    next: String,
    by_link: bool,
    link: String,
    problem: String,
}

/// Page to sign in with a token.
pub(super) async fn show(
    State(pages): State<Pages>,
    headers: HeaderMap,
    axum::extract::RawQuery(query): axum::extract::RawQuery,
) -> Response {
    let next = super::form::parse(query.as_deref().unwrap_or_default().as_bytes());
    form(
        &pages.app,
        &headers,
        StatusCode::OK,
        SignInForm {
            next: own(next.get("next").unwrap_or("/")).to_owned(),
            ..SignInForm::default()
        },
    )
}

#[derive(Default)]
struct SignInForm {
    next: String,
    link: String,
    problem: String,
}

fn form(app: &App, headers: &HeaderMap, status: StatusCode, form: SignInForm) -> Response {
    let f = Frame::outside(app, headers);
    let page = SignIn {
        by_link: !form.link.is_empty(),
        next: form.next,
        link: form.link,
        problem: form.problem,
        f,
    };
    frame::page(&page.f, status, &page)
}

/// Page of a one-time link. Looking at it does not use it up, so a preview of the link is harmless.
pub(super) async fn pair(
    State(pages): State<Pages>,
    headers: HeaderMap,
    Path(code): Path<String>,
) -> Result<Response> {
    let good = pages.app.runner.hub.is_good_link(&code).await?;
    let shown = if good {
        SignInForm {
            next: "/".into(),
            link: code,
            ..SignInForm::default()
        }
    } else {
        SignInForm {
            next: "/".into(),
            problem: unusable(&code).into(),
            ..SignInForm::default()
        }
    };
    Ok(form(&pages.app, &headers, StatusCode::OK, shown))
}

/// Returns the reason why a link does not sign in.
fn unusable(code: &str) -> &'static str {
    if rejoin_hub::Hub::is_whole_link(code) {
        "This link was used before, or has expired. Make another one with rejoin pair."
    } else {
        "This link is incomplete. Copy all of it, or make another one with rejoin pair."
    }
}

/// Signs in, and sets the cookie.
pub(super) async fn sign_in(
    State(pages): State<Pages>,
    peer: axum::Extension<Peer>,
    headers: HeaderMap,
    fields: Fields,
) -> Result<Response> {
    let app = &pages.app;
    let ip = match *peer {
        Peer::Network(from) => from.ip(),
        Peer::Socket | Peer::Turn => {
            return Err(Refusal::forbidden("a browser signs in over the network").into());
        }
    };
    let next = own(fields.get("next").unwrap_or("/")).to_owned();
    let browser = headers
        .get(header::USER_AGENT)
        .and_then(|h| h.to_str().ok());
    let (browser, keep) = (browser.unwrap_or("a browser"), fields.get("keep").is_some());
    let hub = &app.runner.hub;
    let token = fields.get("token").unwrap_or_default().trim();
    let signed_in = match fields.get("link") {
        Some(link) => hub.redeem_link(link, browser, keep).await?,
        None => match hub.token(token).await? {
            Some(token) => Some(hub.sign_in(&token, browser, keep).await?),
            None => None,
        },
    };
    if let Some(signed_in) = signed_in {
        let mut response = frame::go(&next);
        response
            .headers_mut()
            .insert(header::SET_COOKIE, set(app, &signed_in));
        return Ok(response);
    }
    let shut = app.gate.is_shut(ip);
    app.gate.failed(ip);
    let (status, problem) = if shut {
        (
            StatusCode::TOO_MANY_REQUESTS,
            "Too many attempts from this address. Wait a minute.",
        )
    } else if let Some(link) = fields.get("link") {
        (StatusCode::UNAUTHORIZED, unusable(link))
    } else {
        (
            StatusCode::UNAUTHORIZED,
            "This daemon does not know that token, or it was revoked or has expired.",
        )
    };
    Ok(form(
        app,
        &headers,
        status,
        SignInForm {
            next,
            problem: problem.into(),
            ..SignInForm::default()
        },
    ))
}

/// Signs out this browser.
pub(super) async fn sign_out(State(pages): State<Pages>, caller: Caller) -> Result<Response> {
    if let (Some(_), Some(session)) = (&caller.csrf, caller.token) {
        let hub = &pages.app.runner.hub;
        // Ended elsewhere is as good.
        drop(
            hub.end_browser_session(&caller.access.owner(), session)
                .await,
        );
    }
    Ok(signed_out(&pages.app))
}

/// Signs out all browsers of this caller.
pub(super) async fn sign_out_everywhere(
    State(pages): State<Pages>,
    caller: Caller,
) -> Result<Response> {
    let owner = caller.access.owner();
    pages.app.runner.hub.end_browser_sessions(&owner).await?;
    Ok(signed_out(&pages.app))
}

fn signed_out(app: &App) -> Response {
    let mut response = frame::go("/sign-in");
    let value = format!(
        "{COOKIE}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict{}",
        secure(app)
    );
    if let Ok(value) = HeaderValue::try_from(value) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
    // Drafts of messages may be in the browser.
    let clear = HeaderValue::from_static("\"storage\"");
    response.headers_mut().insert("clear-site-data", clear);
    response
}

fn set(app: &App, signed_in: &SignedIn) -> HeaderValue {
    let keep = signed_in.keep_seconds;
    let keep = keep
        .map(|seconds| format!("; Max-Age={seconds}"))
        .unwrap_or_default();
    let (secret, secure) = (&signed_in.secret, secure(app));
    let value = format!("{COOKIE}={secret}; Path=/; HttpOnly; SameSite=Strict{keep}{secure}");
    HeaderValue::try_from(value).unwrap_or(HeaderValue::from_static(""))
}

/// A cookie is marked secure if browsers reach the daemon over TLS, which a proxy in front of it ends.
fn secure(app: &App) -> &'static str {
    let public = app.options.public_url.as_deref().and_then(address::web);
    if public.is_some_and(|url| url.scheme() == "https") {
        "; Secure"
    } else {
        ""
    }
}

/// Returns the path if it is one of this daemon, and the first page otherwise.
fn own(path: &str) -> &str {
    let inside =
        path.starts_with('/') && !path.starts_with("//") && !path.contains(['\\', '\r', '\n']);
    if inside && !path.starts_with("/sign-") {
        path
    } else {
        "/"
    }
}

/// Sets or removes the theme of this browser.
pub(super) async fn theme(
    State(pages): State<Pages>,
    headers: HeaderMap,
    fields: Fields,
) -> Response {
    let value = match fields.get("theme") {
        Some("light") => "rejoin_theme=light; Max-Age=31536000",
        Some("dark") => "rejoin_theme=dark; Max-Age=31536000",
        Some(_) | None => "rejoin_theme=; Max-Age=0",
    };
    let value = format!("{value}; Path=/; SameSite=Lax{}", secure(&pages.app));
    let back = headers.get(header::REFERER).and_then(|h| h.to_str().ok());
    let back = back.and_then(address::web).map(|url| url.path().to_owned());
    let mut response = frame::go(own(back.as_deref().unwrap_or("/")));
    if let Ok(value) = HeaderValue::try_from(value) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_never_leads_to_another_site() {
        for hostile in [
            "//evil.example",
            "https://evil.example",
            "/\\evil.example",
            "",
            "/sign-out",
        ] {
            assert_eq!(own(hostile), "/", "{hostile}");
        }
        assert_eq!(own("/c/tmqx?why=2"), "/c/tmqx?why=2");
    }
}
