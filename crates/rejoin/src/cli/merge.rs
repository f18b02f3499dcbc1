//! `rejoin merge`

use clap::Args;

use super::change::{doing, effect, handle};
use crate::app::App;
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

pub(crate) async fn run(app: &App, args: &MergeArgs) -> Result<u8> {
    let from = app.hub().find(&args.from, &app.folders()).await?;
    let into = app.hub().find(&args.into, &app.folders()).await?;
    if from.conversation.id == into.conversation.id {
        let text = "a conversation cannot be merged into itself";
        return Err(Failure::usage(text).try_this("rejoin list, to see others"));
    }
    let (old, new) = (
        handle(app, &from.conversation).await?,
        handle(app, &into.conversation).await?,
    );
    let merged = app
        .hub()
        .merge(
            from.conversation.id,
            into.conversation.id,
            doing(args.dry_run),
        )
        .await?;
    if app.out.json {
        app.out.json(&merged);
        return Ok(0);
    }
    let messages = count(merged.moved, "message");
    let mut lines = vec![if merged.dry_run {
        format!("would be done: {messages} of {old} moved to {new}")
    } else {
        format!("{messages} of {old} moved to {new}; {old} leads there")
    }];
    lines.extend(merged.affected.iter().map(effect));
    app.out.text(&lines.join("\n"));
    Ok(0)
}
