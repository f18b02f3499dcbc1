//! `rejoin merge`

use clap::Args;
use rejoin_hub::Want;

use super::change::{doing, effect};
use crate::at::At;
use crate::failure::{Failure, Result};
use crate::output::figures::count;

/// Put two conversations into one
///
/// The older block comes first. Whoever asks for the first one afterwards gets the second.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin merge kxyz tmqx             all of kxyz is in tmqx\n  rejoin merge kxyz tmqx --dry-run   whom it would affect"
)]
pub(crate) struct MergeArgs {
    /// The conversation that goes: handle, id or key
    #[arg(value_name = "FROM")]
    from: String,
    /// The one that it becomes part of
    #[arg(value_name = "INTO")]
    into: String,
    /// Say what it would affect, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(at: At<'_>, args: &MergeArgs) -> Result<u8> {
    let from = at.named(&args.from, Want::Conversation).await?.conversation;
    let into = at.named(&args.into, Want::Conversation).await?.conversation;
    if from.id == into.id {
        let text = "a conversation cannot be merged into itself";
        return Err(Failure::usage(text).try_this("rejoin list, to see others"));
    }
    let (old, new) = (&from.handle, &into.handle);
    let merged = at.merge(from.id, into.id, doing(args.dry_run)).await?;
    let out = at.out();
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
    lines.extend(merged.affected.iter().map(effect));
    out.text(&lines.join("\n"));
    Ok(0)
}
