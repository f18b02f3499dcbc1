//! `rejoin rename`

use clap::Args;
use rejoin_hub::{ChangeMode, NameKind, Setting};

use crate::cli::command::{Help, Run, Task};
use crate::hub_client::HubClient;
use rejoin_errors::{CommandError, Result};

/// Change the title of a conversation
#[derive(Debug, Args)]
pub(crate) struct RenameArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV")]
    conversation: String,
    /// The new title
    #[arg(value_name = "TITLE")]
    title: String,
}

impl Run for RenameArgs {
    const NAME: &'static str = "rename";
    const HELP: Help = Help::Change("change the title");

    fn task(self) -> Task {
        Task::hub(self, run)
    }
}

async fn run(hub: HubClient<'_>, args: &RenameArgs) -> Result<u8> {
    let title = one_line(&args.title)?;
    let found = hub
        .named(&args.conversation, NameKind::Conversation)
        .await?;
    let id = found.conversation.id;
    let wish = [Setting::Title(title.clone())];
    hub.set(id, &wish, ChangeMode::Now).await?;
    let out = hub.out();
    if out.json {
        let done = serde_json::json!({"conversation_id": id, "title": title});
        out.json(&done);
    } else {
        let name = &found.conversation.handle;
        out.text(&format!("{name} is now called: {title}"));
    }
    Ok(0)
}

/// A title is one line.
pub(super) fn one_line(text: &str) -> Result<String> {
    let title = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if title.is_empty() || title.chars().any(char::is_control) || title.len() > 1000 {
        return Err(CommandError::usage("a title has 1 to 1000 characters")
            .try_this("rejoin rename CONV \"a title\""));
    }
    Ok(title)
}
