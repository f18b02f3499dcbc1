//! `rejoin archive`

use clap::Args;
use rejoin_hub::Want;

use crate::at::At;
use crate::failure::Result;

/// Put a conversation away: it is not listed any more, and nothing else changes
///
/// A message to it takes it out again.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin archive tmqx\n  rejoin list --archived\n  rejoin archive tmqx --undo"
)]
pub(crate) struct ArchiveArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV")]
    conversation: String,
    /// Take it out again
    #[arg(long)]
    undo: bool,
}

pub(crate) async fn run(at: At<'_>, args: &ArchiveArgs) -> Result<u8> {
    let found = at.named(&args.conversation, Want::Conversation).await?;
    let id = found.conversation.id;
    at.archive(id, !args.undo).await?;
    let out = at.out();
    if out.json {
        let done = serde_json::json!({"conversation_id": id, "archived": !args.undo});
        out.json(&done);
    } else {
        let name = &found.conversation.handle;
        out.text(&if args.undo {
            format!("{name} is listed again")
        } else {
            format!("{name} is put away; rejoin list --archived shows it")
        });
    }
    Ok(0)
}
