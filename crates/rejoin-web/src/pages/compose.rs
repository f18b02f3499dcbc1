//! New conversations and messages: the composer, its forecast, and stopping a turn.

use askama::Template;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use rejoin_core::Sent;
use rejoin_hub::{ConversationView, NextView, TurnView, WholeView};
use serde_json::{Value, json};

use super::Pages;
use super::client::{Client, encoded, query};
use super::error::{Failure, Result};
use super::form::{self, Fields};
use super::format::{money, of};
use super::frame::{self, Frame, Place, go};
use super::html::{Html, plain};
use super::list;
use crate::guard::Caller;

const MODES: [(&str, &str); 4] = [
    ("read-only", "looks, changes nothing"),
    ("edit", "changes files in the folder"),
    ("ask", "you decide each time"),
    ("full", "anything, without asking"),
];

/// Prediction of the turn of the next message.
#[derive(Template)]
#[template(path = "forecast.html")]
pub(super) struct Forecast {
    f: Frame,
    class: &'static str,
    mark: String,
    strong: String,
    rest: String,
}

impl Forecast {
    /// Predicts the next turn with the agent that the fields name.
    pub(super) async fn of(
        client: &Client<'_>,
        f: &Frame,
        name: &str,
        asked: &Fields,
    ) -> Result<Self> {
        let agent = asked.some("as").or_else(|| asked.some("agent"));
        let address = format!(
            "/api/conversations/{}/next{}",
            encoded(name),
            query(&[
                ("agent", agent.map(str::to_owned)),
                ("model", asked.some("model").map(str::to_owned)),
            ])
        );
        Ok(match client.get::<NextView>(&address).await {
            Ok(next) => Self::told(f, &next, asked.get("fresh").is_some()),
            Err(failure) => Self {
                f: f.clone(),
                class: "f-bad",
                mark: "failed".into(),
                strong: "It would not run.".into(),
                rest: super::error::capital(&plain(&failure.detail)),
            },
        })
    }

    fn told(f: &Frame, next: &NextView, fresh: bool) -> Self {
        let (agent, sent) = (&next.agent, next.sent.unwrap_or_default());
        let verdict = next.verdict.as_deref().unwrap_or_default();
        let verdict = if fresh && verdict != "started" && !verdict.is_empty() {
            "reseeded"
        } else {
            verdict
        };
        let cost = next.cost_estimate_usd.filter(|_| !fresh);
        let cost = cost
            .map(|cost| format!(" (≈ {})", money(Some(cost))))
            .unwrap_or_default();
        let (class, strong, rest) = match verdict {
            "started" => ("", format!("Starts a new session of {agent}."), cost),
            "resumed" | "live" => {
                let words = if verdict == "live" {
                    "Continues in the running process of"
                } else {
                    "Resumes the session of"
                };
                (
                    "",
                    format!("{words} {agent}."),
                    format!("{}{cost}", caught_up(sent)),
                )
            }
            "restored" => (
                "",
                format!("Restores the session of {agent} from a snapshot."),
                format!("{}{cost}", caught_up(sent)),
            ),
            "reseeded" => {
                let why = match (fresh, &next.reason) {
                    (true, _) => "a fresh session was chosen".to_owned(),
                    (false, Some(reason)) => reason.replace('_', " "),
                    (false, None) => String::new(),
                };
                (
                    "f-warn",
                    format!("Starts a new session of {agent} with the transcript:"),
                    format!("{why}{cost}"),
                )
            }
            _ => {
                let why = next
                    .cannot
                    .clone()
                    .or_else(|| next.reason.as_deref().map(|r| r.replace('_', " ")));
                ("f-bad", "It would not run:".into(), why.unwrap_or_default())
            }
        };
        let note = next
            .note
            .as_deref()
            .map(|note| format!(" {note}"))
            .unwrap_or_default();
        Self {
            f: f.clone(),
            class,
            mark: if verdict.is_empty() {
                "failed".into()
            } else {
                verdict.to_owned()
            },
            strong,
            rest: plain(&format!("{rest}{note}")),
        }
    }

    fn idle(f: &Frame, view: &ConversationView) -> Self {
        let (mark, strong, rest) = match view.state.as_str() {
            "running" | "queued" => (
                "queued",
                "A turn runs.",
                "Your message waits and runs next.",
            ),
            "waiting" => (
                "waiting",
                "The agent waits for an answer.",
                "Your message runs after this turn.",
            ),
            _ => ("resumed", "Idle.", "A message continues the conversation."),
        };
        Self {
            f: f.clone(),
            class: "",
            mark: mark.into(),
            strong: strong.into(),
            rest: rest.into(),
        }
    }
}

fn caught_up(sent: Sent) -> String {
    match sent.caught_up {
        0 => String::new(),
        n => format!(
            "It receives {} that it missed.",
            of(n as usize, "message", "messages")
        ),
    }
}

/// Form of the next message.
pub(super) struct Composer {
    pub(super) name: String,
    pub(super) key: String,
    pub(super) agent: String,
    pub(super) agents: Vec<String>,
    pub(super) permission: String,
    pub(super) modes: [(&'static str, &'static str); 4],
    pub(super) forecast: Forecast,
    pub(super) text: String,
    pub(super) running: bool,
}

impl Composer {
    pub(super) async fn of(
        client: &Client<'_>,
        f: &Frame,
        whole: &WholeView,
        asked: &Fields,
    ) -> Result<Self> {
        let view = &whole.conversation;
        let agent = asked.some("as").unwrap_or(&view.agent).to_owned();
        let mut agents = list::agents(client.pages);
        if !agents.contains(&agent) {
            agents.push(agent.clone());
        }
        // The script asks for the forecast when the page is there.
        let forecast = match asked.some("as") {
            Some(_) => Forecast::of(client, f, &view.handle, asked).await?,
            None => Forecast::idle(f, view),
        };
        Ok(Self {
            name: view.handle.clone(),
            key: key(client.pages)?,
            agent,
            agents,
            permission: view.permission.clone(),
            modes: MODES,
            forecast,
            text: asked.get("text").unwrap_or_default().to_owned(),
            running: view.state != "idle",
        })
    }
}

impl Composer {
    pub(super) fn forecast(&self) -> Html {
        Html(self.forecast.render().unwrap_or_default())
    }
}

/// Returns a new idempotency key, so that a form that is sent twice has one effect.
fn key(pages: &Pages) -> Result<String> {
    let id = pages.app.runner.hub.clock.foreign_id();
    Ok(id.map_err(Failure::from)?.to_string())
}

#[derive(Template)]
#[template(path = "new.html")]
struct NewPage {
    f: Frame,
    key: String,
    agent: String,
    agents: Vec<String>,
    workdir: String,
    folders: Vec<String>,
    modes: [(&'static str, &'static str); 4],
    permission: String,
    model: String,
    text: String,
    problem: String,
}

/// Page of a new conversation.
pub(super) async fn new(
    State(pages): State<Pages>,
    caller: Caller,
    headers: HeaderMap,
    RawQuery(asked): RawQuery,
) -> Result {
    let asked = form::parse(asked.as_deref().unwrap_or_default().as_bytes());
    new_page(
        &pages,
        &caller,
        &headers,
        &asked,
        StatusCode::OK,
        String::new(),
    )
    .await
}

async fn new_page(
    pages: &Pages,
    caller: &Caller,
    headers: &HeaderMap,
    given: &Fields,
    status: StatusCode,
    problem: String,
) -> Result {
    let client = Client { pages, caller };
    let f = Frame::of(&pages.app, caller, headers, Place::Conversations).await;
    let hub: Value = client.get("/api/hub").await?;
    let recent: rejoin_hub::ListView = client.get("/api/conversations?limit=50").await?;
    let mut folders: Vec<String> = vec![];
    for view in &recent.conversations {
        if !folders.contains(&view.workdir) && folders.len() < 10 {
            folders.push(view.workdir.clone());
        }
    }
    let here = hub["workdir"].as_str().unwrap_or_default().to_owned();
    let workdir = given.some("workdir").map(str::to_owned);
    let workdir = workdir.or_else(|| folders.first().cloned()).unwrap_or(here);
    let defaults = &pages.app.defaults;
    let permission = caller.default_permission(defaults.permission).to_string();
    let page = NewPage {
        key: key(pages)?,
        agent: given
            .some("agent")
            .unwrap_or(defaults.agent.as_str())
            .to_owned(),
        agents: list::agents(pages),
        workdir,
        folders,
        modes: MODES,
        permission: given.some("permission").unwrap_or(&permission).to_owned(),
        model: given.get("model").unwrap_or_default().to_owned(),
        text: given.get("text").unwrap_or_default().to_owned(),
        problem,
        f,
    };
    Ok(frame::page(&page.f, status, &page))
}

/// Returns the body of a message from the fields of a form.
fn body(fields: &Fields) -> Value {
    let mut body = json!({"text": fields.get("text").unwrap_or_default(), "confirm": true});
    for name in ["agent", "model", "permission", "workdir"] {
        if let Some(value) = fields.some(name) {
            body[name] = json!(value.trim());
        }
    }
    if fields.get("fresh").is_some() {
        body["fresh_session"] = json!(true);
    }
    body
}

/// Starts a conversation with its first message.
pub(super) async fn start(
    State(pages): State<Pages>,
    caller: Caller,
    headers: HeaderMap,
    fields: Fields,
) -> Result {
    let client = Client {
        pages: &pages,
        caller: &caller,
    };
    match client
        .post_once::<TurnView>("/api/send", body(&fields), fields.some("key"))
        .await
    {
        Ok(turn) => Ok(go(&format!("/c/{}", handle(&turn)))),
        Err(failure) => {
            let problem = super::error::capital(&failure.detail);
            new_page(&pages, &caller, &headers, &fields, failure.status, problem).await
        }
    }
}

/// Returns the handle of the conversation of a turn.
pub(super) fn handle(turn: &TurnView) -> &str {
    turn.handle.split(':').next().unwrap_or_default()
}

/// Sends a message.
pub(super) async fn send(
    State(pages): State<Pages>,
    caller: Caller,
    Path(name): Path<String>,
    fields: Fields,
) -> Result {
    let client = Client {
        pages: &pages,
        caller: &caller,
    };
    let path = format!("/api/conversations/{}/messages", encoded(&name));
    let turn: TurnView = client
        .post_once(&path, body(&fields), fields.some("key"))
        .await?;
    Ok(go(&format!("/c/{}", handle(&turn))))
}

/// Stops a turn, or withdraws a queued message.
pub(super) async fn stop(
    State(pages): State<Pages>,
    caller: Caller,
    Path((name, turn)): Path<(String, String)>,
) -> Result {
    let client = Client {
        pages: &pages,
        caller: &caller,
    };
    let path = format!("/api/turns/{}/cancel", encoded(&turn));
    match client.post::<Value>(&path, json!({})).await {
        // It ended by itself meanwhile.
        Ok(_) => {}
        Err(failure) if failure.status == StatusCode::CONFLICT => {}
        Err(failure) => return Err(failure),
    }
    Ok(go(&format!("/c/{}", encoded(&name))))
}
