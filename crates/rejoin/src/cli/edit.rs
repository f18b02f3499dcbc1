//! `rejoin edit`

use clap::Args;
use rejoin_hub::PageRequest;

use super::change::{Target, doing, message, report};
use super::send::prompt;
use super::text_editor::{self, Written};
use crate::cli::command::{Help, Run, Task};
use crate::hub_client::HubClient;
use rejoin_errors::{CommandError, Result};

/// Change the text of a message, yours or an answer
///
/// The earlier text stays visible with rejoin show --all. Sessions that have seen the message are not
/// resumed.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin edit tmqx:3 \"use port 8080\"\n  rejoin edit tmqx:3 --dry-run \"use port 8080\"    shows the affected sessions\n  rejoin undo tmqx                             restores the old text"
)]
pub(crate) struct EditArgs {
    /// Message: tmqx:4, or its id
    #[arg(value_name = "MESSAGE")]
    message: String,
    /// The new text; `-` or none: stdin, or your $EDITOR
    #[arg(value_name = "TEXT")]
    text: Option<String>,
    /// Show the effect, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Run for EditArgs {
    const NAME: &'static str = "edit";
    const HELP: Help = Help::Change("change a message");

    fn task(self) -> Task {
        Task::hub(self, run)
    }
}

async fn run(hub: HubClient<'_>, args: &EditArgs) -> Result<u8> {
    let target = message(hub, &args.message, "edit").await?;
    let id = target.message.id;
    let written = match args.text {
        None => in_editor(hub, &target).await?,
        Some(_) => None,
    };
    let edited = match &written {
        Some((written, before)) => {
            if written.text.trim().is_empty() || written.text == before.trim_end_matches('\n') {
                written.done();
                let text = format!(
                    "{} is unchanged: the editor left no other text",
                    target.name
                );
                hub.out().note(&text);
                return Ok(0);
            }
            hub.edit(id, &written.text, doing(args.dry_run)).await
        }
        None => {
            let text = prompt(args.text.as_deref())
                .map_err(|e| e.try_this(format!("rejoin edit {} \"other words\"", target.name)))?;
            hub.edit(id, &text, doing(args.dry_run)).await
        }
    };
    let changed = match (edited, &written) {
        (Err(failure), Some((written, _))) => return Err(written.kept(failure)),
        (edited, _) => edited?,
    };
    let sentence = format!("{} edited{}", target.name, target.undo(args.dry_run));
    report(hub.out(), &changed, &sentence);
    match &written {
        Some((written, _)) if args.dry_run => hub.out().note(&written.place()),
        Some((written, _)) => written.done(),
        None => {}
    }
    Ok(0)
}

/// Opens the text of a message in the user's editor. Returns the new and the old text; none: there is no editor.
async fn in_editor(hub: HubClient<'_>, target: &Target) -> Result<Option<(Written, String)>> {
    if !text_editor::possible() {
        return Ok(None);
    }
    let page = PageRequest {
        around: Some(target.message.seq),
        limit: Some(1),
        ..PageRequest::default()
    };
    let page = hub.page(target.conversation, &page).await?;
    let found = page
        .messages
        .into_iter()
        .find(|m| m.id == target.message.id);
    let Some(before) = found.map(|m| m.text) else {
        let text = format!(
            "{} is not in the history, its text must be given",
            target.name
        );
        return Err(CommandError::usage(text));
    };
    Ok(text_editor::write(&before)?.map(|written| (written, before)))
}
