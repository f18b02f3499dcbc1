//! `rejoin merge`

use clap::Args;
use rejoin_hub::NameKind;

use super::change::{doing, effects};
use crate::cli::command::{Help, Run, Task};
use crate::hub_client::HubClient;
use crate::output::format::count;
use rejoin_errors::{CommandError, Result};

/// Merge two conversations into one
///
/// The messages of the older conversation come first. Names of FROM lead to INTO afterwards.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin merge kxyz tmqx             moves all of kxyz into tmqx\n  rejoin merge kxyz tmqx --dry-run   shows the effect"
)]
pub(crate) struct MergeArgs {
    /// The conversation to merge: handle, id or key
    #[arg(value_name = "FROM")]
    from: String,
    /// The conversation that receives its messages
    #[arg(value_name = "INTO")]
    into: String,
    /// Show the effect, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Run for MergeArgs {
    const NAME: &'static str = "merge";
    const HELP: Help = Help::Change("combine two");

    fn task(self) -> Task {
        Task::hub(self, run)
    }
}

async fn run(hub: HubClient<'_>, args: &MergeArgs) -> Result<u8> {
    let from = hub
        .named(&args.from, NameKind::Conversation)
        .await?
        .conversation;
    let into = hub
        .named(&args.into, NameKind::Conversation)
        .await?
        .conversation;
    if from.id == into.id {
        let text = "a conversation cannot be merged into itself";
        return Err(CommandError::usage(text).try_this("rejoin list, to see others"));
    }
    let (old, new) = (&from.handle, &into.handle);
    let merged = hub.merge(from.id, into.id, doing(args.dry_run)).await?;
    let out = hub.out();
    if out.json {
        out.json(&merged);
        return Ok(0);
    }
    let messages = count(merged.moved, "message");
    let mut lines = vec![if merged.dry_run {
        format!("would be done: {messages} of {old} moved to {new}")
    } else {
        format!("{messages} of {old} moved to {new}; {old} leads there")
    }];
    lines.extend(effects(&merged.affected));
    out.prose(&lines.join("\n"));
    Ok(0)
}
