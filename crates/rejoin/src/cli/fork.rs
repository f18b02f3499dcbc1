//! `rejoin fork`

use clap::Args;
use rejoin_core::PermissionMode;
use rejoin_hub::{ConversationView, ForkWish, Want};

use super::send::valid_key;
use crate::at::At;
use crate::failure::{Failure, Result};
use crate::output::figures::count;

/// Start a new conversation with the same history, up to a message
///
/// Both go on by themselves. Where the agent can fork its own session at that message, the first
/// turn does; else it is told what was said.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin fork last                        all that was said so far\n  rejoin fork tmqx --at tmqx:6            up to and including message 6\n  rejoin fork tmqx --permission full -k try-2"
)]
pub(crate) struct ForkArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV", default_value = "last")]
    conversation: String,
    /// Up to and including this message, e.g. 4
    #[arg(long, value_name = "MESSAGE")]
    at: Option<String>,
    /// What the agent may do: read-only, edit, full, ask
    #[arg(long, value_name = "MODE")]
    permission: Option<PermissionMode>,
    /// Give it this key
    #[arg(short, long, value_name = "KEY")]
    key: Option<String>,
    /// Give it this title
    #[arg(long, value_name = "TITLE")]
    title: Option<String>,
    /// Fork at most once, however often repeated
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

pub(crate) async fn run(at: At<'_>, args: &ForkArgs) -> Result<u8> {
    let found = at.named(&args.conversation, Want::Conversation).await?;
    let parent = &found.conversation.handle;
    let through = match &args.at {
        Some(name) => Some(place(at, name, &found.conversation).await?),
        None => found.number,
    };
    let wish = ForkWish {
        client_key: args.idempotency_key.as_deref().map(valid_key).transpose()?,
        at: through,
        permission: args.permission,
        title: args.title.clone(),
        key: args.key.as_deref().map(valid_key).transpose()?,
    };
    let fork = at.fork(found.conversation.id, &wish).await?;
    let out = at.out();
    if out.json {
        out.json(&fork);
    } else {
        out.text(&fork.handle);
        out.note(&format!(
            "{} of {parent} are in {}; try: rejoin send -c {} \"…\"",
            count(fork.messages, "message"),
            fork.handle,
            fork.handle
        ));
    }
    Ok(0)
}

/// A message of this conversation, and no other.
async fn place(at: At<'_>, name: &str, conversation: &ConversationView) -> Result<i64> {
    if let Ok(number) = name.parse::<i64>() {
        return Ok(number);
    }
    let handle = &conversation.handle;
    let try_this = format!("rejoin fork {handle} --at {handle}:N");
    let named = at.named(name, Want::Message).await;
    let named = named.map_err(|e| e.try_this(&*try_this))?;
    match named.message {
        Some(_) if named.conversation.id != conversation.id => {
            let text = format!("`{name}` is a message of another conversation than {handle}");
            Err(Failure::usage(text).try_this(try_this))
        }
        Some(message) if message.seq > 0 => Ok(message.seq),
        Some(_) => Err(
            Failure::usage(format!("`{name}` is still queued, and not history yet"))
                .try_this(format!("rejoin show {handle}")),
        ),
        None => Err(Failure::usage(format!(
            "`{name}` is a conversation; name one of its messages"
        ))
        .try_this(try_this)),
    }
}
