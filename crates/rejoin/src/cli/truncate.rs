//! `rejoin truncate`

use clap::Args;

use super::change::{doing, message, removed, report};
use crate::at::At;
use crate::failure::Result;

/// Remove a message and all after it
///
/// Nothing is destroyed: rejoin undo brings them back, rejoin show --all shows them.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin truncate tmqx:5               messages 5, 6, … are removed\n  rejoin truncate tmqx:5 --dry-run     which, and whom it would affect"
)]
pub(crate) struct TruncateArgs {
    /// Message: tmqx:4, or its id
    #[arg(value_name = "MESSAGE")]
    message: String,
    /// Say what it would affect, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(at: At<'_>, args: &TruncateArgs) -> Result<u8> {
    let target = message(at, &args.message, "truncate").await?;
    let id = target.message.id;
    let changed = at.truncate(id, doing(args.dry_run)).await?;
    let sentence = format!("{}, from {} on", removed(&changed), target.name);
    report(at.out(), &changed, &sentence);
    Ok(0)
}
