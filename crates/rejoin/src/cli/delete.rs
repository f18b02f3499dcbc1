//! `rejoin delete`

use std::io::{BufRead, IsTerminal};

use clap::Args;
use rejoin_hub::Want;

use crate::at::At;
use crate::failure::{Failure, Result};
use crate::output::figures::count;
use crate::output::{Output, one_line};

/// Delete a conversation, for good
///
/// Its messages, turns and costs are gone from rejoin. What the agents' own programs keep of it (their
/// session files) stays theirs.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin delete tmqx          asks first\n  rejoin delete tmqx --yes    in a script\n  rejoin archive tmqx         only puts it away"
)]
pub(crate) struct DeleteArgs {
    /// Conversation: handle, id or key
    #[arg(value_name = "CONV")]
    conversation: String,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

pub(crate) async fn run(at: At<'_>, args: &DeleteArgs) -> Result<u8> {
    let found = at.named(&args.conversation, Want::Conversation).await?;
    let id = found.conversation.id;
    let name = &found.conversation.handle;
    let messages = found.messages as u64;
    let out = at.out();
    if !args.yes {
        let title = one_line(&found.conversation.title, 60);
        let what = format!("{name} ({title}), {}", count(messages, "message"));
        ask(out, &what, name)?;
    }
    at.delete(id).await?;
    if out.json {
        let done = serde_json::json!({"conversation_id": id, "deleted": true});
        out.json(&done);
    } else {
        out.text(&format!("{name} is deleted"));
    }
    Ok(0)
}

/// Nobody is asked who cannot answer.
fn ask(out: Output, what: &str, name: &str) -> Result<()> {
    if !std::io::stdin().is_terminal() || out.json {
        return Err(
            Failure::usage("to delete for good needs --yes where nobody can be asked")
                .try_this(format!("rejoin delete {name} --yes")),
        );
    }
    out.note(&format!("delete {what}, for good? type yes: "));
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    if read.is_ok() && answer.trim() == "yes" {
        return Ok(());
    }
    Err(Failure::conflict("not deleted").try_this(format!("rejoin archive {name}")))
}
