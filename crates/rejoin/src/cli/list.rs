//! `rejoin list`

use clap::Args;
use rejoin_core::ConversationId;
use rejoin_hub::ConversationView;
use rejoin_store::{Conversation, ListFilter};

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::figures::{Now, money};
use crate::output::{Line, Tone, one_line, table};

/// A title that nothing cuts is still no page.
const TITLE: usize = 200;

/// List conversations, newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin list --here             those of this folder\n  rejoin list --state running    what is going on now\n  rejoin list --json -n 100      for a script; go on with --cursor"
)]
pub(crate) struct ListArgs {
    /// Only those of this folder
    #[arg(long)]
    here: bool,
    /// Only those in this state
    #[arg(long, value_parser = ["idle", "queued", "running", "waiting"])]
    state: Option<String>,
    /// Only those whose newest turn this agent answered
    #[arg(long)]
    agent: Option<String>,
    /// Those that were put away
    #[arg(long)]
    archived: bool,
    /// How many
    #[arg(short, default_value_t = 20)]
    n: i64,
    /// Go on after a page; its next_cursor is in --json
    #[arg(long)]
    cursor: Option<String>,
}

pub(crate) async fn run(app: &App, args: &ListArgs) -> Result<u8> {
    let limit = args.n.clamp(1, 1000);
    let filter = ListFilter {
        workdir: args
            .here
            .then(|| app.folders().into_iter().next())
            .flatten(),
        agent: args.agent.clone(),
        state: args.state.clone(),
        archived: args.archived,
        after: args.cursor.as_deref().map(parse_cursor).transpose()?,
        // One more tells whether there is a next page.
        limit: limit + 1,
    };
    let mut page = app
        .hub()
        .store
        .read()
        .await?
        .list_conversations(&filter)
        .await?;
    let more = page.len() as i64 > limit;
    page.truncate(limit as usize);
    let last = page.last().filter(|_| more).map(|c| (c.updated_at, c.id));
    if app.out.json {
        let mut views = vec![];
        for conversation in &page {
            views.push(app.hub().conversation_view(conversation).await?);
        }
        let next = last.map(|(at, id)| format!("{at}.{id}"));
        app.out
            .json(&serde_json::json!({"conversations": views, "next_cursor": next}));
        return Ok(0);
    }
    if page.is_empty() {
        app.out.note(&nothing(args));
        return Ok(0);
    }
    let now = Now::at(app.hub().clock.now());
    let mut rows = vec![];
    for conversation in &page {
        rows.push(row(app, conversation, &now).await?);
    }
    let fit = app.out.screen().then(|| app.out.width());
    app.out.lines(&table(&rows, fit));
    if last.is_some() && app.out.screen() {
        app.out.note(&format!("more: rejoin list -n {}", limit * 5));
    }
    Ok(0)
}

/// One conversation as cells: handle, age, agent, state, cost, title.
pub(super) async fn row(app: &App, conversation: &Conversation, now: &Now) -> Result<Vec<Line>> {
    let view = app.hub().conversation_view(conversation).await?;
    let (state, tone) = state(&view);
    Ok(vec![
        handle(app, conversation, &view.handle).await?,
        Line::faint(&now.ago(&view.updated_at)),
        Line::plain(&view.agent),
        Line::new().with(tone, state),
        Line::faint(&money(view.cost_usd)),
        Line::plain(&one_line(&view.title, TITLE)),
    ])
}

/// The letters that are enough to type stand out.
pub(super) async fn handle(app: &App, conversation: &Conversation, shown: &str) -> Result<Line> {
    let mut read = app.hub().store.read().await?;
    let enough = read.unique_letters(&conversation.handle).await?;
    let (enough, rest) = shown.split_at(enough.min(shown.len()));
    Ok(Line::new().with(Tone::Name, enough).with(Tone::Faint, rest))
}

/// What goes on; else how the newest turn ended, if that was not well.
pub(super) fn state(view: &ConversationView) -> (&str, Tone) {
    let ended = view.last_turn.as_ref().and_then(|t| t["status"].as_str());
    match (view.state.as_str(), ended) {
        ("idle", Some(bad @ ("failed" | "lost" | "cancelled"))) => (bad, Tone::Bad),
        ("idle", _) => ("idle", Tone::Faint),
        (busy, _) => (busy, Tone::Busy),
    }
}

fn nothing(args: &ListArgs) -> String {
    if args.archived {
        "nothing is put away; try: rejoin list".into()
    } else if args.state.is_some() || args.agent.is_some() || args.cursor.is_some() {
        "no such conversation; try: rejoin list".into()
    } else if args.here {
        "no conversation in this folder yet; try: rejoin send \"hello\", or rejoin list".into()
    } else {
        "no conversation yet; try: rejoin send \"hello\", or rejoin demo".into()
    }
}

fn parse_cursor(text: &str) -> Result<(i64, ConversationId)> {
    let parts = text
        .split_once('.')
        .and_then(|(at, id)| Some((at.parse().ok()?, id.parse().ok()?)));
    parts.ok_or_else(|| {
        Failure::usage("that is not a cursor; --json prints one as next_cursor")
            .try_this("rejoin list --json")
    })
}
