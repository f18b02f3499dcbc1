//! A hub that is not in this process: a daemon behind the socket in the data folder, or at an address.
//!
//! What comes back is what the hub of this process would have given, errors included, so a command
//! need not know which of them it talks to.

mod errors;
mod events;
mod logins;
mod selection;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, Response, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cli::SOCKET;
use crate::config::Config;
use crate::output::Output;
use rejoin_errors::{CommandError, Result};

pub(crate) use events::{Events, TurnEvent};
pub(crate) use logins::{Login, Logins, token_variable};
pub(crate) use selection::{HubSelection, SelectedBy};

/// A connection must be there within this time.
const CONNECT: Duration = Duration::from_secs(10);
/// Nothing was heard for so long: the other end is gone. What is silent longer says so every 15 s.
const SILENT: Duration = Duration::from_mins(2);
/// When what broke off is tried again.
const AGAIN_AFTER: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_secs(1),
    Duration::from_secs(3),
];

/// How near it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A daemon of the same user, on the same store.
    Socket,
    /// A daemon on the same machine: folders mean the same there.
    Loopback,
    Elsewhere,
}

/// A key under which a request is repeated if its connection breaks.
pub(crate) fn new_key() -> Option<String> {
    let id = rejoin_hub::Clock.turn_id().ok()?;
    Some(format!("rejoin-{id}"))
}

/// Talks to one daemon.
pub(crate) struct Remote {
    pub(crate) out: Output,
    pub(crate) place: Place,
    /// The folder the command was given in.
    pub(crate) here: PathBuf,
    client: Client,
    base: Url,
    token: Option<String>,
    /// As it was named; none: the socket.
    name: Option<String>,
    /// Configuration of this folder, if the daemon is the user's own.
    pub(crate) config: Option<Config>,
    /// The socket is reached through it.
    _folder: Option<OwnedFd>,
}

/// A request: method, path, query, body and headers.
#[derive(Clone)]
pub(crate) struct Ask {
    method: Method,
    path: Vec<String>,
    query: Vec<(&'static str, String)>,
    body: Option<Value>,
    /// Under which it can be asked again without being done twice.
    key: Option<String>,
}

impl Ask {
    fn new(method: Method, path: &[&str]) -> Self {
        Self {
            method,
            path: path.iter().map(|&part| part.to_owned()).collect(),
            query: vec![],
            body: None,
            key: None,
        }
    }

    pub(crate) fn get(path: &[&str]) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn post(path: &[&str]) -> Self {
        Self::new(Method::POST, path)
    }

    pub(crate) fn put(path: &[&str]) -> Self {
        Self::new(Method::PUT, path)
    }

    pub(crate) fn patch(path: &[&str]) -> Self {
        Self::new(Method::PATCH, path)
    }

    pub(crate) fn delete(path: &[&str]) -> Self {
        Self::new(Method::DELETE, path)
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Option<String>>) -> Self {
        self.query.extend(value.into().map(|value| (name, value)));
        self
    }

    /// Only if it is so.
    pub(crate) fn if_so(self, name: &'static str, so: bool) -> Self {
        self.with(name, so.then(|| "true".to_owned()))
    }

    pub(crate) fn body(mut self, body: impl Serialize) -> Self {
        // Bodies are structs and JSON values, whose conversion cannot fail.
        self.body = Some(serde_json::to_value(body).unwrap_or_default());
        self
    }

    /// Sends the request with this `Idempotency-Key`, so that it may be repeated.
    pub(crate) fn known_by(mut self, key: Option<String>) -> Self {
        self.key = key;
        self
    }

    fn may_be_repeated(&self) -> bool {
        self.method == Method::GET || self.key.is_some()
    }
}

impl Remote {
    /// The daemon on this data folder; none: nobody is behind its socket.
    pub(crate) fn behind_socket(out: Output, home: &Path, here: &Path) -> Result<Option<Self>> {
        let Ok((folder, path)) = rejoin_web::short(&home.join(SOCKET)) else {
            return Ok(None);
        };
        // What a dead daemon left costs nothing.
        if std::os::unix::net::UnixStream::connect(&path).is_err() {
            return Ok(None);
        }
        let client = built(builder().unix_socket(path).no_proxy())?;
        let base =
            Url::parse("http://localhost/").map_err(|e| CommandError::usage(e.to_string()))?;
        Ok(Some(Self {
            out,
            place: Place::Socket,
            here: here.to_owned(),
            client,
            base,
            token: None,
            name: None,
            config: None,
            _folder: Some(folder),
        }))
    }

    /// The daemon that was named.
    pub(crate) fn named(out: Output, name: &str) -> Result<Self> {
        selection::named(out, name)
    }

    /// The daemon at an address.
    pub(crate) fn at(out: Output, name: &str, url: &str, token: Option<String>) -> Result<Self> {
        let base = address(url)?;
        let loopback = is_loopback(&base);
        let builder = builder();
        let client = built(if loopback {
            builder.no_proxy()
        } else {
            builder
        })?;
        Ok(Self {
            out,
            place: if loopback {
                Place::Loopback
            } else {
                Place::Elsewhere
            },
            here: crate::app::here()?,
            client,
            base,
            token,
            name: Some(name.to_owned()),
            config: None,
            _folder: None,
        })
    }

    /// For people.
    pub(crate) fn called(&self) -> String {
        match &self.name {
            Some(name) => format!("the hub {name}"),
            None => "the daemon".to_owned(),
        }
    }

    /// A command that goes to the same place.
    pub(crate) fn command(&self, rest: &str) -> String {
        match &self.name {
            Some(name) => format!("rejoin --hub {name} {rest}"),
            None => format!("rejoin {rest}"),
        }
    }

    /// Do folders of this machine mean anything there?
    pub(crate) fn same_machine(&self) -> bool {
        self.place != Place::Elsewhere
    }

    /// Sends a request that changes nothing. Returns the parsed answer.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, ask: Ask) -> Result<T> {
        let again = ask.may_be_repeated().then(|| ask.clone());
        let answered = self.send(ask, None).await?.bytes().await;
        let bytes = match (answered, again) {
            (Ok(bytes), _) => bytes,
            (Err(_), Some(again)) => {
                let answered = self.send(again, None).await?.bytes().await;
                answered.map_err(|e| self.gone(&e))?
            }
            (Err(error), None) => return Err(self.gone(&error)),
        };
        serde_json::from_slice(&bytes).map_err(|e| {
            CommandError::unavailable(format!(
                "{} answered something that is not understood here: {e}",
                self.called()
            ))
            .try_this("rejoin --version, here and there")
        })
    }

    /// Something that answers nothing.
    pub(crate) async fn tell(&self, ask: Ask) -> Result<()> {
        self.send(ask, None).await.map(drop)
    }

    async fn send(&self, ask: Ask, accept: Option<&str>) -> Result<Response> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(&ask.path);
        }
        if !ask.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&ask.query);
        }
        let mut request = self.client.request(ask.method.clone(), url);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(accept) = accept {
            request = request.header("accept", accept);
        }
        if let Some(parent) = crate::traces::parent() {
            request = request.header("traceparent", parent);
        }
        if let Some(key) = &ask.key {
            request = request.header("idempotency-key", key);
        }
        if let Some(body) = &ask.body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        let response = self.patiently(request, &ask).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.refused(response).await)
    }

    /// A connection that broke may have been a daemon that is being replaced: what can be asked again is.
    async fn patiently(&self, request: RequestBuilder, ask: &Ask) -> Result<Response> {
        let mut pauses = AGAIN_AFTER.iter().filter(|_| ask.may_be_repeated());
        let mut broke = false;
        loop {
            let Some(this) = request.try_clone() else {
                return request.send().await.map_err(|e| self.gone(&e));
            };
            let error = match this.send().await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            // Nobody there from the beginning is nobody.
            broke |= !error.is_connect();
            match pauses.next().filter(|_| broke) {
                Some(pause) => tokio::time::sleep(*pause).await,
                None => {
                    return Err(match ask.key.as_deref().filter(|_| broke) {
                        Some(key) => self.gone_with(&error, ask, key),
                        None => self.gone(&error),
                    });
                }
            }
        }
    }

    /// Failure of a request that may have been carried out, under a key: repeated under it, it is not
    /// carried out twice.
    fn gone_with(&self, error: &reqwest::Error, ask: &Ask, key: &str) -> CommandError {
        let gone = self.gone(error).message;
        let text = format!("{gone}; it is unknown whether the request was carried out");
        let command = match ask.path.last().map(String::as_str) {
            Some(word @ ("send" | "retry" | "fork")) => {
                format!("{word} --idempotency-key {key} …")
            }
            Some(_) | None => "token list".to_owned(),
        };
        let again = self.command(&command);
        CommandError::unavailable(text).try_this(format!("the same again, as {again}"))
    }

    /// Failure of a connection without an answer, or without all of it.
    fn gone(&self, error: &reqwest::Error) -> CommandError {
        let who = self.called();
        let text = if error.is_connect() {
            format!("{who} cannot be reached: {}", cause(error))
        } else {
            format!("{who} went away: {}", cause(error))
        };
        CommandError::unavailable(text).try_this(match &self.name {
            Some(_) => "rejoin serve there, or another --hub".to_owned(),
            None => "the same again".to_owned(),
        })
    }
}

fn builder() -> reqwest::ClientBuilder {
    Client::builder()
        .connect_timeout(CONNECT)
        .read_timeout(SILENT)
        // A token is for one address.
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("rejoin/", env!("CARGO_PKG_VERSION")))
}

fn built(builder: reqwest::ClientBuilder) -> Result<Client> {
    // Another part of this process may have chosen it already.
    let _chosen = rustls::crypto::ring::default_provider().install_default();
    builder
        .build()
        .map_err(|e| CommandError::unavailable(format!("no connection can be made: {}", cause(&e))))
}

/// The innermost cause, beneath the general message of the library.
fn cause(error: &reqwest::Error) -> String {
    let mut source: &dyn std::error::Error = error;
    while let Some(inner) = source.source() {
        source = inner;
    }
    source.to_string()
}

/// An address as it is kept: with a scheme, and without anything behind its path.
fn address(text: &str) -> Result<Url> {
    let wrong = || {
        CommandError::usage(format!(
            "`{text}` is not the address of a hub, such as http://127.0.0.1:7377"
        ))
        .try_this("rejoin login URL")
    };
    let url = Url::parse(text).map_err(|_| wrong())?;
    let known = matches!(url.scheme(), "http" | "https");
    let plain = url.username().is_empty() && url.password().is_none();
    if !known || !plain || url.host_str().is_none() || url.query().is_some() {
        return Err(wrong());
    }
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || bare
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_hubs() {
        for good in [
            "http://127.0.0.1:7377",
            "https://hub.example/rejoin/",
            "http://[::1]:1",
        ] {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "hub",
            "127.0.0.1:7377",
            "ftp://h",
            "http://u:p@h",
            "http://h/?x=1",
            "unix:/x",
        ] {
            assert!(address(bad).is_err(), "{bad}");
        }
        let loopback = |text: &str| is_loopback(&address(text).unwrap());
        assert!(loopback("http://127.0.0.1:7377") && loopback("http://[::1]:1"));
        assert!(loopback("http://LOCALHOST") && !loopback("http://127.0.0.1.example"));
    }
}
