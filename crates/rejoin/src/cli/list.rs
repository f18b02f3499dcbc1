//! `rejoin list`

use clap::Args;
use rejoin_hub::{ConversationView, ListQuery, ListView, NameKind};

use crate::cli::command::{Help, Run, Task};
use crate::cli::costs::parse_back;
use crate::hub_client::HubClient;
use crate::output::format::{Now, money};
use crate::output::{Line, Tone, one_line, table};
use rejoin_errors::Result;

/// A title that nothing cuts is still no page.
const TITLE: usize = 200;

/// List conversations, newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin list --here             conversations of this folder\n  rejoin list --state running    turns that run now\n  rejoin list --json -n 100      for a script; continue with --cursor"
)]
pub(crate) struct ListArgs {
    /// Only conversations of this folder
    #[arg(long)]
    here: bool,
    /// Only conversations in this state
    #[arg(long, value_parser = ["idle", "queued", "running", "waiting"])]
    state: Option<String>,
    /// Only if this agent answered the newest turn
    #[arg(long)]
    agent: Option<String>,
    /// List archived conversations
    #[arg(long)]
    archived: bool,
    /// Only conversations used since, e.g. 24h, 7d
    #[arg(long, value_name = "TIME", value_parser = parse_back)]
    since: Option<i64>,
    /// Only conversations whose title contains this
    #[arg(long, value_name = "TITLE")]
    title: Option<String>,
    /// Only the conversation with this key
    #[arg(short, long, value_name = "KEY")]
    key: Option<String>,
    /// With --json: add the number of conversations by state
    #[arg(long)]
    counts: bool,
    /// Maximum number of results
    #[arg(short, default_value_t = 20)]
    n: i64,
    /// Continue after a page: next_cursor of --json
    #[arg(long)]
    cursor: Option<String>,
}

impl Run for ListArgs {
    const NAME: &'static str = "list";
    const HELP: Help = Help::Look("conversations");
    const ALIASES: &'static [&'static str] = &["ls", "status"];

    fn task(self) -> Task {
        Task::hub(self, run)
    }
}

async fn run(hub: HubClient<'_>, args: &ListArgs) -> Result<u8> {
    let limit = args.n.clamp(1, 1000);
    let query = ListQuery {
        title: args.title.clone(),
        since: (args.since).map(|back| rejoin_hub::Clock.now().saturating_sub(back)),
        workdir: if args.here { hub.folder()? } else { None },
        agent: args.agent.clone(),
        state: args.state.clone(),
        archived: args.archived,
        cursor: args.cursor.clone(),
        limit,
        words: None,
        counts: args.counts,
    };
    let out = hub.out();
    let page = match &args.key {
        Some(key) => with_key(hub, key).await?,
        None => hub.list(&query).await?,
    };
    if out.json {
        out.json(&page);
        return Ok(0);
    }
    if page.conversations.is_empty() {
        out.note(&nothing(args));
        return Ok(0);
    }
    let now = HubClient::now();
    let mut rows = vec![];
    for conversation in &page.conversations {
        rows.push(row(hub, conversation, &now).await?);
    }
    let fit = out.screen().then(|| out.width());
    out.lines(&table(&rows, fit));
    if page.next_cursor.is_some() && out.screen() {
        out.note(&format!("more: rejoin list -n {}", limit * 5));
    }
    Ok(0)
}

/// The conversation with exactly this key, if there is one.
async fn with_key(hub: HubClient<'_>, key: &str) -> Result<ListView> {
    let found = match hub.named(key, NameKind::Conversation).await {
        Ok(named) => Some(named.conversation),
        Err(failure) if failure.exit == 3 => None,
        Err(failure) => return Err(failure),
    };
    let found = found.filter(|it| it.key.as_deref() == Some(key));
    Ok(ListView {
        conversations: found.into_iter().collect(),
        next_cursor: None,
        // Found by name, not by the list: a stream would begin with the first event.
        as_of: 0,
        counts: None,
    })
}

/// A conversation as cells: handle, age, agent, state, cost, title.
pub(super) async fn row(
    hub: HubClient<'_>,
    view: &ConversationView,
    now: &Now,
) -> Result<Vec<Line>> {
    let (state, tone) = state(view);
    Ok(vec![
        handle(hub, view).await?,
        Line::faint(&now.ago(&view.updated_at)),
        Line::plain(&view.agent),
        Line::new().with(tone, state),
        Line::faint(&money(view.cost_usd)),
        Line::plain(&one_line(&view.title, TITLE)),
    ])
}

/// The letters that are enough to type stand out.
pub(super) async fn handle(hub: HubClient<'_>, view: &ConversationView) -> Result<Line> {
    let shown = &view.handle;
    let enough = hub.letters(view.id).await?.unwrap_or(shown.len());
    let (enough, rest) = shown.split_at(enough.min(shown.len()));
    Ok(Line::new().with(Tone::Name, enough).with(Tone::Faint, rest))
}

/// The running or waiting state; else the end of the newest turn, if it did not succeed.
pub(super) fn state(view: &ConversationView) -> (&str, Tone) {
    let ended = view.last_turn.as_ref().map(|t| t.status.as_str());
    match (view.state.as_str(), ended) {
        ("idle", Some(bad @ ("failed" | "lost" | "cancelled"))) => (bad, Tone::Bad),
        ("idle", _) => ("idle", Tone::Faint),
        (busy, _) => (busy, Tone::Busy),
    }
}

fn nothing(args: &ListArgs) -> String {
    if args.archived {
        "nothing is put away; try: rejoin list".into()
    } else if args.state.is_some()
        || args.agent.is_some()
        || args.cursor.is_some()
        || args.since.is_some()
        || args.key.is_some()
        || args.title.is_some()
    {
        "no such conversation; try: rejoin list".into()
    } else if args.here {
        "no conversation in this folder yet; try: rejoin send \"hello\", or rejoin list".into()
    } else {
        "no conversation yet; try: rejoin send \"hello\", or rejoin demo".into()
    }
}
