//! `rejoin show`

use clap::Args;
use rejoin_core::{MessageState, Role};

use crate::app::App;
use crate::failure::Result;

/// Show a conversation: its messages, and how each turn was continued
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV", default_value = "last")]
    conversation: String,
}

pub(crate) async fn run(app: &App, args: &ShowArgs) -> Result<u8> {
    let hub = app.hub();
    let found = hub.find(&args.conversation, &app.folders()).await?;
    let id = found.conversation.id;
    let (conversation, messages) = (
        hub.conversation_view(&found.conversation).await?,
        hub.message_views(id).await?,
    );
    let turns = hub.turn_views(id).await?;
    if app.out.json {
        let sessions = hub.session_views(id).await?;
        app.out.json(&serde_json::json!({
            "conversation": conversation, "messages": messages, "turns": turns, "sessions": sessions,
        }));
        return Ok(0);
    }
    app.out.text(&format!(
        "{}  {}  ({})",
        conversation.handle, conversation.title, conversation.state
    ));
    for message in &messages {
        let who = match (message.role, &message.agent) {
            (Role::User, _) => "you".to_owned(),
            (Role::Assistant, agent) => agent.clone().unwrap_or_else(|| "assistant".into()),
        };
        let state = match message.state {
            MessageState::Ok => "",
            MessageState::Unanswered => "  (unanswered)",
            MessageState::Queued => "  (queued)",
        };
        let number = message.seq.map_or_else(|| "-".into(), |n| n.to_string());
        app.out.text(&format!(
            "\n{number}  {who}{state}\n{}",
            indent(&message.text)
        ));
        let turn = turns.iter().find(|t| t.turn_id == message.turn_id);
        if let Some(turn) = turn
            && (message.role == Role::Assistant || turn.reply_id.is_none())
            && !turn.summary.is_empty()
        {
            app.out.text(&format!("   {}", turn.summary));
        }
    }
    Ok(0)
}

fn indent(text: &str) -> String {
    text.lines()
        .map(|line| format!("   {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}
