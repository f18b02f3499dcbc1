//! `rejoin edit`

use clap::Args;

use super::change::{doing, message, report};
use super::send::prompt;
use crate::at::At;
use crate::failure::Result;

/// Put other words into a message, yours or an answer
///
/// What it said before is kept: rejoin show --all. Sessions that have seen it are not resumed.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin edit tmqx:3 \"use port 8080\"\n  rejoin edit tmqx:3 --dry-run \"use port 8080\"    which sessions it would affect\n  rejoin undo tmqx                             take it back"
)]
pub(crate) struct EditArgs {
    /// Message: tmqx:4, or its id
    #[arg(value_name = "MESSAGE")]
    message: String,
    /// What it is to say; `-` or nothing: stdin
    #[arg(value_name = "TEXT")]
    text: Option<String>,
    /// Say what it would affect, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(at: At<'_>, args: &EditArgs) -> Result<u8> {
    let target = message(at, &args.message, "edit").await?;
    let text = prompt(args.text.as_deref())
        .map_err(|e| e.try_this(format!("rejoin edit {} \"other words\"", target.name)))?;
    let id = target.message.id;
    let changed = at.edit(id, &text, doing(args.dry_run)).await?;
    report(at.out(), &changed, &format!("{} edited", target.name));
    Ok(0)
}
