//! `rejoin export`

mod document;
mod envelope;

use std::io::{BufWriter, IsTerminal, Write};
use std::path::PathBuf;

use clap::Args;
use rejoin_hub::Error as HubError;
use rejoin_store::{Conversation, Exported, Generation, SnapshotSelection};
use serde_json::json;

use super::change::handle;
use crate::app::App;
use crate::cli::command::{Help, Run, Task};
use crate::output::format::{count, size};
use crate::portable::AtomicFile;
use rejoin_errors::{CommandError, Result};

/// Export a conversation as one file that can be imported anywhere
///
/// The file contains messages, turns, sessions and snapshots; no events and no queued messages.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin export last >talk.rejoin\n  rejoin export tmqx -o talk.rejoin\n  rejoin export tmqx | ssh elsewhere rejoin import -"
)]
pub(crate) struct ExportArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV", default_value = "last")]
    conversation: String,
    /// Write to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Form of the file: an archive for import, or a document
    #[arg(long, value_name = "FORM", default_value = "archive", value_parser = ["archive", "markdown", "json"], conflicts_with = "envelope")]
    format: String,
    /// Leave secrets in a document
    #[arg(long)]
    keep_secrets: bool,
    /// Only its session, as {"sessionId","sessionBlob"}
    #[arg(long)]
    envelope: bool,
    /// The agent of that session
    #[arg(short, long, value_name = "AGENT", requires = "envelope")]
    agent: Option<String>,
}

impl Run for ExportArgs {
    const NAME: &'static str = "export";
    const HELP: Help = Help::Talk("a conversation to a file");

    fn task(self) -> Task {
        Task::store(self, run)
    }
}

async fn run(app: &App, args: &ExportArgs) -> Result<u8> {
    let found = app.hub().find(&args.conversation, &app.folders()).await?;
    let handle = handle(app, &found.conversation).await?;
    if args.envelope {
        return envelope::run(app, &found.conversation, &handle, args).await;
    }
    if args.format != "archive" {
        return document::run(app, &found.conversation, &handle, args).await;
    }
    let exported = match &args.output {
        Some(file) => to_file(app, &found.conversation, file).await?,
        None => to_stdout(app, &found.conversation, &handle).await?,
    };
    report(app, &found.conversation, &handle, &exported, args);
    Ok(0)
}

async fn to_file(app: &App, c: &Conversation, file: &std::path::Path) -> Result<Exported> {
    let failed = |e: std::io::Error| {
        let text = format!("{} cannot be written: {e}", file.display());
        CommandError::unavailable(text)
            .try_this("rejoin export CONV -o /a/folder/you/can/write/FILE")
    };
    let mut whole = AtomicFile::begin(file).map_err(failed)?;
    let exported = write(app, c, &mut whole).await?;
    whole.keep().map_err(failed)?;
    Ok(exported)
}

async fn to_stdout(app: &App, c: &Conversation, handle: &str) -> Result<Exported> {
    let next = format!("rejoin export {handle} -o {handle}.rejoin");
    let stdout = std::io::stdout();
    if stdout.is_terminal() {
        let text = "an archive is not for a terminal; nothing was written";
        return Err(CommandError::usage(text).try_this(next));
    }
    if app.out.json {
        let text = "with --json the archive needs a file of its own; nothing was written";
        return Err(CommandError::usage(text).try_this(format!("{next} --json")));
    }
    let mut out = BufWriter::with_capacity(256 * 1024, stdout.lock());
    let exported = write(app, c, &mut out).await?;
    let failed =
        |e: std::io::Error| CommandError::unavailable(format!("it cannot be written: {e}"));
    out.flush().map_err(failed)?;
    Ok(exported)
}

async fn write(app: &App, c: &Conversation, to: impl Write) -> Result<Exported> {
    let hub = app.hub();
    let exported = hub
        .export(c.id, Generation::default(), SnapshotSelection::All, to)
        .await;
    exported.map_err(|error| {
        if let HubError::Running(handle) = &error {
            let text = format!("{error}; nothing was exported");
            return CommandError::conflict(text).try_this(format!("rejoin wait {handle}"));
        }
        error.into()
    })
}

fn report(app: &App, c: &Conversation, handle: &str, exported: &Exported, args: &ExportArgs) {
    let totals = &exported.totals;
    if app.out.json {
        app.out.json(&json!({
            "conversation_id": c.id, "handle": handle,
            "file": args.output, "bytes": exported.length,
            "messages": totals.messages, "turns": totals.turns,
            "sessions": totals.sessions, "snapshots": totals.snapshots,
            "queued_left_out": exported.queued, "unreadable": exported.unreadable,
        }));
        return;
    }
    app.out.note(&format!(
        "{handle}: {}, {}, {}",
        count(totals.messages, "message"),
        count(totals.snapshots, "snapshot"),
        size(exported.length)
    ));
    if exported.queued > 0 {
        let queued = count(exported.queued, "queued message");
        app.out.note(&format!("{queued} left out: they run here"));
    }
    for why in &exported.unreadable {
        app.out.note(&format!("a snapshot is left out: {why}"));
    }
}
