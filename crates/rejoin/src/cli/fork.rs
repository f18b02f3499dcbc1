//! `rejoin fork`

use clap::Args;
use rejoin_core::PermissionMode;
use rejoin_hub::{ConversationView, ForkRequest, NameKind, fields};

use crate::cli::command::{Help, Run, Task};
use crate::hub_client::HubClient;
use crate::output::format::count;
use rejoin_errors::{CommandError, Result};

/// Start a new conversation with the same history, up to a message
///
/// The two conversations are independent. The first turn continues a copy of the agent's session where
/// possible; otherwise a new session receives the transcript.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin fork last                        the whole history\n  rejoin fork tmqx --at tmqx:6            up to and including message 6\n  rejoin fork tmqx --permission full -k try-2"
)]
pub(crate) struct ForkArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV", default_value = "last")]
    conversation: String,
    /// Up to and including this message, e.g. 4
    #[arg(long, value_name = "MESSAGE")]
    at: Option<String>,
    /// Permissions: read-only, edit, full, ask
    #[arg(long, value_name = "MODE")]
    permission: Option<PermissionMode>,
    /// Key of the new conversation
    #[arg(short, long, value_name = "KEY")]
    key: Option<String>,
    /// Title of the new conversation
    #[arg(long, value_name = "TITLE")]
    title: Option<String>,
    /// Fork at most once, even if repeated
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

impl Run for ForkArgs {
    const NAME: &'static str = "fork";
    const HELP: Help = Help::Change("branch off");

    fn task(self) -> Task {
        Task::hub(self, run)
    }
}

async fn run(hub: HubClient<'_>, args: &ForkArgs) -> Result<u8> {
    let found = hub
        .named(&args.conversation, NameKind::Conversation)
        .await?;
    let parent = &found.conversation.handle;
    let through = match &args.at {
        Some(name) => Some(place(hub, name, &found.conversation).await?),
        None => found.number,
    };
    let wish = ForkRequest {
        client_key: args
            .idempotency_key
            .as_deref()
            .map(fields::key)
            .transpose()?,
        at: through,
        permission: args.permission,
        title: args.title.clone(),
        key: args.key.as_deref().map(fields::key).transpose()?,
    };
    let fork = hub.fork(found.conversation.id, &wish).await?;
    let out = hub.out();
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
async fn place(hub: HubClient<'_>, name: &str, conversation: &ConversationView) -> Result<i64> {
    if let Ok(number) = name.parse::<i64>() {
        return Ok(number);
    }
    let handle = &conversation.handle;
    let try_this = format!("rejoin fork {handle} --at {handle}:N");
    let named = hub.named(name, NameKind::Message).await;
    let named = named.map_err(|e| e.try_this(&*try_this))?;
    match named.message {
        Some(_) if named.conversation.id != conversation.id => {
            let text = format!("`{name}` is a message of another conversation than {handle}");
            Err(CommandError::usage(text).try_this(try_this))
        }
        Some(message) if message.seq > 0 => Ok(message.seq),
        Some(_) => Err(CommandError::usage(format!(
            "`{name}` is still queued, and not history yet"
        ))
        .try_this(format!("rejoin show {handle}"))),
        None => Err(CommandError::usage(format!(
            "`{name}` is a conversation; name one of its messages"
        ))
        .try_this(try_this)),
    }
}
