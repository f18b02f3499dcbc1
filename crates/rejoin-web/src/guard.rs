//! Who is it, and may it: before every handler.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rejoin_core::PermissionMode;
use rejoin_runner::failure::{Failure, codes};
use rejoin_store::TokenScope;
use reqwest::Url;
use uuid::Uuid;

use crate::address;
use crate::metrics::Metrics;
use crate::problem::{Refusal, Result};
use crate::state::App;

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Peer {
    /// The same user, through the socket in the data folder.
    Socket,
    /// A process of a turn, through the same socket.
    Turn,
    Network(SocketAddr),
}

/// Whoever asks, once that is known.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) name: Arc<str>,
    pub(crate) namespace: Arc<str>,
    pub(crate) scope: TokenScope,
    /// The user whose daemon it is, on the same machine.
    pub(crate) local: bool,
    /// None: the caller came through the socket.
    pub(crate) token: Option<Uuid>,
    /// The most it may ask an agent to do; none: anything.
    pub(crate) ceiling: Option<PermissionMode>,
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

    /// The permission of a new conversation for which the request names none: the configured one, or the
    /// caller's ceiling if that is lower.
    pub(crate) fn default_permission(&self, configured: Option<PermissionMode>) -> PermissionMode {
        let mode = configured.unwrap_or_default();
        self.ceiling.map_or(mode, |ceiling| mode.at_most(ceiling))
    }
}

/// What anybody may ask.
const OPEN: &[&str] = &["/healthz", "/readyz"];

pub(crate) async fn guard(State(app): State<App>, mut request: Request, next: Next) -> Response {
    match admitted(&app, &mut request).await {
        Ok(()) => {
            // Kept until the request is answered.
            let share = app.bodies.share();
            request.extensions_mut().insert(share.clone());
            let response = next.run(request).await;
            drop(share);
            response
        }
        Err(refusal) => {
            Metrics::refused(refusal.code());
            let from = match request.extensions().get::<Peer>() {
                Some(Peer::Network(from)) => Some(from.to_string()),
                Some(Peer::Socket | Peer::Turn) | None => None,
            };
            tracing::warn!(from, code = refusal.code(), "not let in");
            refusal.into_response()
        }
    }
}

async fn admitted(app: &App, request: &mut Request) -> Result<()> {
    let peer = request.extensions().get::<Peer>().copied();
    let peer = peer.ok_or_else(|| Refusal::forbidden("nobody knows where this comes from"))?;
    // Whoever looks after it knows it by whatever name; there is nothing to be learned.
    if OPEN.contains(&request.uri().path()) {
        return Ok(());
    }
    if let Peer::Network(_) = peer {
        right_host(app, request.headers())?;
        right_origin(app, request.headers())?;
    }
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
        },
        Peer::Network(from) => by_token(app, request.headers(), from.ip()).await?,
    };
    let writes = !matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS
    );
    caller.must(if writes {
        TokenScope::Send
    } else {
        TokenScope::Read
    })?;
    request.extensions_mut().insert(caller);
    Ok(())
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
            name: token.name.into(),
            namespace: token.namespace.into(),
            scope: token.scope,
            local: false,
            token: Some(token.id),
            ceiling: Some(token.max_permission.unwrap_or(app.options.max_permission)),
        }),
        // Who knows one is let in, whoever else guesses from the same address.
        None if app.gate.is_shut(from) => Err(Refusal(Failure::new(
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

/// A page that was led here under another name must not reach it (DNS rebinding).
fn right_host(app: &App, headers: &HeaderMap) -> Result<()> {
    let host = headers.get(header::HOST).and_then(|h| h.to_str().ok());
    let host = host.ok_or_else(|| Refusal::usage("the request names no host"))?;
    let host = address::host(host);
    // An address is not looked up, so nobody can be led here by one.
    let by_address = |host: &Url| app.everywhere && address::ip(host).is_some();
    if host.is_some_and(|host| by_address(&host) || is_ours(app, &host)) {
        return Ok(());
    }
    Err(
        Refusal::forbidden("the daemon is not known by the host name of this request")
            .try_this("[serve] allow_hosts, or public_url, in the configuration"),
    )
}

/// A browser says which page a request comes from: only ours may.
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

/// True if the daemon is reached by this host: an address of loopback, or a name of the configuration.
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
