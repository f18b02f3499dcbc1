//! `rejoin search`

use clap::Args;
use rejoin_core::Role;
use rejoin_hub::{HitView, SearchQuery};

use crate::cli::command::{Help, Run, Task};
use crate::hub_client::HubClient;
use crate::output::format::Now;
use crate::output::{Line, Tone, table};
use rejoin_errors::{CommandError, Result};

/// Search the messages, best match first
///
/// A message matches if it contains every word, or words that begin so. Quoted words are a phrase.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin search port 8080\n  rejoin search '\"connection refused\"' --here\n  rejoin search retry --agent codex --json"
)]
pub(crate) struct SearchArgs {
    /// Words
    #[arg(value_name = "TEXT", required = true)]
    text: Vec<String>,
    /// Only answers of this agent
    #[arg(long)]
    agent: Option<String>,
    /// Only in conversations of this folder
    #[arg(long)]
    here: bool,
    /// Maximum number of results
    #[arg(short, default_value_t = 20)]
    n: i64,
}

impl Run for SearchArgs {
    const NAME: &'static str = "search";
    const HELP: Help = Help::Look("find text");

    fn task(self) -> Task {
        Task::hub(self, run)
    }
}

async fn run(hub: HubClient<'_>, args: &SearchArgs) -> Result<u8> {
    let wish = SearchQuery {
        words: args.text.join(" "),
        agent: args.agent.clone(),
        workdir: if args.here { hub.folder()? } else { None },
        limit: args.n.clamp(1, 1000),
    };
    if !wish.words.chars().any(char::is_alphanumeric) {
        return Err(
            CommandError::usage("there is no word to look for").try_this("rejoin search WORD")
        );
    }
    let (out, found) = (hub.out(), hub.search(&wish).await?);
    if out.json {
        out.json(&found);
        return Ok(0);
    }
    if found.messages.is_empty() {
        out.note("no message says that; try: rejoin list");
        return Ok(0);
    }
    let now = HubClient::now();
    let rows: Vec<_> = found.messages.iter().map(|hit| row(hit, &now)).collect();
    let fit = out.screen().then(|| out.width());
    out.lines(&table(&rows, fit));
    Ok(0)
}

fn row(hit: &HitView, now: &Now) -> Vec<Line> {
    let who = match hit.role {
        Role::User => "you",
        Role::Assistant => hit.agent.as_deref().unwrap_or("assistant"),
    };
    let marked = |at: usize| {
        hit.marks
            .iter()
            .any(|(from, to)| (*from..*to).contains(&at))
    };
    let (mut words, mut part, mut strong) = (Line::new(), String::new(), false);
    let tone = |strong| if strong { Tone::Strong } else { Tone::Plain };
    for (hub, c) in hit.snippet.chars().enumerate() {
        if marked(hub) != strong {
            words.push(tone(strong), &std::mem::take(&mut part));
            strong = !strong;
        }
        part.push(if c == '\n' { ' ' } else { c });
    }
    words.push(tone(strong), &part);
    let handle = hit.handle.trim_end_matches(|c: char| c.is_ascii_digit());
    vec![
        Line::faint(handle).with(Tone::Name, &hit.seq.to_string()),
        Line::faint(&now.ago(&hit.created_at)),
        Line::plain(who),
        words,
    ]
}
