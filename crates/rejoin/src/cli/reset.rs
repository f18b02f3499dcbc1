//! `rejoin reset`

use clap::Args;

use crate::app::App;
use crate::failure::Result;
use crate::output::figures::count;

/// Retire the sessions of a conversation and keep its messages
///
/// The next turn tells a new session what was said.
#[derive(Debug, Args)]
pub(crate) struct ResetArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV", default_value = "last")]
    conversation: String,
}

pub(crate) async fn run(app: &App, args: &ResetArgs) -> Result<u8> {
    let found = app.hub().find(&args.conversation, &app.folders()).await?;
    let id = found.conversation.id;
    let retired = app.hub().reset(id).await?;
    if app.out.json {
        app.out
            .json(&serde_json::json!({"conversation_id": id, "retired": retired}));
    } else {
        app.out.text(&format!(
            "{} retired; the next turn is told what was said",
            count(retired, "session")
        ));
    }
    Ok(0)
}
