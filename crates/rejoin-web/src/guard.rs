//! Authentication and authorization, before every handler.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rejoin_core::{PermissionMode, Tiers};
use rejoin_errors::{CommandError, codes};
use rejoin_hub::SessionAccess;
use rejoin_store::TokenScope;
use reqwest::Url;
use uuid::Uuid;

use crate::address;
use crate::metrics::Metrics;
use crate::pages;
use crate::problem::{Refusal, Result};
use crate::state::App;

/// Other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Peer {
    /// The daemon's own user, through the socket in the data folder.
    Socket,
    /// Process of a turn, through the same socket.
    Turn,
    Network(SocketAddr),
}

/// Authenticated caller.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) name: Arc<str>,
    pub(crate) namespace: Arc<str>,
    pub(crate) scope: TokenScope,
    /// True for the user of the daemon, on the same machine.
    pub(crate) local: bool,
    /// Id of the token; None if the caller came through the socket.
    pub(crate) token: Option<Uuid>,
    /// Highest permission that the caller may request; None means any.
    pub(crate) ceiling: Option<PermissionMode>,
    /// Rights of the sessions that the caller starts, lists and ends.
    pub(crate) access: Arc<SessionAccess>,
    /// Set for the session of a browser: its requests carry this text when they change something.
    pub(crate) csrf: Option<Arc<str>>,
}

impl Caller {
    pub(crate) fn must(&self, scope: TokenScope) -> Result<()> {
        if self.scope.includes(scope) {
            return Ok(());
        }
        Err(Refusal::forbidden(format!(
            "the token `{}` may {}, and this needs {scope}",
            self.name, self.scope
        )))
    }

    /// Refuses tiers that a request brings along, unless the caller is the user of the daemon: the
    /// operator's configuration decides how far the bearer of a token may climb (C-64).
    pub(crate) fn may_define(&self, tiers: Option<&Tiers>) -> Result<()> {
        if self.local || tiers.is_none() {
            return Ok(());
        }
        let refusal = Refusal::forbidden(
            "a token cannot define tiers; those of the daemon's configuration apply",
        );
        Err(refusal.try_this("GET /api/tiers"))
    }

    /// Returns the permission of a new conversation if the request names none: the configured one,
    /// or the caller's ceiling if that is lower.
    pub(crate) fn default_permission(&self, configured: Option<PermissionMode>) -> PermissionMode {
        let mode = configured.unwrap_or_default();
        self.ceiling.map_or(mode, |ceiling| mode.at_most(ceiling))
    }
}

/// Paths that need no token.
const OPEN: &[&str] = &["/healthz", "/readyz"];
/// Begin of the paths whose last part is a secret of its own. Host and origin are checked there.
const SHARED: &str = "/api/shared/";

pub(crate) async fn guard(State(app): State<App>, mut request: Request, next: Next) -> Response {
    // Kept until the request is answered.
    let share = app.bodies.share();
    request.extensions_mut().insert(share.clone());
    match admitted(&app, &mut request).await {
        Ok(()) => next.run(request).await,
        Err(refusal) => {
            Metrics::refused(refusal.code());
            let from = match request.extensions().get::<Peer>() {
                Some(Peer::Network(from)) => Some(from.to_string()),
                Some(Peer::Socket | Peer::Turn) | None => None,
            };
            let (method, headers, uri) = (request.method(), request.headers(), request.uri());
            if pages::wants_page(headers, uri) {
                tracing::debug!(from, code = refusal.code(), "not let in");
                return pages::of_guard(&app, method, headers, uri, refusal);
            }
            tracing::warn!(from, code = refusal.code(), "not let in");
            refusal.into_response()
        }
    }
}

async fn admitted(app: &App, request: &mut Request) -> Result<()> {
    let peer = request.extensions().get::<Peer>().copied();
    let peer = peer.ok_or_else(|| Refusal::forbidden("nobody knows where this comes from"))?;
    // Health checks may use any host name, and these paths reveal nothing.
    if OPEN.contains(&request.uri().path()) {
        return Ok(());
    }
    if let Peer::Network(_) = peer {
        right_host(app, request.headers())?;
        right_origin(app, request.headers())?;
    }
    let path = request.uri().path();
    if matches!(peer, Peer::Network(_)) && pages::is_open(path) {
        return Ok(());
    }
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if reads && path.starts_with(SHARED) {
        return Ok(());
    }
    let own = pages::is_own(path);
    let caller = match peer {
        Peer::Turn => {
            return Err(Refusal::forbidden(
                "this is a process of a turn: the socket of the daemon is for its user, not for agents",
            )
            .try_this("a token, over the daemon's address"));
        }
        Peer::Socket => Caller {
            name: "socket".into(),
            namespace: "".into(),
            scope: TokenScope::Admin,
            local: true,
            token: None,
            ceiling: None,
            access: Arc::new(SessionAccess::local()),
            csrf: None,
        },
        Peer::Network(from) => identified(app, request.headers(), from.ip()).await?,
    };
    let writes = !matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS
    );
    caller.must(if writes && !own {
        TokenScope::Send
    } else {
        TokenScope::Read
    })?;
    if writes && request.uri().path().starts_with("/api/") {
        from_own_page(&caller, request.headers())?;
    }
    request.extensions_mut().insert(caller);
    Ok(())
}

/// Identifies a caller by the token of the request, or by the session of its browser.
async fn identified(app: &App, headers: &HeaderMap, from: IpAddr) -> Result<Caller> {
    if !headers.contains_key(header::AUTHORIZATION)
        && let Some(caller) = pages::caller(app, headers).await?
    {
        return Ok(caller);
    }
    by_token(app, headers, from).await
}

/// Checks that a change through the API, with the session of a browser, comes from a page of this daemon.
fn from_own_page(caller: &Caller, headers: &HeaderMap) -> Result<()> {
    let Some(expected) = &caller.csrf else {
        return Ok(());
    };
    let given = headers.get("x-csrf-token").and_then(|h| h.to_str().ok());
    if given.is_some_and(|given| pages::same(given, expected)) {
        return Ok(());
    }
    Err(Refusal::forbidden(
        "a request with a session carries its x-csrf-token; nothing was changed",
    ))
}

async fn by_token(app: &App, headers: &HeaderMap, from: IpAddr) -> Result<Caller> {
    let given = headers.get(header::AUTHORIZATION);
    let given = given.and_then(|value| value.to_str().ok());
    let bearer = given.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    let Some(bearer) = bearer else {
        return Err(Refusal::unauthorized(
            "a token is needed: Authorization: Bearer …",
        ));
    };
    match app.runner.hub.token(bearer).await? {
        Some(token) => Ok(Caller {
            access: Arc::new(SessionAccess::from(&token)),
            csrf: None,
            name: token.name.into(),
            namespace: token.namespace.into(),
            scope: token.scope,
            local: false,
            token: Some(token.id),
            ceiling: Some(token.max_permission.unwrap_or(app.options.max_permission)),
        }),
        // A caller with a valid token is admitted even if others guess from the same address.
        None if app.gate.is_shut(from) => Err(Refusal(CommandError::new(
            codes::RATE_LIMITED,
            "too many tokens from this address were refused; wait a minute",
        ))),
        None => {
            app.gate.failed(from);
            Err(Refusal::unauthorized(
                "the token is not known here, was revoked or has expired",
            ))
        }
    }
}

/// Checks the host name, so that a web page cannot reach the daemon under another name (DNS
/// rebinding).
fn right_host(app: &App, headers: &HeaderMap) -> Result<()> {
    let host = headers.get(header::HOST).and_then(|h| h.to_str().ok());
    let host = host.ok_or_else(|| Refusal::usage("the request names no host"))?;
    let host = address::host(host);
    // An IP address is not looked up, so DNS rebinding is impossible with one.
    let by_address = |host: &Url| app.everywhere && address::ip(host).is_some();
    if host.is_some_and(|host| by_address(&host) || is_ours(app, &host)) {
        return Ok(());
    }
    Err(
        Refusal::forbidden("the daemon is not known by the host name of this request")
            .try_this("[serve] allow_hosts, or public_url, in the configuration"),
    )
}

/// Checks the origin that a browser sends: only our own pages may send requests.
fn right_origin(app: &App, headers: &HeaderMap) -> Result<()> {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return Ok(());
    };
    let origin = origin.to_str().ok().and_then(address::origin);
    if origin.is_some_and(|origin| is_ours(app, &origin)) {
        return Ok(());
    }
    Err(Refusal::forbidden(
        "requests from pages of other sites are not taken",
    ))
}

/// Returns true if the host names this daemon: a loopback address, or a name in the configuration.
fn is_ours(app: &App, url: &Url) -> bool {
    let Some(name) = url.host_str() else {
        return false;
    };
    let loopback = name == "localhost" || address::ip(url).is_some_and(|ip| ip.is_loopback());
    let listed = |known: &String| {
        let known = address::host(known).or_else(|| address::host(&format!("[{known}]")));
        known.is_some_and(|known| known.host_str() == Some(name))
    };
    let public = app.options.public_url.as_deref().and_then(address::web);
    loopback
        || app.options.allow_hosts.iter().any(listed)
        || public.is_some_and(|known| known.host_str() == Some(name))
}
