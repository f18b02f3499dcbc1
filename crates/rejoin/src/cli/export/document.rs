//! `rejoin export --format markdown`, `rejoin export --format json`

use std::io::{self, BufWriter, Write};

use rejoin_hub::{Document, DocumentForm};
use rejoin_store::Conversation;
use serde_json::json;

use super::ExportArgs;
use crate::app::App;
use crate::output::format::count;
use crate::portable::AtomicFile;
use rejoin_errors::{CommandError, Result};

/// Writes the messages as a document, without keys and passwords of known forms.
pub(super) async fn run(
    app: &App,
    conversation: &Conversation,
    handle: &str,
    args: &ExportArgs,
) -> Result<u8> {
    if app.out.json && args.output.is_none() {
        let text = "with --json the document needs a file of its own; nothing was written";
        let next = format!("rejoin export {handle} --format markdown -o {handle}.md --json");
        return Err(CommandError::usage(text).try_this(next));
    }
    let form = if args.format == "json" {
        DocumentForm::Json
    } else {
        DocumentForm::Markdown
    };
    let failed = |e: io::Error| CommandError::unavailable(format!("it cannot be written: {e}"));
    let mut document = Document::new(app.hub(), conversation, form, !args.keep_secrets);
    match &args.output {
        Some(file) => {
            let mut whole = AtomicFile::begin(file).map_err(failed)?;
            write(&mut document, &mut whole).await?;
            whole.keep().map_err(failed)?;
        }
        None => {
            let mut out = BufWriter::new(io::stdout());
            write(&mut document, &mut out).await?;
            out.flush().map_err(failed)?;
        }
    }
    if app.out.json {
        app.out.json(&json!({
            "conversation_id": conversation.id, "handle": handle, "file": args.output,
            "messages": document.messages, "secrets_removed": document.removed,
        }));
    } else {
        let messages = count(document.messages, "message");
        let removed = count(document.removed as u64, "secret");
        let note = if args.keep_secrets {
            format!("{handle}: {messages}, with any secrets in them")
        } else {
            format!("{handle}: {messages}, {removed} removed")
        };
        app.out.note(&note);
    }
    Ok(0)
}

async fn write(document: &mut Document, to: &mut (dyn Write + Send)) -> Result<()> {
    let failed = |e: io::Error| CommandError::unavailable(format!("it cannot be written: {e}"));
    while let Some(piece) = document.next().await? {
        to.write_all(piece.as_bytes()).map_err(failed)?;
    }
    Ok(())
}
