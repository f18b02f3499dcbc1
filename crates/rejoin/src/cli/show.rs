//! `rejoin show`

mod document;
mod page;

use std::path::{Path, PathBuf};

use clap::Args;
use rejoin_core::ConversationId;
use rejoin_core::Role;
use rejoin_hub::{LARGEST_PAGE, MessageView, PageRequest, QuestionView, TurnView, Want, WholeView};

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
    after_help = "Examples:\n  rejoin show                    the last one in this folder\n  rejoin show tmqx:4             message 4 of tmqx; piped: its very text\n  rejoin show tmqx:10-20         messages 10 to 20\n  rejoin show tmqx --markdown >talk.md"
)]
pub(crate) struct ShowArgs {
    /// Conversation (handle, id, key, or `last`), or messages of it (tmqx:4, tmqx:10-20)
    #[arg(value_name = "CONV", default_value = "last")]
    conversation: String,
    /// The last N messages only
    #[arg(short = 'n', long = "last", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    last: Option<u32>,
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
    let (name, range) = range(&args.conversation);
    let found = at.named(name, Want::Conversation).await?;
    let id = found.conversation.id;
    let page = PageRequest {
        all: args.all,
        ..PageRequest::default()
    };
    let mut shown = match (found.number, range, args.last) {
        (Some(number), ..) => {
            let page = PageRequest {
                around: Some(number),
                limit: Some(1),
                ..page
            };
            at.page(id, &page).await?
        }
        (None, None, Some(last)) => {
            let limit = Some(i64::from(last));
            at.page(id, &PageRequest { limit, ..page }).await?
        }
        (None, range, _) => pages(at, id, page, range.unwrap_or((1, i64::MAX - 1))).await?,
    };
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

/// Splits `tmqx:10-20` into a name and two numbers.
fn range(text: &str) -> (&str, Option<(i64, i64)>) {
    let split = || {
        let (name, numbers) = text.rsplit_once(':')?;
        let (from, to) = numbers.split_once('-')?;
        Some((name, (from.parse().ok()?, to.parse().ok()?)))
    };
    split().map_or((text, None), |(name, range)| (name, Some(range)))
}

/// Puts pages together, from the first of these messages to the last.
async fn pages(
    at: At<'_>,
    id: ConversationId,
    page: PageRequest,
    (from, to): (i64, i64),
) -> Result<Shown> {
    let mut after = from.saturating_sub(1);
    let mut whole: Option<Shown> = None;
    loop {
        let left = to.saturating_sub(after).clamp(1, LARGEST_PAGE);
        let next = PageRequest {
            after: Some(after),
            limit: Some(left),
            ..page
        };
        let mut part = at.page(id, &next).await?;
        let newer = part.newer.filter(|last| *last < to);
        let shown = match whole.take() {
            None => part,
            Some(mut shown) => {
                part.turns.retain(|turn| {
                    shown
                        .turns
                        .iter()
                        .rev()
                        .all(|known| known.turn_id != turn.turn_id)
                });
                shown.turns.append(&mut part.turns);
                shown.messages.append(&mut part.messages);
                shown.newer = part.newer;
                shown
            }
        };
        let Some(last) = newer else {
            return Ok(shown);
        };
        after = last;
        whole = Some(shown);
    }
}

/// Keeps the message with this number, and its turn.
fn one(shown: &mut Shown, number: i64) -> Result<()> {
    let seqs = shown.messages.iter().filter_map(|m| m.seq);
    let last = shown.newer.or_else(|| seqs.max()).unwrap_or(0);
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
