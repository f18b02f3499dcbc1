//! `rejoin list`

use clap::Args;
use rejoin_hub::{ConversationView, ListWish};

use crate::at::At;
use crate::failure::Result;
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

pub(crate) async fn run(at: At<'_>, args: &ListArgs) -> Result<u8> {
    let limit = args.n.clamp(1, 1000);
    let wish = ListWish {
        workdir: if args.here { at.folder()? } else { None },
        agent: args.agent.clone(),
        state: args.state.clone(),
        archived: args.archived,
        cursor: args.cursor.clone(),
        limit,
        words: None,
    };
    let (out, page) = (at.out(), at.list(&wish).await?);
    if out.json {
        out.json(&page);
        return Ok(0);
    }
    if page.conversations.is_empty() {
        out.note(&nothing(args));
        return Ok(0);
    }
    let now = At::now();
    let mut rows = vec![];
    for conversation in &page.conversations {
        rows.push(row(at, conversation, &now).await?);
    }
    let fit = out.screen().then(|| out.width());
    out.lines(&table(&rows, fit));
    if page.next_cursor.is_some() && out.screen() {
        out.note(&format!("more: rejoin list -n {}", limit * 5));
    }
    Ok(0)
}

/// One conversation as cells: handle, age, agent, state, cost, title.
pub(super) async fn row(at: At<'_>, view: &ConversationView, now: &Now) -> Result<Vec<Line>> {
    let (state, tone) = state(view);
    Ok(vec![
        handle(at, view).await?,
        Line::faint(&now.ago(&view.updated_at)),
        Line::plain(&view.agent),
        Line::new().with(tone, state),
        Line::faint(&money(view.cost_usd)),
        Line::plain(&one_line(&view.title, TITLE)),
    ])
}

/// The letters that are enough to type stand out.
pub(super) async fn handle(at: At<'_>, view: &ConversationView) -> Result<Line> {
    let shown = &view.handle;
    let enough = at.letters(view.id).await?.unwrap_or(shown.len());
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
