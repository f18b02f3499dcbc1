//! `rejoin truncate`

use clap::Args;

use super::change::{doing, message, removed, report};
use crate::app::App;
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

pub(crate) async fn run(app: &App, args: &TruncateArgs) -> Result<u8> {
    let target = message(app, &args.message, "truncate").await?;
    let id = target.message.message.id;
    let changed = app.hub().truncate(id, doing(args.dry_run)).await?;
    let sentence = format!("{}, from {} on", removed(&changed), target.name);
    report(app, &changed, &sentence);
    Ok(0)
}
