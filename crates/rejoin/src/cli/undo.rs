//! `rejoin undo`

use clap::Args;
use rejoin_hub::{Changed, Want};

use super::change::{doing, removed, report};
use crate::at::At;
use crate::failure::Result;
use crate::output::figures::count;

/// Take back the last change of a conversation's history
///
/// Again: the one before it. Messages said since a truncation or a retry give way to what they had
/// replaced; rejoin show --all still shows them.
#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV", default_value = "last")]
    conversation: String,
    /// Say what it would affect, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(at: At<'_>, args: &UndoArgs) -> Result<u8> {
    let found = at.named(&args.conversation, Want::Conversation).await?;
    let found = found.conversation;
    let changed = at.undo(found.id, doing(args.dry_run)).await?;
    report(at.out(), &changed, &sentence(&found.handle, &changed));
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
