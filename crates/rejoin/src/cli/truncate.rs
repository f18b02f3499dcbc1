//! `rejoin truncate`

use clap::Args;

use super::change::{doing, message, removed, report};
use crate::cli::command::{Help, Run, Task};
use crate::hub_client::HubClient;
use rejoin_errors::Result;

/// Remove a message and all later ones
///
/// Removed messages stay visible with rejoin show --all; rejoin undo restores them.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin truncate tmqx:5               messages 5, 6, … are removed\n  rejoin truncate tmqx:5 --dry-run     shows the effect"
)]
pub(crate) struct TruncateArgs {
    /// Message: tmqx:4, or its id
    #[arg(value_name = "MESSAGE")]
    message: String,
    /// Show the effect, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Run for TruncateArgs {
    const NAME: &'static str = "truncate";
    const HELP: Help = Help::Change("remove the end");

    fn task(self) -> Task {
        Task::hub(self, run)
    }
}

async fn run(hub: HubClient<'_>, args: &TruncateArgs) -> Result<u8> {
    let target = message(hub, &args.message, "truncate").await?;
    let id = target.message.id;
    let changed = hub.truncate(id, doing(args.dry_run)).await?;
    let sentence = format!("{}, from {} on", removed(&changed), target.name);
    report(
        hub.out(),
        &changed,
        &(sentence + &target.undo(args.dry_run)),
    );
    Ok(0)
}
