//! `rejoin` without a command: what goes on, what was last here, and what to type.

use rejoin_store::{Conversation, ListFilter};

use super::list::row;
use crate::app::App;
use crate::failure::Result;
use crate::output::figures::Now;
use crate::output::{Line, Tone, table};

/// What goes on anywhere, at most.
const BUSY: i64 = 5;
/// What was last in this folder, at most.
const RECENT: i64 = 5;

pub(crate) async fn run(app: &App) -> Result<u8> {
    let mut busy = vec![];
    for state in ["running", "waiting", "queued"] {
        busy.extend(some(app, Some(state), None, BUSY).await?);
    }
    let folder = app.folders().into_iter().next();
    let mut recent = some(app, None, folder.clone(), RECENT).await?;
    recent.retain(|c| busy.iter().all(|b| b.id != c.id));
    let mut lines = vec![];
    section(app, "Going on", &busy, &mut lines).await?;
    section(app, "Last in this folder", &recent, &mut lines).await?;
    let last = match folder {
        Some(folder) => {
            app.hub()
                .store
                .read()
                .await?
                .last_conversation_in(&folder)
                .await?
        }
        None => None,
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
            let handle = handle(app, last).await?;
            typed(&[
                ("rejoin reply \"…\"", &format!("go on with {handle}")),
                (&format!("rejoin show {handle}"), "read it"),
                ("rejoin send \"…\"", "start another one"),
            ])
        }
    };
    if let Some(first) = busy.first() {
        let handle = handle(app, first).await?;
        let watch = typed(&[(&format!("rejoin watch {handle}"), "follow it")]);
        commands.splice(..0, watch);
        commands.truncate(3);
    }
    lines.extend(table(&commands, Some(app.out.width())));
    app.out.lines(&lines);
    Ok(0)
}

fn typed(commands: &[(&str, &str)]) -> Vec<Vec<Line>> {
    let row = |(command, why): &(&str, &str)| {
        let command = Line::plain("  ").with(Tone::Strong, command);
        vec![command, Line::faint(why)]
    };
    commands.iter().map(row).collect()
}

async fn handle(app: &App, conversation: &Conversation) -> Result<String> {
    let mut read = app.hub().store.read().await?;
    Ok(read.short_handle(&conversation.handle).await?)
}

async fn some(
    app: &App,
    state: Option<&str>,
    workdir: Option<String>,
    limit: i64,
) -> Result<Vec<Conversation>> {
    let filter = ListFilter {
        state: state.map(str::to_owned),
        workdir,
        limit,
        ..ListFilter::default()
    };
    Ok(app
        .hub()
        .store
        .read()
        .await?
        .list_conversations(&filter)
        .await?)
}

async fn section(
    app: &App,
    title: &str,
    conversations: &[Conversation],
    lines: &mut Vec<Line>,
) -> Result<()> {
    if conversations.is_empty() {
        return Ok(());
    }
    let now = Now::at(app.hub().clock.now());
    let mut rows = vec![];
    for conversation in conversations {
        rows.push(row(app, conversation, &now).await?);
    }
    lines.push(Line::new().with(Tone::Strong, title));
    let indented = |line| Line::plain("  ").then(line);
    lines.extend(
        table(&rows, Some(app.out.width().saturating_sub(2)))
            .into_iter()
            .map(indented),
    );
    lines.push(Line::new());
    Ok(())
}
