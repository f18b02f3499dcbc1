//! `rejoin inbox`

use clap::Args;
use rejoin_hub::InboxView;

use super::question::{hint, lines};
use crate::cli::command::{Help, Run, Task};
use crate::hub_client::HubClient;
use crate::output::format::{Now, folder};
use crate::output::{Line, Output, Tone, edges, one_line};
use rejoin_errors::Result;

/// List questions that wait for a person
#[derive(Debug, Args)]
pub(crate) struct InboxArgs {}

impl Run for InboxArgs {
    const NAME: &'static str = "inbox";
    const HELP: Help = Help::Talk("open questions");

    fn task(self) -> Task {
        Task::hub(self, run)
    }
}

async fn run(hub: HubClient<'_>, _args: &InboxArgs) -> Result<u8> {
    let (out, inbox) = (hub.out(), hub.inbox().await?);
    if out.json {
        out.json(&inbox);
        return Ok(0);
    }
    if inbox.turns.is_empty() {
        out.text("nothing waits for you");
        return Ok(0);
    }
    let now = HubClient::now();
    let mut shown = vec![];
    for waiting in &inbox.turns {
        if !shown.is_empty() {
            shown.push(Line::new());
        }
        shown.extend(entry(out, waiting, &now));
    }
    out.lines(&shown);
    Ok(0)
}

fn entry(out: Output, waiting: &InboxView, now: &Now) -> Vec<Line> {
    let width = out.width();
    let when = Line::faint(&now.moment(&waiting.asked_at));
    let room = width.saturating_sub(waiting.handle.len() + when.width() + 4);
    let head = Line::new()
        .with(Tone::Name, &waiting.handle)
        .with(Tone::Plain, "  ")
        .with(Tone::Strong, &one_line(&waiting.title, room.max(10)));
    let mut shown = vec![edges(&head, &when, width).unwrap_or(head)];
    let facts = format!("  {} · {}", waiting.agent, folder(&waiting.workdir));
    shown.push(Line::faint(&facts));
    for question in &waiting.questions {
        shown.extend(lines(&waiting.agent, question, width, usize::MAX));
        let typed = hint(question, &waiting.handle);
        shown.push(Line::faint(&format!("  {typed}")));
    }
    shown
}
