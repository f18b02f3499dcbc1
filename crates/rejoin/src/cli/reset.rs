//! `rejoin reset`

use clap::Args;
use rejoin_hub::NameKind;

use super::change::doing;
use crate::cli::command::{Help, Run, Task};
use crate::hub_client::HubClient;
use crate::output::format::count;
use rejoin_errors::Result;

/// Retire the sessions of a conversation and keep its messages
///
/// The next turn starts a new session with the transcript.
#[derive(Debug, Args)]
pub(crate) struct ResetArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV", default_value = "last")]
    conversation: String,
    /// Show the effect, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Run for ResetArgs {
    const NAME: &'static str = "reset";
    const HELP: Help = Help::Change("new sessions");

    fn task(self) -> Task {
        Task::hub(self, run)
    }
}

async fn run(hub: HubClient<'_>, args: &ResetArgs) -> Result<u8> {
    let found = hub
        .named(&args.conversation, NameKind::Conversation)
        .await?;
    let id = found.conversation.id;
    let (retired, changed) = hub.reset(id, doing(args.dry_run)).await?;
    let out = hub.out();
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
