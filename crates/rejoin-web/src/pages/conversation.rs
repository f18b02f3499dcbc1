//! A conversation: its messages, the way each answer was continued, and the composer.

use std::collections::HashMap;

use askama::Template;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use rejoin_core::TurnId;
use rejoin_hub::{ConversationView, ExplainView, InboxDocument, TurnView, WholeView};

use super::Pages;
use super::client::{Client, encoded, query};
use super::compose::{Composer, Forecast};
use super::error::{Failure, Result};
use super::form::{self, Fields};
use super::format::{folder, money};
use super::frame::{self, Frame, Place};
use super::html::{Html, plain};
use super::list::{self, ListPane, title};
use super::thread::{self, TurnBlock};
use super::tools::{self, Block, Progress};
use super::turn::Why;
use crate::guard::Caller;

/// Number of messages of a page.
const MESSAGES: i64 = 80;
/// Number of messages that an update of the page reads.
const TAIL: i64 = 8;
/// Number of turns at the end that are shown step by step.
const STEPS: usize = 5;
/// Number of events that are read of one turn, and at once.
const EVENTS: usize = 20_000;
const AT_ONCE: i64 = 1_000;

/// Parts of the page that templates share.
pub(super) struct Talk {
    pub(super) name: String,
    pub(super) id: String,
    pub(super) title: String,
    pub(super) state: String,
    pub(super) folder: String,
    pub(super) path: String,
    pub(super) cost: String,
    pub(super) archived: bool,
    pub(super) blocks: Vec<TurnBlock>,
    pub(super) older: Option<String>,
    pub(super) newer: Option<String>,
    /// Number of the last event that the page contains.
    pub(super) seq: i64,
    pub(super) running: bool,
    pub(super) todo: Vec<(&'static str, String)>,
}

#[derive(Template)]
#[template(path = "conversation.html")]
struct ConversationPage {
    f: Frame,
    list: ListPane,
    talk: Talk,
    composer: Composer,
    why: Option<Why>,
    done: String,
}

#[derive(Template)]
#[template(path = "stream.html")]
struct StreamPart {
    f: Frame,
    talk: Talk,
}

#[derive(Template)]
#[template(path = "drawer.html")]
struct WhyPart {
    f: Frame,
    talk: Talk,
    why: Why,
}

#[derive(Template)]
#[template(path = "message.html")]
struct MessagePage {
    f: Frame,
    link: String,
    title: String,
    by: String,
    html: Html,
}

pub(super) async fn show(
    State(pages): State<Pages>,
    caller: Caller,
    headers: HeaderMap,
    Path(name): Path<String>,
    RawQuery(asked): RawQuery,
) -> Result {
    let asked = form::parse(asked.as_deref().unwrap_or_default().as_bytes());
    let client = Client {
        pages: &pages,
        caller: &caller,
    };
    let f = Frame::of(&pages.app, &caller, &headers, Place::Conversations).await;
    let part = frame::part(&headers);
    if part.as_deref() == Some("forecast") {
        let part = Forecast::of(&client, &f, &name, &asked).await?;
        return Ok(frame::page(&f, StatusCode::OK, &part));
    }
    let tail = part.as_deref() == Some("tail");
    let (talk, whole) = read(&client, &f, &name, &asked, tail).await?;
    if let Some("tail" | "stream") = part.as_deref() {
        let part = StreamPart { f: f.clone(), talk };
        return Ok(frame::page(&f, StatusCode::OK, &part));
    }
    let why = match asked.get("why") {
        Some(number) => Some(why(&client, &whole, number).await?),
        None => None,
    };
    if let (Some("why"), Some(why)) = (part.as_deref(), &why) {
        let part = WhyPart {
            f: f.clone(),
            talk,
            why: why.clone(),
        };
        return Ok(frame::page(&f, StatusCode::OK, &part));
    }
    let inbox: InboxDocument = client.get("/api/inbox").await?;
    let handle = Some(whole.conversation.handle.as_str());
    let list = list::pane(&client, &f, &Fields::default(), &inbox, handle).await?;
    let composer = Composer::of(&client, &f, &whole, &asked).await?;
    let done = asked
        .get("done")
        .map(super::change::done)
        .unwrap_or_default();
    let page = ConversationPage {
        f,
        list,
        talk,
        composer,
        why,
        done: done.into(),
    };
    Ok(frame::page(&page.f, StatusCode::OK, &page))
}

/// Reads a page of a conversation.
pub(super) async fn read(
    client: &Client<'_>,
    f: &Frame,
    name: &str,
    asked: &Fields,
    tail: bool,
) -> Result<(Talk, WholeView)> {
    let app = &client.pages.app;
    // Read before the messages: an event that comes twice changes nothing, and a missing one would.
    let seq = *app.live.head().borrow();
    let number = |name: &str| {
        asked
            .get(name)
            .and_then(|n| n.parse::<i64>().ok())
            .map(|n| n.to_string())
    };
    let all = asked.get("all") == Some("1");
    let limit = if tail { TAIL } else { MESSAGES };
    let address = format!(
        "/api/conversations/{}{}",
        encoded(name),
        query(&[
            ("before", number("before").filter(|_| !tail)),
            ("after", number("after").filter(|_| !tail)),
            ("around", number("around").filter(|_| !tail)),
            ("limit", Some(limit.to_string())),
            ("all", all.then(|| "true".into())),
        ])
    );
    let whole: WholeView = client.get(&address).await?;
    let mut progress = steps(client, &whole.turns).await?;
    let now = app.runner.hub.clock.now();
    let blocks = thread::blocks(&whole, &mut progress, now, f.may_send());
    let handle = whole.conversation.handle.clone();
    let view = &whole.conversation;
    let link = |name: &str, n: i64| {
        let all = if all { "&all=1" } else { "" };
        format!("/c/{handle}?{name}={n}{all}")
    };
    let todo = blocks.iter().rev().find(|block| !block.todo.is_empty());
    let todo = todo.filter(|block| block.reply.as_ref().is_some_and(|reply| reply.running));
    let talk = Talk {
        id: view.id.to_string(),
        title: title(&view.title, &view.handle),
        state: view.state.clone(),
        folder: plain(folder(&view.workdir)),
        path: plain(&view.workdir),
        cost: view
            .cost_usd
            .map(|cost| money(Some(cost)))
            .unwrap_or_default(),
        archived: view.archived,
        older: whole.older.map(|n| link("before", n)),
        newer: whole.newer.map(|n| link("after", n)),
        seq,
        running: ["running", "waiting", "queued"].contains(&view.state.as_str()),
        todo: todo.map(|block| block.todo.clone()).unwrap_or_default(),
        name: handle,
        blocks,
    };
    Ok((talk, whole))
}

/// Reads the events of turns that run, and of the last ones.
async fn steps(client: &Client<'_>, turns: &[TurnView]) -> Result<HashMap<TurnId, Progress>> {
    let hub = client.pages.app.hub(client.caller);
    let recent = turns.len().saturating_sub(STEPS);
    let mut found = HashMap::new();
    for (n, turn) in turns.iter().enumerate() {
        if turn.status == "queued" || (n < recent && turn.ended()) {
            continue;
        }
        let (mut events, mut after) = (vec![], 0);
        loop {
            let mut read = hub.store.read().await.map_err(rejoin_hub::Error::from)?;
            let page = read.events().of_turn(turn.turn_id, after, AT_ONCE).await;
            let page = page.map_err(rejoin_hub::Error::from)?;
            let full = page.len() as i64 == AT_ONCE;
            after = page.last().map_or(after, |event| event.seq);
            events.extend(page);
            if !full || events.len() >= EVENTS {
                break;
            }
        }
        found.insert(turn.turn_id, tools::progress(&events));
    }
    Ok(found)
}

/// Reads the explanation of a turn, by the number of its message or answer, or by its id.
async fn why(client: &Client<'_>, whole: &WholeView, number: &str) -> Result<Why> {
    let by_id = number.parse::<TurnId>().ok();
    let seq = number.parse::<i64>().ok();
    let of_message = whole
        .messages
        .iter()
        .find(|m| seq.is_some() && m.seq == seq);
    let id = by_id.or_else(|| of_message.and_then(|message| message.turn_id));
    let id = id.ok_or_else(|| Failure {
        status: StatusCode::NOT_FOUND,
        detail: format!("there is no turn with message {number} on this page"),
        next: None,
    })?;
    let explained: ExplainView = client.get(&format!("/api/turns/{id}/explain")).await?;
    Ok(Why::of(&explained))
}

/// Page of one message, whole.
pub(super) async fn message(
    State(pages): State<Pages>,
    caller: Caller,
    headers: HeaderMap,
    Path((name, number)): Path<(String, String)>,
) -> Result {
    let client = Client {
        pages: &pages,
        caller: &caller,
    };
    let (view, message) = one(&client, &name, &number).await?;
    let f = Frame::of(&pages.app, &caller, &headers, Place::Conversations).await;
    let page = MessagePage {
        f,
        link: format!("/c/{}?around={number}#m{number}", view.handle),
        title: title(&view.title, &view.handle),
        by: message.agent.clone().unwrap_or_else(|| "you".into()),
        html: thread::whole(&message.text),
    };
    if frame::part(&headers).as_deref() == Some("message") {
        return Ok(frame::html(false, StatusCode::OK, page.html.0));
    }
    Ok(frame::page(&page.f, StatusCode::OK, &page))
}

/// Reads one message of a conversation.
pub(super) async fn one(
    client: &Client<'_>,
    name: &str,
    number: &str,
) -> Result<(ConversationView, rejoin_hub::MessageView)> {
    let none = || Failure {
        status: StatusCode::NOT_FOUND,
        detail: "there is no such message".into(),
        next: None,
    };
    let n: i64 = number.parse().map_err(|_| none())?;
    let address = format!("/api/conversations/{}?around={n}&limit=1", encoded(name));
    let whole: WholeView = client.get(&address).await?;
    let message = whole.messages.into_iter().find(|m| m.seq == Some(n));
    Ok((whole.conversation, message.ok_or_else(none)?))
}

impl Talk {
    fn link(&self) -> String {
        format!("/c/{}", self.name)
    }

    fn todo_line(&self) -> String {
        let done = self.todo.iter().filter(|(class, _)| *class == "d").count();
        let now = self.todo.iter().find(|(class, _)| *class == "n");
        let now = now
            .map(|(_, text)| format!(" · {text}"))
            .unwrap_or_default();
        format!("{done} of {}{now}", self.todo.len())
    }

    fn todo_icon(&self, class: &str) -> &'static str {
        let _ = self;
        match class {
            "d" => "check",
            "n" => "right",
            _ => "dash",
        }
    }
}
