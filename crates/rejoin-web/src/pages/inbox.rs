//! The inbox: questions and approvals that wait for a person.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use rejoin_hub::{InboxDocument, InboxView};
use serde_json::Value;

use super::Pages;
use super::client::Client;
use super::error::Result;
use super::form::Fields;
use super::format::{folder, of, when};
use super::frame::{self, Frame, Place, go};
use super::html::{Html, plain};
use super::list::title;
use super::question::{self, QuestionForm};
use crate::guard::Caller;

struct Card {
    id: String,
    link: String,
    title: String,
    agent: String,
    folder: String,
    when: Html,
    lost: bool,
    questions: Vec<QuestionForm>,
}

#[derive(Template)]
#[template(path = "inbox.html")]
struct InboxPage {
    f: Frame,
    heading: String,
    cards: Vec<Card>,
    note: String,
}

#[derive(Template)]
#[template(path = "inbox_part.html")]
struct InboxPart {
    f: Frame,
    heading: String,
    cards: Vec<Card>,
    note: String,
}

pub(super) async fn show(State(pages): State<Pages>, caller: Caller, headers: HeaderMap) -> Result {
    render(&pages, &caller, &headers, StatusCode::OK, String::new()).await
}

async fn render(
    pages: &Pages,
    caller: &Caller,
    headers: &HeaderMap,
    status: StatusCode,
    note: String,
) -> Result {
    let f = Frame::of(&pages.app, caller, headers, Place::Inbox).await;
    let inbox: InboxDocument = Client { pages, caller }.get("/api/inbox").await?;
    let now = pages.app.runner.hub.clock.now();
    let cards: Vec<Card> = inbox.turns.iter().map(|turn| card(turn, now)).collect();
    let heading = match cards.len() {
        0 => "Nothing waits for you".to_owned(),
        n => format!("{} for you", of(n, "turn waits", "turns wait")),
    };
    if frame::part(headers).as_deref() == Some("inbox") {
        let part = InboxPart {
            f: f.clone(),
            heading,
            cards,
            note,
        };
        return Ok(frame::page(&f, status, &part));
    }
    let page = InboxPage {
        f,
        heading,
        cards,
        note,
    };
    Ok(frame::page(&page.f, status, &page))
}

fn card(turn: &InboxView, now: i64) -> Card {
    let handle = turn.handle.split(':').next().unwrap_or_default();
    Card {
        id: turn.turn_id.to_string(),
        link: format!("/c/{handle}"),
        title: title(&turn.title, &turn.handle),
        agent: turn.agent.clone(),
        folder: plain(folder(&turn.workdir)),
        when: when(&turn.asked_at, now),
        lost: turn.status == "lost",
        questions: turn
            .questions
            .iter()
            .map(|q| question::form(turn.turn_id, q))
            .collect(),
    }
}

/// Answers a question. The first answer counts: a later one is told whose it was.
pub(super) async fn answer(
    State(pages): State<Pages>,
    caller: Caller,
    headers: HeaderMap,
    Path(turn): Path<String>,
    fields: Fields,
) -> Result {
    let client = Client {
        pages: &pages,
        caller: &caller,
    };
    let path = format!("/api/turns/{}/answer", super::client::encoded(&turn));
    match client.post::<Value>(&path, question::answer(&fields)).await {
        Ok(_) => Ok(go(own(fields.get("back")))),
        Err(failure)
            if [StatusCode::CONFLICT, StatusCode::BAD_REQUEST].contains(&failure.status) =>
        {
            let note = super::error::capital(&failure.detail);
            render(&pages, &caller, &headers, failure.status, note).await
        }
        Err(failure) => Err(failure),
    }
}

fn own(back: Option<&str>) -> &str {
    back.filter(|back| back.starts_with("/c/"))
        .unwrap_or("/inbox")
}
