//! `rejoin list`

use clap::Args;
use rejoin_core::ConversationId;
use rejoin_hub::ConversationView;
use rejoin_store::ListFilter;

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::one_line;

/// List conversations, newest first
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only those of this folder
    #[arg(long)]
    here: bool,
    /// Only those in this state: idle, queued, running, waiting
    #[arg(long, value_parser = ["idle", "queued", "running", "waiting"])]
    state: Option<String>,
    /// Only those whose newest turn this agent answered
    #[arg(long)]
    agent: Option<String>,
    /// How many
    #[arg(short, default_value_t = 20)]
    n: i64,
    /// Go on after the page that ended with this cursor
    #[arg(long)]
    cursor: Option<String>,
}

pub(crate) async fn run(app: &App, args: &ListArgs) -> Result<u8> {
    let mut filter = ListFilter {
        workdir: args
            .here
            .then(|| app.folders().into_iter().next())
            .flatten(),
        agent: args.agent.clone(),
        after: args.cursor.as_deref().map(parse_cursor).transpose()?,
        limit: args.n.clamp(1, 1000),
    };
    let (mut views, mut more): (Vec<ConversationView>, _) = (vec![], None);
    while (views.len() as i64) < args.n {
        let page = app
            .hub()
            .store
            .read()
            .await?
            .list_conversations(&filter)
            .await?;
        let Some(last) = page.last() else { break };
        filter.after = Some((last.updated_at, last.id));
        more = (page.len() as i64 == filter.limit).then_some((last.updated_at, last.id));
        for conversation in &page {
            let view = app.hub().conversation_view(conversation).await?;
            if args.state.as_ref().is_none_or(|s| *s == view.state) {
                views.push(view);
            }
        }
        if more.is_none() {
            break;
        }
    }
    if app.out.json {
        let next = more.map(|(at, id)| format!("{at}.{id}"));
        app.out
            .json(&serde_json::json!({"conversations": views, "next_cursor": next}));
        return Ok(0);
    }
    if views.is_empty() {
        app.out
            .note("no conversations yet; try: rejoin send \"hello\"");
    }
    let wide = views.iter().map(|v| v.handle.len()).max().unwrap_or(0);
    for view in &views {
        let when = view
            .updated_at
            .get(..16)
            .unwrap_or(&view.updated_at)
            .replace('T', " ");
        let line = format!(
            "{:wide$}  {when}  {:8} {:8} {}",
            view.handle, view.agent, view.state, view.title
        );
        app.out.text(&one_line_keeping(&line));
    }
    Ok(0)
}

/// Titles are foreign text; the table's own spaces stay.
fn one_line_keeping(line: &str) -> String {
    let cut: String = line
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if cut.chars().count() <= 110 {
        cut
    } else {
        one_line(&cut, 110)
    }
}

fn parse_cursor(text: &str) -> Result<(i64, ConversationId)> {
    let parts = text
        .split_once('.')
        .and_then(|(at, id)| Some((at.parse().ok()?, id.parse().ok()?)));
    parts.ok_or_else(|| {
        Failure::usage("that is not a cursor").try_this("rejoin list --json, and its next_cursor")
    })
}
