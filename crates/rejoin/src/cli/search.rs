//! `rejoin search`

use clap::Args;
use rejoin_core::Role;
use rejoin_hub::rfc3339;
use rejoin_store::{HIT_BEGINS, HIT_ENDS, Hit, Search};
use serde_json::{Value, json};

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::figures::Now;
use crate::output::{Line, Tone, table};

/// Find messages by their words, best first
///
/// Every word must be in the message, each as the beginning of one; words in quotes are a phrase.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin search port 8080\n  rejoin search '\"connection refused\"' --here\n  rejoin search retry --agent codex --json"
)]
pub(crate) struct SearchArgs {
    /// Words
    #[arg(value_name = "TEXT", required = true)]
    text: Vec<String>,
    /// Only what this agent answered
    #[arg(long)]
    agent: Option<String>,
    /// Only in conversations of this folder
    #[arg(long)]
    here: bool,
    /// How many
    #[arg(short, default_value_t = 20)]
    n: i64,
}

pub(crate) async fn run(app: &App, args: &SearchArgs) -> Result<u8> {
    let search = Search {
        text: args.text.join(" "),
        agent: args.agent.clone(),
        workdir: args
            .here
            .then(|| app.folders().into_iter().next())
            .flatten(),
        limit: args.n.clamp(1, 1000),
    };
    if !search.text.chars().any(char::is_alphanumeric) {
        return Err(Failure::usage("there is no word to look for").try_this("rejoin search WORD"));
    }
    let hits = app.hub().store.read().await?.search(&search).await?;
    let mut found = vec![];
    for hit in hits {
        let mut read = app.hub().store.read().await?;
        if let Some(c) = read.conversation(hit.conversation).await? {
            let handle = read.short_handle(&c.handle).await?;
            found.push((hit, handle, c.title));
        }
    }
    if app.out.json {
        let all: Vec<Value> = found.iter().map(|(h, n, t)| document(h, n, t)).collect();
        app.out.json(&json!({"messages": all}));
        return Ok(0);
    }
    if found.is_empty() {
        app.out.note("no message says that; try: rejoin list");
        return Ok(0);
    }
    let now = Now::at(app.hub().clock.now());
    let rows: Vec<_> = found
        .iter()
        .map(|(h, name, _)| row(h, name, &now))
        .collect();
    let fit = app.out.screen().then(|| app.out.width());
    app.out.lines(&table(&rows, fit));
    Ok(0)
}

fn row(hit: &Hit, handle: &str, now: &Now) -> Vec<Line> {
    let who = match hit.role {
        Role::User => "you",
        Role::Assistant => hit.agent.as_deref().unwrap_or("assistant"),
    };
    let mut words = Line::new();
    for (at, part) in hit.snippet.split([HIT_BEGINS, HIT_ENDS]).enumerate() {
        let tone = if at % 2 == 1 {
            Tone::Strong
        } else {
            Tone::Plain
        };
        words.push(tone, &part.replace('\n', " "));
    }
    vec![
        Line::faint(&format!("{handle}:")).with(Tone::Name, &hit.seq.to_string()),
        Line::faint(&now.ago(&rfc3339(hit.created_at))),
        Line::plain(who),
        words,
    ]
}

fn document(hit: &Hit, handle: &str, title: &str) -> Value {
    json!({
        "conversation_id": hit.conversation, "message_id": hit.message,
        "handle": format!("{handle}:{}", hit.seq), "title": title, "seq": hit.seq,
        "role": hit.role, "agent": hit.agent, "created_at": rfc3339(hit.created_at),
        "snippet": hit.snippet.replace([HIT_BEGINS, HIT_ENDS], ""),
    })
}
