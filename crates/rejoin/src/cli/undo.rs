//! `rejoin undo`

use clap::Args;
use rejoin_hub::{Changed, NameKind};

use super::change::{doing, removed, report};
use crate::cli::command::{Help, Run, Task};
use crate::hub_client::HubClient;
use crate::output::format::count;
use rejoin_errors::Result;

/// Undo the last change of a conversation's history
///
/// Repeat to undo earlier changes. Undoing a truncation or a retry removes messages sent since; rejoin
/// show --all still shows them.
#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV", default_value = "last")]
    conversation: String,
    /// Show the effect, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Run for UndoArgs {
    const NAME: &'static str = "undo";
    const HELP: Help = Help::Change("undo a change");

    fn task(self) -> Task {
        Task::hub(self, run)
    }
}

async fn run(hub: HubClient<'_>, args: &UndoArgs) -> Result<u8> {
    let found = hub
        .named(&args.conversation, NameKind::Conversation)
        .await?;
    let found = found.conversation;
    let changed = hub.undo(found.id, doing(args.dry_run)).await?;
    report(hub.out(), &changed, &sentence(&found.handle, &changed));
    Ok(0)
}

fn sentence(name: &str, changed: &Changed) -> String {
    let mut parts = vec![format!("{name}: {} taken back", changed.change)];
    if !changed.restored.is_empty() {
        let n = changed.restored.len() as u64;
        parts.push(format!("{} restored", count(n, "message")));
    }
    if !changed.removed.is_empty() {
        parts.push(format!("{} that had been said since", removed(changed)));
    }
    parts.join(", ")
}
