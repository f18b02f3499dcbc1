//! `rejoin snapshot list`

use std::collections::HashMap;

use clap::Args;
use rejoin_core::ConversationId;
use rejoin_hub::rfc3339;
use rejoin_store::Snapshot;
use serde_json::{Value, json};

use super::short;
use crate::app::App;
use crate::output::format::{Now, count, size};
use crate::output::{Line, Tone, table};
use rejoin_errors::Result;

/// List snapshots, newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rejoin snapshot list\n  rejoin snapshot list tmqx --json")]
pub(crate) struct ListArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV")]
    conversation: Option<String>,
    /// Maximum number of results
    #[arg(short, default_value_t = 20)]
    n: i64,
}

pub(super) async fn run(app: &App, args: &ListArgs) -> Result<u8> {
    let most = args.n.clamp(1, 10_000);
    let hub = app.hub();
    let found = match &args.conversation {
        Some(name) => {
            let c = hub.find(name, &app.folders()).await?.conversation.id;
            let mut all = hub.store.read().await?.snapshots().of(c).await?;
            all.truncate(usize::try_from(most).unwrap_or(usize::MAX));
            all
        }
        None => {
            hub.store
                .read()
                .await?
                .inventory()
                .newest_snapshots(most)
                .await?
        }
    };
    let handles = handles(app, &found).await?;
    let handle = |s: &Snapshot| handles.get(&s.conversation).cloned().unwrap_or_default();
    if app.out.json {
        let all: Vec<Value> = found.iter().map(|s| document(s, &handle(s))).collect();
        app.out.json(&json!({ "snapshots": all }));
        return Ok(0);
    }
    if found.is_empty() {
        app.out
            .note("no session is kept yet; the end of a turn keeps its session");
        return Ok(0);
    }
    let now = Now::at(hub.clock.now());
    let rows: Vec<_> = found.iter().map(|s| row(s, &handle(s), &now)).collect();
    let fit = app.out.screen().then(|| app.out.width());
    app.out.lines(&table(&rows, fit));
    Ok(0)
}

pub(super) async fn handles(app: &App, of: &[Snapshot]) -> Result<HashMap<ConversationId, String>> {
    let mut handles = HashMap::new();
    let mut read = app.hub().store.read().await?;
    for snapshot in of {
        let c = snapshot.conversation;
        if !handles.contains_key(&c)
            && let Some(found) = read.conversations().get(c).await?
        {
            handles.insert(c, read.conversations().short_handle(&found.handle).await?);
        }
    }
    Ok(handles)
}

fn row(snapshot: &Snapshot, handle: &str, now: &Now) -> Vec<Line> {
    let mut state = Line::new();
    if snapshot.kept {
        state.push(Tone::Strong, "pinned  ");
    }
    if snapshot.open {
        state.push(Tone::Faint, "of a turn that runs  ");
    }
    match &snapshot.expired {
        Some((at, why)) => state.push(
            Tone::Faint,
            &format!("expired {}: {why}", now.ago(&rfc3339(*at))),
        ),
        None => state.push(Tone::Faint, &format!("by {}", snapshot.machine)),
    }
    vec![
        Line::new().with(Tone::Name, &short(snapshot.id)),
        Line::plain(handle),
        Line::plain(snapshot.agent.as_str()),
        Line::faint(&now.ago(&rfc3339(snapshot.taken_at))),
        Line::plain(&count(snapshot.messages, "message")),
        Line::plain(&size(snapshot.length)),
        Line::faint(&format!("+{}", size(snapshot.added))),
        state,
    ]
}

fn document(snapshot: &Snapshot, handle: &str) -> Value {
    let state = match (&snapshot.expired, snapshot.open) {
        (Some(_), _) => "expired",
        (None, true) => "open",
        (None, false) => "confirmed",
    };
    let expired = snapshot.expired.as_ref();
    json!({
        "id": snapshot.id, "conversation_id": snapshot.conversation, "handle": handle,
        "agent": snapshot.agent, "session_id": snapshot.session, "state": state,
        "messages": snapshot.messages, "bytes": snapshot.length, "added_bytes": snapshot.added,
        "machine": snapshot.machine, "pinned": snapshot.kept,
        "taken_at": rfc3339(snapshot.taken_at),
        "expired_at": expired.map(|(at, _)| rfc3339(*at)),
        "expired_why": expired.map(|(_, why)| why),
    })
}
