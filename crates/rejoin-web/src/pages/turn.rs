//! A turn: why it was continued as it was, what it cost, its steps and its events.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use rejoin_core::Sent;
use rejoin_hub::{AttemptView, ChainView, ExplainView, TurnView};
use rejoin_store::EventRow;
use serde_json::Value;

use super::Pages;
use super::chain::Chain;
use super::client::{Client, encoded};
use super::error::{Result, capital};
use super::format::{count, money, of, took};
use super::frame::{self, Frame, Place};
use super::html::{cut, plain};
use super::thread::{chip, figures};
use super::tools::{self, Block};
use crate::guard::Caller;

/// Number of events that the page of a turn shows.
const EVENTS: i64 = 500;

/// Checks that say most about a turn that was resumed.
const TELLING: [&str; 5] = ["history", "session", "bytes", "folder", "context"];

/// Check of a decision.
#[derive(Clone)]
pub(super) struct Check {
    pub(super) class: &'static str,
    pub(super) icon: &'static str,
    pub(super) name: String,
    pub(super) evidence: String,
}

/// Explanation of a verdict.
#[derive(Clone)]
pub(super) struct Why {
    pub(super) turn: String,
    pub(super) reference: String,
    pub(super) headline: String,
    /// Checks that tell why: failed ones, and the most telling of the others.
    pub(super) telling: Vec<Check>,
    pub(super) passed: Vec<Check>,
    pub(super) facts: Vec<(&'static str, String)>,
    pub(super) figures: Vec<(&'static str, String)>,
    pub(super) command: String,
}

impl Why {
    pub(super) fn of(explained: &ExplainView) -> Self {
        let view = &explained.turn;
        // That nothing precedes the first turn is no failure.
        let first = view.reason.as_deref() == Some("first_turn");
        let checks = view
            .checks
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let checks = checks.iter().map(|value| check(value, first));
        let tells = |check: &Check| {
            check.class == "no"
                || (check.class.is_empty() && TELLING.contains(&check.name.as_str()))
        };
        let (mut telling, passed): (Vec<Check>, Vec<Check>) = checks.partition(tells);
        telling.sort_by_key(|check| check.class != "no");
        let chip = chip(view);
        let mut facts = vec![("Sent", sent(&view.sent))];
        facts.push(("Allowed", explained.permissions.mode.to_string()));
        if let Some(cost) = explained
            .resumed_estimate_usd
            .filter(|_| view.verdict.as_deref() == Some("reseeded"))
        {
            facts.push((
                "Resumed",
                format!("would have cost ≈ {}", money(Some(cost))),
            ));
        }
        if let Some(session) = &view.session_id {
            facts.push(("Session", plain(session)));
        }
        if view.ended() {
            facts.push(("Saved", view.saved.replace('_', " ")));
        }
        match explained.goes_on {
            Some(true) => facts.push(("Next", "a turn resumes this session".into())),
            Some(false) => facts.push(("Next", "a turn does not resume this session".into())),
            None => {}
        }
        if !view.machine.is_empty() {
            facts.push(("Machine", plain(&view.machine)));
        }
        Self {
            turn: view.turn_id.to_string(),
            reference: view.handle.clone(),
            headline: capital(&chip.map_or_else(|| view.status.clone(), |chip| chip.words)),
            telling,
            passed,
            facts,
            figures: figures(view),
            command: plain(&view.command.join(" ")),
        }
    }

    pub(super) fn passed_line(&self) -> String {
        let passed = self
            .passed
            .iter()
            .filter(|check| check.class.is_empty())
            .count();
        of(passed, "more check passed", "more checks passed")
    }
}

fn check(value: &Value, first: bool) -> Check {
    let (class, icon) = match value["ok"].as_bool() {
        Some(true) => ("", "check"),
        Some(false) if !first => ("no", "x"),
        Some(false) | None => ("na", "dash"),
    };
    let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    Check {
        class,
        icon,
        name: text("check"),
        evidence: plain(&text("evidence")),
    }
}

fn sent(sent: &Sent) -> String {
    let mut parts = vec![];
    if sent.resumed > 0 {
        parts.push(format!(
            "the session holds {}",
            of(sent.resumed as usize, "message", "messages")
        ));
    }
    if sent.caught_up > 0 {
        parts.push(format!("{} caught up", sent.caught_up));
    }
    if sent.transcribed > 0 {
        parts.push(format!(
            "{} in the transcript, {} shortened",
            sent.transcribed, sent.shortened
        ));
    }
    if sent.left_out > 0 {
        parts.push(format!("{} left out", sent.left_out));
    }
    parts.push(format!("{} bytes", count(sent.bytes)));
    parts.join("; ")
}

struct Event {
    seq: i64,
    at: String,
    kind: &'static str,
    body: String,
}

#[derive(Template)]
#[template(path = "turn.html")]
struct TurnPage {
    f: Frame,
    name: String,
    why: Why,
    turn: TurnView,
    tiles: Vec<(&'static str, String, String)>,
    blocks: Vec<Block>,
    /// Set if the turn has a tier.
    chain: Option<Chain>,
    attempts: Vec<AttemptView>,
    denied: Vec<String>,
    events: Vec<Event>,
    more: bool,
}

pub(super) async fn show(
    State(pages): State<Pages>,
    caller: Caller,
    headers: HeaderMap,
    Path((name, id)): Path<(String, String)>,
) -> Result {
    let client = Client {
        pages: &pages,
        caller: &caller,
    };
    let explained: ExplainView = client
        .get(&format!("/api/turns/{}/explain", encoded(&id)))
        .await?;
    let turn = explained.turn.clone();
    let chain = match turn.chain_id {
        Some(_) => {
            let path = format!("/api/turns/{}/chain", turn.turn_id);
            let view: ChainView = client.get(&path).await?;
            Some(Chain::of(&view, &turn.turn_id.to_string()))
        }
        None => None,
    };
    let hub = pages.app.hub(&caller);
    let mut read = hub.store.read().await.map_err(rejoin_hub::Error::from)?;
    let mut rows = read
        .events()
        .of_turn(turn.turn_id, 0, EVENTS + 1)
        .await
        .map_err(rejoin_hub::Error::from)?;
    drop(read);
    let more = rows.len() as i64 > EVENTS;
    rows.truncate(EVENTS as usize);
    let denied = turn
        .denied
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let page = TurnPage {
        f: Frame::of(&pages.app, &caller, &headers, Place::Conversations).await,
        name,
        why: Why::of(&explained),
        tiles: tiles(&turn),
        blocks: tools::progress(&rows).blocks,
        chain,
        attempts: turn.attempts.clone(),
        denied: denied
            .iter()
            .map(|one| {
                plain(&cut(
                    &one["tool"]
                        .as_str()
                        .map_or_else(|| one.to_string(), str::to_owned),
                    200,
                ))
            })
            .collect(),
        events: rows.iter().map(event).collect(),
        more,
        turn,
    };
    Ok(frame::page(&page.f, StatusCode::OK, &page))
}

fn event(row: &EventRow) -> Event {
    let mut body = serde_json::to_value(&row.body).unwrap_or_default();
    if let Some(fields) = body.as_object_mut() {
        fields.remove("type");
    }
    let at = rejoin_hub::rfc3339(row.at);
    Event {
        seq: row.seq,
        at: at.get(11..23).unwrap_or_default().to_owned(),
        kind: row.body.kind(),
        body: plain(&cut(&body.to_string(), 300)),
    }
}

fn tiles(turn: &TurnView) -> Vec<(&'static str, String, String)> {
    let usage = turn.usage;
    let known = |n: Option<u64>| n.map_or_else(|| "unknown".to_owned(), count);
    let cached = usage
        .cache_read
        .map(|n| format!("{} from the cache", count(n)))
        .unwrap_or_default();
    let context = turn.context.map(|context| {
        let share = (context.used * 100)
            .checked_div(context.window)
            .unwrap_or_default();
        (
            format!("{share}%"),
            format!("{} of {}", count(context.used), count(context.window)),
        )
    });
    let context = context.unwrap_or_else(|| ("unknown".into(), String::new()));
    vec![
        ("Tokens in", known(usage.input), cached),
        ("Tokens out", known(usage.output), String::new()),
        (
            "Cost",
            turn.cost_usd
                .map_or_else(|| "unknown".into(), |cost| money(Some(cost))),
            String::new(),
        ),
        ("Context", context.0, context.1),
        ("Time", took(turn.duration_ms), String::new()),
    ]
}
