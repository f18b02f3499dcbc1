//! `rejoin delete`

use std::io::{BufRead, IsTerminal};

use clap::Args;
use rejoin_hub::NameKind;

use crate::cli::command::{Help, Run, Task};
use crate::hub_client::HubClient;
use crate::output::format::count;
use crate::output::{Output, one_line};
use rejoin_errors::{CommandError, Result};

/// Delete a conversation permanently
///
/// Deletes its messages, turns and costs from rejoin. The session files of the agents' own programs
/// stay.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin delete tmqx          asks first\n  rejoin delete tmqx --yes    in a script\n  rejoin archive tmqx         only hides it"
)]
pub(crate) struct DeleteArgs {
    /// Conversation: handle, id or key
    #[arg(value_name = "CONV")]
    conversation: String,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

impl Run for DeleteArgs {
    const NAME: &'static str = "delete";
    const HELP: Help = Help::Change("delete permanently");

    fn task(self) -> Task {
        Task::hub(self, run)
    }
}

async fn run(hub: HubClient<'_>, args: &DeleteArgs) -> Result<u8> {
    let found = hub
        .named(&args.conversation, NameKind::Conversation)
        .await?;
    let id = found.conversation.id;
    let name = &found.conversation.handle;
    let messages = found.messages as u64;
    let out = hub.out();
    if !args.yes {
        let title = one_line(&found.conversation.title, 60);
        let what = format!("{name} ({title}), {}", count(messages, "message"));
        ask(out, &what, name)?;
    }
    hub.delete(id).await?;
    if out.json {
        let done = serde_json::json!({"conversation_id": id, "deleted": true});
        out.json(&done);
    } else {
        out.text(&format!("{name} is deleted"));
    }
    Ok(0)
}

/// Asks for confirmation; fails without asking if stdin is no terminal.
fn ask(out: Output, what: &str, name: &str) -> Result<()> {
    if !std::io::stdin().is_terminal() || out.json {
        return Err(CommandError::usage(
            "to delete for good needs --yes where nobody can be asked",
        )
        .try_this(format!("rejoin delete {name} --yes")));
    }
    out.note(&format!("delete {what}, for good? type yes: "));
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    if read.is_ok() && answer.trim() == "yes" {
        return Ok(());
    }
    Err(CommandError::conflict("not deleted").try_this(format!("rejoin archive {name}")))
}
