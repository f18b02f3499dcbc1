//! `rejoin seen`

use clap::Args;
use rejoin_hub::NameKind;
use serde_json::json;

use crate::cli::command::{Help, Run, Task};
use crate::hub_client::HubClient;
use rejoin_errors::{CommandError, Result};

/// Mark the answers of a conversation as seen
///
/// `rejoin list --json` and the dashboard show whether a conversation has an unseen answer.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin seen tmqx        all of it\n  rejoin seen tmqx:4      up to message 4\n  rejoin seen tmqx --undo   nothing of it"
)]
pub(crate) struct SeenArgs {
    /// Conversation, or its last seen message
    #[arg(value_name = "CONV")]
    conversation: String,
    /// Mark everything as unseen
    #[arg(long)]
    undo: bool,
}

impl Run for SeenArgs {
    const NAME: &'static str = "seen";
    const HELP: Help = Help::Change("mark as read");

    fn task(self) -> Task {
        Task::hub(self, run)
    }
}

async fn run(hub: HubClient<'_>, args: &SeenArgs) -> Result<u8> {
    let (name, seq) = match args.conversation.rsplit_once(':') {
        Some((name, number)) if number.chars().all(|c| c.is_ascii_digit()) => {
            let seq = number.parse::<i64>();
            (
                name,
                Some(seq.map_err(|e| CommandError::usage(e.to_string()))?),
            )
        }
        Some(_) | None => (args.conversation.as_str(), None),
    };
    let found = hub.named(name, NameKind::Conversation).await?.conversation;
    let seq = match (args.undo, seq) {
        (true, _) => 0,
        (false, Some(seq)) => seq,
        (false, None) => found.messages,
    };
    let view = hub.mark_seen(found.id, seq).await?;
    let out = hub.out();
    if out.json {
        out.json(&json!({"conversation_id": view.id, "seen": view.seen, "unread": view.unread}));
    } else {
        out.text(&format!(
            "{}: seen up to message {} of {}",
            view.handle, view.seen, view.messages
        ));
    }
    Ok(0)
}
