//! `rejoin` without a command: what goes on, what was last here, and what to type.

use rejoin_hub::{ConversationView, ListQuery, NameKind};

use super::list::row;
use crate::hub_client::HubClient;
use crate::output::{Line, Tone, table};
use rejoin_errors::Result;

/// Most running or waiting conversations shown.
const BUSY: i64 = 5;
/// Most recent conversations of this folder shown.
const RECENT: i64 = 5;

/// Arguments of `rejoin` without a command.
pub(super) struct HomeArgs;

pub(super) async fn run(hub: HubClient<'_>, _args: &HomeArgs) -> Result<u8> {
    let mut busy = vec![];
    for state in ["running", "waiting", "queued"] {
        busy.extend(some(hub, Some(state), None, BUSY).await?);
    }
    let folder = hub.folder().unwrap_or_default();
    let mut recent = some(hub, None, folder, RECENT).await?;
    recent.retain(|c| busy.iter().all(|b| b.id != c.id));
    let mut lines = vec![];
    section(hub, "Going on", &busy, &mut lines).await?;
    section(hub, "Last in this folder", &recent, &mut lines).await?;
    let last = match hub.named("last", NameKind::Conversation).await {
        Ok(last) => Some(last.conversation),
        Err(failure) if failure.exit == 3 => None,
        Err(failure) => return Err(failure),
    };
    let mut commands = match &last {
        None if lines.is_empty() => {
            lines.push(Line::plain(
                "rejoin keeps a conversation with a coding agent going.",
            ));
            lines.push(Line::new());
            typed(&[
                ("rejoin demo", "see what it does: ten seconds, no key"),
                (
                    "rejoin send \"hello\"",
                    "start a conversation in this folder",
                ),
                ("rejoin --help", "everything else"),
            ])
        }
        None => typed(&[
            ("rejoin send \"…\"", "start a conversation in this folder"),
            ("rejoin list", "all conversations"),
            ("rejoin --help", "everything else"),
        ]),
        Some(last) => {
            let handle = &last.handle;
            typed(&[
                ("rejoin reply \"…\"", &format!("go on with {handle}")),
                (&format!("rejoin show {handle}"), "read it"),
                ("rejoin send \"…\"", "start another one"),
            ])
        }
    };
    if let Some(first) = busy.first() {
        let handle = &first.handle;
        let watch = typed(&[(&format!("rejoin watch {handle}"), "follow it")]);
        commands.splice(..0, watch);
        commands.truncate(3);
    }
    lines.extend(table(&commands, Some(hub.out().width())));
    hub.out().lines(&lines);
    Ok(0)
}

fn typed(commands: &[(&str, &str)]) -> Vec<Vec<Line>> {
    let row = |(command, why): &(&str, &str)| {
        let command = Line::plain("  ").with(Tone::Strong, command);
        vec![command, Line::faint(why)]
    };
    commands.iter().map(row).collect()
}

async fn some(
    hub: HubClient<'_>,
    state: Option<&str>,
    workdir: Option<String>,
    limit: i64,
) -> Result<Vec<ConversationView>> {
    let wish = ListQuery {
        state: state.map(str::to_owned),
        workdir,
        limit,
        ..ListQuery::default()
    };
    Ok(hub.list(&wish).await?.conversations)
}

async fn section(
    hub: HubClient<'_>,
    title: &str,
    conversations: &[ConversationView],
    lines: &mut Vec<Line>,
) -> Result<()> {
    if conversations.is_empty() {
        return Ok(());
    }
    let now = HubClient::now();
    let mut rows = vec![];
    for conversation in conversations {
        rows.push(row(hub, conversation, &now).await?);
    }
    lines.push(Line::new().with(Tone::Strong, title));
    let indented = |line| Line::plain("  ").then(line);
    lines.extend(
        table(&rows, Some(hub.out().width().saturating_sub(2)))
            .into_iter()
            .map(indented),
    );
    lines.push(Line::new());
    Ok(())
}
