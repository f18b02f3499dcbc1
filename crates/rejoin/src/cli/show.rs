//! `rejoin show`

mod document;
mod page;

use std::path::{Path, PathBuf};

use clap::Args;
use rejoin_core::Role;
use rejoin_hub::{ConversationView, MessageView, SessionView, TurnView};

use crate::app::App;
use crate::cli::explain::refusal;
use crate::cli::explain::why::{Case, Tense};
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::output::figures::{duration, money};
use crate::portable::Glance;

/// Show a conversation: its messages, and how each turn was continued
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin show                    the last one in this folder\n  rejoin show tmqx:4             message 4 of tmqx; piped: its very text\n  rejoin show tmqx --markdown >talk.md"
)]
pub(crate) struct ShowArgs {
    /// Conversation (handle, id, key, or `last`), or one message of it (tmqx:4)
    #[arg(value_name = "CONV", default_value = "last")]
    conversation: String,
    /// Print a markdown document
    #[arg(long)]
    markdown: bool,
    /// Also what was removed, and earlier words
    #[arg(long)]
    all: bool,
    /// The conversation in this file
    #[arg(long, value_name = "FILE")]
    pub(super) bundle: Option<PathBuf>,
}

/// Of a conversation that lives in a file.
pub(crate) async fn of_bundle(
    mut args: ShowArgs,
    out: Output,
    config: Option<&Path>,
) -> Result<u8> {
    let file = args.bundle.clone().unwrap_or_default();
    let glance = Glance::at(out, config, &file).await?;
    args.conversation = glance.named(&args.conversation);
    run(&glance.app, &args).await
}

/// What there is to show.
struct Shown {
    conversation: ConversationView,
    messages: Vec<MessageView>,
    turns: Vec<TurnView>,
    sessions: Vec<SessionView>,
}

impl Shown {
    /// The turn whose verdict stands below this message: below the answer, or where one is missing.
    fn verdict_below(&self, message: &MessageView) -> Option<&TurnView> {
        let turn = (self.turns.iter()).find(|t| Some(t.turn_id) == message.turn_id)?;
        let last = message.role == Role::Assistant || turn.reply_id.is_none();
        (last && !turn.summary.is_empty()).then_some(turn)
    }
}

pub(crate) async fn run(app: &App, args: &ShowArgs) -> Result<u8> {
    let hub = app.hub();
    let found = hub.find(&args.conversation, &app.folders()).await?;
    let id = found.conversation.id;
    // Turns first: what is accepted meanwhile may be a message without one, never the reverse.
    let turns = hub.turn_views(id).await?;
    let mut shown = Shown {
        conversation: hub.conversation_view(&found.conversation).await?,
        messages: if args.all {
            hub.all_message_views(id).await?
        } else {
            hub.message_views(id).await?
        },
        turns,
        sessions: hub.session_views(id).await?,
    };
    if let Some(number) = found.message {
        one(&mut shown, number)?;
    }
    if app.out.json {
        app.out.json(&serde_json::json!({
            "conversation": shown.conversation, "messages": shown.messages,
            "turns": shown.turns, "sessions": shown.sessions,
        }));
    } else if args.markdown {
        app.out.text(&document::document(&shown));
    } else if found.message.is_some() && !app.out.screen() {
        for message in &shown.messages {
            app.out.text(&message.text);
        }
    } else {
        app.out
            .lines(&page::page(app, &shown, found.message.is_some()));
    }
    Ok(0)
}

/// Keeps the message with this number, and its turn.
fn one(shown: &mut Shown, number: i64) -> Result<()> {
    let last = shown
        .messages
        .iter()
        .filter_map(|m| m.seq)
        .max()
        .unwrap_or(0);
    shown.messages.retain(|m| m.seq == Some(number));
    let Some(turn) = shown.messages.first().map(|m| m.turn_id) else {
        let handle = &shown.conversation.handle;
        let text = format!("{handle} has no message {number}; its last is {last}");
        return Err(Failure::not_found(text).try_this(format!("rejoin show {handle}")));
    };
    shown.turns.retain(|t| Some(t.turn_id) == turn);
    Ok(())
}

/// Who said it, as people say it.
fn who(message: &MessageView) -> &str {
    match message.role {
        Role::User => "you",
        Role::Assistant => message.agent.as_deref().unwrap_or("assistant"),
    }
}

/// How the turn was continued, in the words of `explain`; how it ended, if that was not well.
fn verdict(turn: &TurnView) -> String {
    let case = Case {
        agent: &turn.agent,
        verdict: turn.verdict.as_deref().and_then(|v| v.parse().ok()),
        reason: turn.reason.as_deref().and_then(|r| r.parse().ok()),
        sent: turn.sent,
        evidence: refusal(&turn.checks),
    };
    let mut parts = vec![case.headline(Tense::Past)];
    if let Some(error) = &turn.error {
        parts.insert(
            0,
            format!("{}, {}: {}", turn.status, error.class, error.message),
        );
    } else if turn.reply_id.is_none() {
        parts.insert(0, turn.status.clone());
    }
    parts.extend(turn.model.clone().filter(|model| *model != turn.agent));
    parts.extend(turn.cost_usd.map(|cost| money(Some(cost))));
    parts.push(duration(turn.duration_ms));
    parts.join(" · ")
}
