//! `rejoin show`

mod document;
mod page;

use std::path::{Path, PathBuf};

use clap::Args;
use rejoin_core::Role;
use rejoin_hub::{MessageView, QuestionView, TurnView, Want, WholeView};

use crate::at::At;
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
    run(At::Here(&glance.app), &args).await
}

/// What there is to show.
type Shown = WholeView;

/// The turn whose verdict stands below this message: below the answer, or where one is missing.
fn verdict_below<'a>(shown: &'a Shown, message: &MessageView) -> Option<&'a TurnView> {
    let turn = (shown.turns.iter()).find(|t| Some(t.turn_id) == message.turn_id)?;
    let last = message.role == Role::Assistant || turn.reply_id.is_none();
    (last && !turn.summary.is_empty()).then_some(turn)
}

/// What the turn of a message waits for.
fn asked_below<'a>(
    shown: &'a Shown,
    message: &MessageView,
) -> impl Iterator<Item = (&'a TurnView, &'a QuestionView)> {
    let id = message.id;
    let its = move |turn: &&TurnView| turn.message_id == id;
    let turn = shown.turns.iter().rfind(its);
    turn.into_iter()
        .flat_map(|turn| turn.questions.iter().map(move |question| (turn, question)))
}

pub(crate) async fn run(at: At<'_>, args: &ShowArgs) -> Result<u8> {
    let found = at.named(&args.conversation, Want::Conversation).await?;
    let mut shown = at.whole(found.conversation.id, args.all).await?;
    if let Some(number) = found.number {
        one(&mut shown, number)?;
    }
    let out = at.out();
    if out.json {
        out.json(&serde_json::json!({
            "conversation": shown.conversation, "messages": shown.messages,
            "turns": shown.turns, "sessions": shown.sessions,
        }));
    } else if args.markdown {
        out.text(&document::document(&shown));
    } else if found.number.is_some() && !out.screen() {
        for message in &shown.messages {
            out.text(&message.text);
        }
    } else {
        out.lines(&page::page(out, &shown, found.number.is_some()));
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
