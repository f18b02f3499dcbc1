//! The list of conversations, with filters, search and pages.

use std::collections::HashMap;

use askama::Template;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use rejoin_hub::{ConversationView, HitView, HitsView, InboxDocument, InboxView, ListView};

use super::Pages;
use super::client::{Client, query};
use super::error::Result;
use super::form::{self, Fields};
use super::format::{ago, day, folder, money, of, when};
use super::frame::{self, Frame, Place};
use super::html::{Html, cut, escape, plain};
use super::question::title_of;
use crate::guard::Caller;

/// Number of rows on a page.
const ROWS: usize = 50;

/// Row of a conversation.
pub(super) struct RowView {
    pub(super) handle: String,
    pub(super) link: String,
    /// Name of the mark: a verdict, `waiting`, `queued`, `failed` or `running`.
    pub(super) mark: String,
    pub(super) title: String,
    pub(super) when: Html,
    /// Line that says more than agent and folder do, with its tone.
    pub(super) says: Option<(&'static str, String)>,
    pub(super) agent: String,
    pub(super) folder: String,
    pub(super) cost: String,
    pub(super) current: bool,
}

pub(super) struct Group {
    pub(super) name: &'static str,
    pub(super) rows: Vec<RowView>,
}

/// Message that a search found.
pub(super) struct Found {
    pub(super) link: String,
    pub(super) title: String,
    pub(super) by: String,
    pub(super) snippet: Html,
    pub(super) when: String,
}

/// The pane of the list, beside a conversation or alone.
pub(super) struct ListPane {
    pub(super) f: Frame,
    pub(super) q: String,
    pub(super) state: String,
    pub(super) archived: bool,
    pub(super) groups: Vec<Group>,
    pub(super) found: Vec<Found>,
    pub(super) next: Option<String>,
    pub(super) empty: &'static str,
    /// Address of the same list.
    pub(super) address: String,
}

#[derive(Template)]
#[template(path = "list.html")]
struct ListPage {
    f: Frame,
    list: ListPane,
    waiting: Vec<Waiting>,
    first_run: bool,
    agents: Vec<String>,
}

#[derive(Template)]
#[template(path = "list_pane.html")]
struct PanePart {
    list: ListPane,
}

struct Waiting {
    link: String,
    title: String,
    agent: String,
    asks: String,
    when: Html,
}

/// First page: the list, and on the right what waits.
pub(super) async fn show(
    State(pages): State<Pages>,
    caller: Caller,
    headers: HeaderMap,
    RawQuery(asked): RawQuery,
) -> Result {
    let f = Frame::of(&pages.app, &caller, &headers, Place::Conversations).await;
    let asked = form::parse(asked.as_deref().unwrap_or_default().as_bytes());
    let client = Client {
        pages: &pages,
        caller: &caller,
    };
    let inbox: InboxDocument = client.get("/api/inbox").await?;
    let list = pane(&client, &f, &asked, &inbox, asked.get("open")).await?;
    if frame::part(&headers).as_deref() == Some("rows") {
        let part = PanePart { list };
        return Ok(frame::page(&f, StatusCode::OK, &part));
    }
    let now = pages.app.runner.hub.clock.now();
    let waiting = inbox.turns.iter().map(|turn| waiting(turn, now)).collect();
    let filtered = ["q", "state", "archived", "cursor"]
        .iter()
        .any(|name| asked.some(name).is_some());
    let first_run = list.groups.is_empty() && list.found.is_empty() && !filtered && {
        let archived: ListView = client
            .get("/api/conversations?archived=true&limit=1")
            .await?;
        archived.conversations.is_empty()
    };
    let page = ListPage {
        agents: agents(&pages),
        first_run,
        waiting,
        list,
        f,
    };
    Ok(frame::page(&page.f, StatusCode::OK, &page))
}

/// Returns the names of the agents that may be used.
pub(super) fn agents(pages: &Pages) -> Vec<String> {
    let app = &pages.app;
    let enabled = |name: &&str| {
        app.defaults
            .disabled
            .iter()
            .all(|disabled| disabled != name)
    };
    let mut names = vec![];
    for adapter in app.runner.config.adapters() {
        names.push(adapter.name());
    }
    names.retain(enabled);
    names.into_iter().map(str::to_owned).collect()
}

fn waiting(turn: &InboxView, now: i64) -> Waiting {
    Waiting {
        link: format!("/inbox#{}", turn.turn_id),
        title: title(&turn.title, &turn.handle),
        agent: turn.agent.clone(),
        asks: turn.questions.first().map(title_of).unwrap_or_default(),
        when: when(&turn.asked_at, now),
    }
}

/// Reads the list that an address asks for.
pub(super) async fn pane(
    client: &Client<'_>,
    f: &Frame,
    asked: &Fields,
    inbox: &InboxDocument,
    current: Option<&str>,
) -> Result<ListPane> {
    let some = |name: &str| asked.some(name).map(str::to_owned);
    let (q, state) = (some("q"), some("state"));
    let archived = asked.get("archived") == Some("1");
    let now = client.pages.app.runner.hub.clock.now();
    let mut shown = ListPane {
        f: f.clone(),
        address: format!(
            "/{}",
            query(&[
                ("q", q.clone()),
                ("state", state.clone()),
                ("archived", archived.then(|| "1".into())),
            ])
        ),
        q: q.clone().unwrap_or_default(),
        state: state.clone().unwrap_or_default(),
        archived,
        groups: vec![],
        found: vec![],
        next: None,
        empty: "",
    };
    if let Some(q) = q {
        // A text without a word finds nothing.
        if q.chars().any(char::is_alphanumeric) {
            let address = format!(
                "/api/search{}",
                query(&[("q", Some(q)), ("limit", Some("50".into()))])
            );
            let hits: HitsView = client.get(&address).await?;
            shown.found = hits.messages.iter().map(|hit| found(hit, now)).collect();
        }
        shown.empty = "No message contains these words.";
        return Ok(shown);
    }
    let address = format!(
        "/api/conversations{}",
        query(&[
            ("state", state.clone()),
            ("archived", archived.then(|| "true".into())),
            ("cursor", some("cursor")),
            ("limit", Some(ROWS.to_string())),
        ])
    );
    let list: ListView = client.get(&address).await?;
    let asks: HashMap<_, _> = inbox
        .turns
        .iter()
        .map(|turn| (turn.conversation_id, turn))
        .collect();
    for view in &list.conversations {
        let name = match (view.state.as_str(), state.is_none() && !archived) {
            (_, false) => "",
            ("waiting", _) => "Waiting for you",
            ("running" | "queued", _) => "Running",
            _ => day(&view.updated_at, now),
        };
        let row = row(view, asks.get(&view.id).copied(), current, now);
        match shown.groups.iter_mut().find(|group| group.name == name) {
            Some(group) => group.rows.push(row),
            None => shown.groups.push(Group {
                name,
                rows: vec![row],
            }),
        }
    }
    let order = ["Waiting for you", "Running"];
    let rank = |group: &Group| {
        order
            .iter()
            .position(|name| *name == group.name)
            .unwrap_or(order.len())
    };
    shown.groups.sort_by_key(rank);
    shown.next = list.next_cursor.map(|cursor| {
        format!(
            "/{}",
            query(&[
                ("state", state),
                ("archived", archived.then(|| "1".into())),
                ("cursor", Some(cursor)),
            ])
        )
    });
    shown.empty = if archived {
        "Nothing is archived."
    } else {
        "No conversation is in this state."
    };
    Ok(shown)
}

/// Returns the title of a conversation, or its handle if it has none.
pub(super) fn title(title: &str, handle: &str) -> String {
    let title = title.trim();
    if title.is_empty() {
        handle.to_owned()
    } else {
        plain(&cut(title, 200))
    }
}

fn row(
    view: &ConversationView,
    asks: Option<&InboxView>,
    current: Option<&str>,
    now: i64,
) -> RowView {
    let last = view.last_turn.as_ref();
    let agent = last.map_or("", |turn| turn.agent.as_str());
    // A turn that has ended may wait for the approval of its climb.
    let state = match asks {
        Some(turn) if turn.status == "succeeded" => "waiting",
        Some(_) | None => view.state.as_str(),
    };
    let (mark, says) = match state {
        "waiting" => {
            let asks = asks.and_then(|turn| turn.questions.first()).map(title_of);
            (
                "waiting".into(),
                Some(("warn", asks.unwrap_or_else(|| "Waits for an answer".into()))),
            )
        }
        "running" => (
            "running".into(),
            Some(("ok", format!("{agent} is working"))),
        ),
        "queued" => ("queued".into(), Some(("muted", "Queued".into()))),
        _ => match last.map(|turn| (turn.status.as_str(), turn)) {
            Some(("failed" | "lost", turn)) => {
                ("failed".into(), Some(("bad", first(&turn.summary))))
            }
            Some(("cancelled", _)) => ("failed".into(), Some(("muted", "Cancelled".into()))),
            last => {
                let verdict = last.and_then(|(_, turn)| turn.verdict.clone());
                (verdict.unwrap_or_default(), None)
            }
        },
    };
    RowView {
        link: format!("/c/{}", view.handle),
        current: current == Some(view.handle.as_str()),
        handle: view.handle.clone(),
        mark: if mark.is_empty() {
            "started".into()
        } else {
            mark
        },
        title: title(&view.title, &view.handle),
        when: when(&view.updated_at, now),
        says: says.map(|(tone, text)| (tone, plain(&cut(&text, 120)))),
        agent: view.agent.clone(),
        folder: plain(folder(&view.workdir)),
        cost: view
            .cost_usd
            .map(|cost| money(Some(cost)))
            .unwrap_or_default(),
    }
}

/// Returns the first part of a summary line, without the name of the program.
pub(super) fn first(summary: &str) -> String {
    let line = summary.trim_start_matches("rejoin: ");
    line.split(" · ").next().unwrap_or_default().to_owned()
}

fn found(hit: &HitView, now: i64) -> Found {
    let letters: Vec<char> = hit.snippet.chars().collect();
    let piece = |from: usize, to: usize| {
        let to = to.min(letters.len());
        escape(&letters[from.min(to)..to].iter().collect::<String>())
    };
    let (mut html, mut at) = (String::new(), 0);
    for (from, to) in &hit.marks {
        for part in [&piece(at, *from), "<mark>", &piece(*from, *to), "</mark>"] {
            html += part;
        }
        at = *to;
    }
    html += &piece(at, letters.len());
    // A hit is named with its message.
    let handle = hit.handle.split(':').next().unwrap_or_default();
    Found {
        link: format!("/c/{handle}?around={}#m{}", hit.seq, hit.seq),
        title: title(&hit.title, handle),
        by: hit.agent.clone().unwrap_or_else(|| "you".into()),
        snippet: Html(html),
        when: ago(&hit.created_at, now),
    }
}

impl ListPane {
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.found.is_empty()
    }

    pub(super) fn here(&self, state: &str) -> Html {
        let here = match state {
            "archived" => self.archived,
            state => !self.archived && self.state == state,
        };
        Html(
            if here && self.q.is_empty() {
                " aria-current=\"true\""
            } else {
                ""
            }
            .to_owned(),
        )
    }

    pub(super) fn results(&self) -> String {
        of(self.found.len(), "message", "messages")
    }
}
