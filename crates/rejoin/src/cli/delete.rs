//! `rejoin delete`

use std::io::{BufRead, IsTerminal};

use clap::Args;

use super::change::handle;
use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::figures::count;
use crate::output::one_line;

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

pub(crate) async fn run(app: &App, args: &DeleteArgs) -> Result<u8> {
    let hub = app.hub();
    let found = hub.find(&args.conversation, &app.folders()).await?;
    let id = found.conversation.id;
    let name = handle(app, &found.conversation).await?;
    let messages = hub.store.read().await?.last_seq(id).await? as u64;
    if !args.yes {
        let title = one_line(&found.conversation.title, 60);
        ask(
            app,
            &format!("{name} ({title}), {}", count(messages, "message")),
            &name,
        )?;
    }
    hub.delete(id).await?;
    if app.out.json {
        let done = serde_json::json!({"conversation_id": id, "deleted": true});
        app.out.json(&done);
    } else {
        app.out.text(&format!("{name} is deleted"));
    }
    Ok(0)
}

/// Nobody is asked who cannot answer.
fn ask(app: &App, what: &str, name: &str) -> Result<()> {
    if !std::io::stdin().is_terminal() || app.out.json {
        return Err(
            Failure::usage("to delete for good needs --yes where nobody can be asked")
                .try_this(format!("rejoin delete {name} --yes")),
        );
    }
    app.out
        .note(&format!("delete {what}, for good? type yes: "));
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    if read.is_ok() && answer.trim() == "yes" {
        return Ok(());
    }
    Err(Failure::conflict("not deleted").try_this(format!("rejoin archive {name}")))
}
