//! `rejoin reset`

use clap::Args;
use rejoin_hub::Want;

use super::change::doing;
use crate::at::At;
use crate::failure::Result;
use crate::output::figures::count;

/// Retire the sessions of a conversation and keep its messages
///
/// The next turn tells a new session what was said.
#[derive(Debug, Args)]
pub(crate) struct ResetArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV", default_value = "last")]
    conversation: String,
    /// Say what it would affect, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(at: At<'_>, args: &ResetArgs) -> Result<u8> {
    let found = at.named(&args.conversation, Want::Conversation).await?;
    let id = found.conversation.id;
    let (retired, changed) = at.reset(id, doing(args.dry_run)).await?;
    let out = at.out();
    if out.json {
        out.json(&serde_json::json!({
            "conversation_id": id, "retired": retired, "dry_run": changed.dry_run,
        }));
    } else {
        let sessions = count(retired, "session");
        out.text(&if args.dry_run {
            format!("{sessions} would be retired")
        } else {
            format!("{sessions} retired; the next turn is told what was said")
        });
    }
    Ok(0)
}
