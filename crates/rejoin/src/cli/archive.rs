//! `rejoin archive`

use clap::Args;
use rejoin_hub::NameKind;

use crate::cli::command::{Help, Run, Task};
use crate::hub_client::HubClient;
use rejoin_errors::Result;

/// Archive a conversation: hide it from the list
///
/// A new message brings it back.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin archive tmqx\n  rejoin list --archived\n  rejoin archive tmqx --undo"
)]
pub(crate) struct ArchiveArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV")]
    conversation: String,
    /// Bring it back
    #[arg(long)]
    undo: bool,
}

impl Run for ArchiveArgs {
    const NAME: &'static str = "archive";
    const HELP: Help = Help::Change("hide");

    fn task(self) -> Task {
        Task::hub(self, run)
    }
}

async fn run(hub: HubClient<'_>, args: &ArchiveArgs) -> Result<u8> {
    let found = hub
        .named(&args.conversation, NameKind::Conversation)
        .await?;
    let id = found.conversation.id;
    hub.archive(id, !args.undo).await?;
    let out = hub.out();
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
