//! `rejoin snapshot save`

use clap::Args;
use serde_json::json;

use super::resolve;
use crate::app::App;
use crate::cli::change::handle;
use rejoin_errors::{CommandError, Result};

/// Save a snapshot of a conversation's session now
///
/// Every turn saves one at its end; use this if that failed.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin snapshot save tmqx\n  rejoin doctor    lists sessions that are not saved"
)]
pub(crate) struct SaveArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV", default_value = "last")]
    conversation: String,
    /// Agent; default: the agent of the newest turn
    #[arg(short, long)]
    agent: Option<String>,
}

pub(super) async fn save(app: &App, args: &SaveArgs) -> Result<u8> {
    let (conversation, agent) = resolve(app, &args.conversation, args.agent.as_ref()).await?;
    let name = handle(app, &conversation).await?;
    let pins = {
        let mut read = app.hub().store.read().await?;
        read.pins().of(conversation.id, &agent).await?
    };
    let confirmed = pins.into_iter().filter_map(|stored| stored.pin);
    let mut confirmed = confirmed.filter(|pin| pin.state == rejoin_core::PinState::Confirmed);
    let Some(pin) = confirmed.next() else {
        let why = format!("{name} has no session of {agent} to save");
        return Err(CommandError::conflict(why).try_this(format!("rejoin show {name}")));
    };
    if let Err(why) = app.runner.save(&pin).await? {
        let why = format!("the session of {agent} in {name} could not be saved: {why}");
        return Err(CommandError::conflict(why).try_this("rejoin doctor"));
    }
    if app.out.json {
        app.out.json(&json!({
            "conversation_id": conversation.id, "agent": agent, "session_id": pin.session,
            "saved": "stored",
        }));
    } else {
        app.out
            .text(&format!("the session of {agent} in {name} is saved"));
    }
    Ok(0)
}
