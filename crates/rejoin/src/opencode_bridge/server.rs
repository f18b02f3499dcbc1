//! The server of one turn: started on a free port of loopback, with a password that nobody else knows.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rejoin_agents::serve::{AnswerTo, NO_SERVER, ServeOrder};
use rejoin_hub::Clock;
use rejoin_runner::process::BackgroundProcess;
use reqwest::{Client, Method, Response, StatusCode, Url};
use serde_json::{Value, json};
use tokio::net::unix::pipe::Receiver;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::events::Events;
use super::lines::Lines;

/// Limit for the start, which takes four seconds on a quiet machine.
const MAY_TAKE: Duration = Duration::from_mins(2);
const END_MAY_TAKE: Duration = Duration::from_secs(2);
/// All requests but the one for events are answered at once; the first one loads the project, and may
/// wait for the network.
const ANSWER_MAY_TAKE: Duration = Duration::from_mins(2);
/// Most bytes read of an answer, and of one that explains a failure.
const ANSWER: usize = 1 << 20;
const SAID: usize = 400;

const USER: &str = "opencode";
const USERNAME: &str = "OPENCODE_SERVER_USERNAME";
const PASSWORD: &str = "OPENCODE_SERVER_PASSWORD";

pub(super) struct Server {
    process: BackgroundProcess,
    client: Client,
    url: Url,
    password: String,
    folder: String,
    /// Reads what it prints later, so that it never has to wait for us.
    rest: JoinHandle<()>,
}

impl Server {
    pub(super) async fn start(
        program: &str,
        args: &[String],
        folder: &str,
    ) -> Result<Self, String> {
        let no = |why: &dyn std::fmt::Display| format!("{NO_SERVER}: {why}");
        let secret = Clock.secret().map_err(|error| no(&error))?;
        let password = BASE64_URL_SAFE_NO_PAD.encode(secret);
        let own = [(USERNAME, USER), (PASSWORD, &password)];
        let own = own.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let env = std::env::vars_os().chain(own);
        let (process, out) =
            BackgroundProcess::start(OsStr::new(program), args, env).map_err(|error| no(&error))?;
        let out = Receiver::from_owned_fd(OwnedFd::from(out)).map_err(|error| no(&error))?;
        let mut out = Lines::of(out);
        let url = timeout(MAY_TAKE, address(&mut out)).await;
        let url = url.map_err(|_| no(&format!("not within {} s", MAY_TAKE.as_secs())))?;
        let url = url.map_err(|error| no(&error))?;
        let rest = tokio::spawn(async move { while let Ok(Some(_)) = out.next().await {} });
        // Another part of this process may have chosen it already.
        let _chosen = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .no_proxy()
            // Between two turns the server closes what it does not need.
            .pool_max_idle_per_host(0)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| no(&error))?;
        Ok(Self {
            process,
            client,
            url,
            password,
            folder: folder.to_owned(),
            rest,
        })
    }

    pub(super) async fn end(self) {
        self.rest.abort();
        self.process.end(END_MAY_TAKE).await;
    }

    pub(super) async fn events(&self) -> Result<Events, String> {
        let asked = self.request(Method::GET, &["event"], None);
        let response = timeout(ANSWER_MAY_TAKE, asked)
            .await
            .map_err(|_| "opencode serve does not answer".to_owned())??;
        if !response.status().is_success() {
            return Err(format!(
                "opencode serve tells nothing: {}",
                said(response).await
            ));
        }
        Ok(Events::of(response))
    }

    /// The session of the turn.
    pub(super) async fn session(&self, order: &ServeOrder) -> Result<String, String> {
        let known = match &order.session {
            None => {
                self.ask(Method::POST, &["session"], Some(&order.begin))
                    .await?
            }
            Some(id) => {
                let found = self.ask(Method::GET, &["session", id], None).await?;
                // What happens in it would be told to those in the other folder alone.
                let folder = found["directory"].as_str().unwrap_or_default();
                if folder != order.folder {
                    return Err(format!("the session belongs to the folder {folder}"));
                }
                if order.fork {
                    let path = ["session", id, "fork"];
                    self.ask(Method::POST, &path, Some(&json!({}))).await?
                } else {
                    found
                }
            }
        };
        let id = known["id"].as_str();
        id.map(str::to_owned)
            .ok_or_else(|| "opencode serve gave the session no id".into())
    }

    pub(super) async fn prompt(&self, session: &str, body: &Value) -> Result<(), String> {
        let path = ["session", session, "prompt_async"];
        self.ask(Method::POST, &path, Some(body)).await.map(drop)
    }

    pub(super) async fn is_busy(&self, session: &str) -> Result<bool, String> {
        let all = self.ask(Method::GET, &["session", "status"], None).await?;
        Ok(all.get(session).is_some_and(|one| one["type"] != "idle"))
    }

    /// Something goes on in any session.
    pub(super) async fn is_any_busy(&self) -> Result<bool, String> {
        let all = self.ask(Method::GET, &["session", "status"], None).await?;
        let mut all = all.as_object().into_iter().flatten();
        Ok(all.any(|(_, one)| one["type"] != "idle"))
    }

    pub(super) async fn abort(&self, session: &str) -> Result<(), String> {
        let path = ["session", session, "abort"];
        self.ask(Method::POST, &path, Some(&json!({})))
            .await
            .map(drop)
    }

    /// Replies to a question. A question that is no longer pending is no failure.
    pub(super) async fn reply(&self, to: AnswerTo, id: &str, body: &Value) -> Result<(), String> {
        self.tell(&[to.path(), id, "reply"], body).await
    }

    pub(super) async fn no_answer(&self, id: &str) -> Result<(), String> {
        self.tell(&[AnswerTo::Question.path(), id, "reject"], &json!({}))
            .await
    }

    async fn tell(&self, path: &[&str], body: &Value) -> Result<(), String> {
        let response = self.within(Method::POST, path, Some(body)).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(());
        }
        answered(response).await.map(drop)
    }

    async fn ask(
        &self,
        method: Method,
        path: &[&str],
        body: Option<&Value>,
    ) -> Result<Value, String> {
        answered(self.within(method, path, body).await?).await
    }

    async fn within(
        &self,
        method: Method,
        path: &[&str],
        body: Option<&Value>,
    ) -> Result<Response, String> {
        let asked = self.request(method, path, body);
        match timeout(ANSWER_MAY_TAKE, asked).await {
            Ok(response) => response,
            Err(_) => Err("opencode serve does not answer".into()),
        }
    }

    /// Every request names the folder: a server can serve several.
    async fn request(
        &self,
        method: Method,
        path: &[&str],
        body: Option<&Value>,
    ) -> Result<Response, String> {
        let mut url = self.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.clear().extend(path);
        }
        url.query_pairs_mut().append_pair("directory", &self.folder);
        let mut request = self
            .client
            .request(method, url)
            .basic_auth(USER, Some(&self.password));
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        let sent = request.send().await;
        sent.map_err(|error| format!("opencode serve went away: {}", cause(&error)))
    }
}

/// Reads the address from the output, where it follows warnings.
async fn address(out: &mut Lines) -> Result<Url, String> {
    while let Some(line) = out.next().await? {
        let line = String::from_utf8_lossy(&line);
        let Some((_, url)) = line.split_once("listening on ") else {
            continue;
        };
        return Url::parse(url.trim()).map_err(|error| format!("{url} is no address: {error}"));
    }
    Err("it ended".into())
}

async fn answered(response: Response) -> Result<Value, String> {
    let status = response.status();
    if !status.is_success() {
        let said = said(response).await;
        return Err(format!("opencode serve answered {status}: {said}"));
    }
    let body = body(response).await;
    Ok(serde_json::from_slice(&body).unwrap_or_default())
}

/// The failure's own message.
async fn said(response: Response) -> String {
    let body = body(response).await;
    let told: Value = serde_json::from_slice(&body).unwrap_or_default();
    let message = told["data"]["message"].as_str().map(str::to_owned);
    let text = message.unwrap_or_else(|| String::from_utf8_lossy(&body).into_owned());
    text.chars().take(SAID).collect()
}

async fn body(mut response: Response) -> Vec<u8> {
    let mut body = vec![];
    while let Ok(Some(piece)) = response.chunk().await {
        body.extend_from_slice(&piece);
        if body.len() > ANSWER {
            break;
        }
    }
    body
}

/// The innermost cause, beneath the general message of the library.
fn cause(error: &reqwest::Error) -> String {
    let mut source: &dyn std::error::Error = error;
    while let Some(inner) = source.source() {
        source = inner;
    }
    source.to_string()
}
