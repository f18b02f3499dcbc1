//! `rejoin show`

mod document;
mod json;
mod page;
mod walk;

use std::path::PathBuf;

use clap::Args;
use rejoin_core::{Reason, Role};
use rejoin_hub::{MessageView, NameKind, PageRequest, QuestionView, TurnView, WholeView};

use crate::app::Invocation;
use crate::cli::command::{Help, Run, Task};
use crate::cli::explain::reason_text::{Case, Tense};
use crate::cli::explain::refusal;
use crate::cli::verdict_line;
use crate::hub_client::HubClient;
use crate::output::format::{duration, money};
use crate::output::{Line, Pages};
use crate::portable::BundleReader;
use page::Layout;
use rejoin_errors::{CommandError, Result};
use walk::Walk;

/// Show a conversation: its messages, and how each turn was continued
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  rejoin show                    the last one in this folder\n  rejoin show tmqx:4             message 4 of tmqx; piped: its exact text\n  rejoin show tmqx:10-20         messages 10 to 20\n  rejoin show tmqx --markdown >talk.md"
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
    /// Include removed messages and earlier versions
    #[arg(long)]
    all: bool,
    /// Do not page ($REJOIN_PAGER, $PAGER or less)
    #[arg(long)]
    no_pager: bool,
    /// Read the conversation in this file
    #[arg(long, value_name = "FILE")]
    pub(super) bundle: Option<PathBuf>,
}

impl Run for ShowArgs {
    const NAME: &'static str = "show";
    const HELP: Help = Help::Look("one of them");
    const ALIASES: &'static [&'static str] = &["log"];

    fn task(self) -> Task {
        if self.bundle.is_some() {
            return Task::machine(self, of_bundle);
        }
        Task::hub(self, run)
    }
}

/// Runs `show --bundle` on a conversation in a file.
async fn of_bundle(on: &Invocation, args: &ShowArgs) -> Result<u8> {
    let mut args = args.clone();
    let file = args.bundle.clone().unwrap_or_default();
    let bundle = BundleReader::at(on, &file).await?;
    args.conversation = bundle.named(&args.conversation);
    run(HubClient::Local(&bundle.app), &args).await
}

/// The conversation to show.
type Shown = WholeView;

/// The turn whose verdict stands below this message: below the answer, or where one is missing.
fn verdict_below<'a>(shown: &'a Shown, message: &MessageView) -> Option<&'a TurnView> {
    let turn = (shown.turns.iter()).find(|t| Some(t.turn_id) == message.turn_id)?;
    let last = message.role == Role::Assistant || turn.reply_id.is_none();
    (last && !turn.summary.is_empty()).then_some(turn)
}

/// The pending questions of a message's turn.
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

async fn run(at: HubClient<'_>, args: &ShowArgs) -> Result<u8> {
    let (name, range) = range(&args.conversation);
    let found = at.named(name, NameKind::Conversation).await?;
    let id = found.conversation.id;
    let page = PageRequest {
        all: args.all,
        ..PageRequest::default()
    };
    let out = at.out();
    let mut walk = match (found.number, range, args.last) {
        (Some(number), ..) => {
            let page = PageRequest {
                around: Some(number),
                limit: Some(1),
                ..page
            };
            let mut shown = at.page(id, &page).await?;
            one(&mut shown, number)?;
            Walk::of_page(at, shown)
        }
        (None, None, Some(last)) => Walk::newest(at, id, page, i64::from(last)).await?,
        (None, range, _) => Walk::from(at, id, page, range.unwrap_or((1, i64::MAX - 1))).await?,
    };
    let alone = found.number.is_some();
    if out.json {
        json::print(out, walk).await?;
        return Ok(0);
    }
    let mut pages = Pages::open(out, !args.no_pager);
    let mut layout = Layout::new(out, alone, found.messages);
    let mut first = true;
    while let Some(shown) = walk.next().await? {
        let read = if args.markdown {
            let head = std::mem::take(&mut first).then(|| document::head(&shown));
            let text = head.unwrap_or_default() + &document::messages(&shown);
            pages.text(&text)
        } else if alone && !out.screen() {
            let mut texts = shown.messages.iter();
            texts.all(|message| pages.text(&format!("{}\n", message.text.trim_end_matches('\n'))))
        } else {
            let lines = layout.page(&shown, walk.total());
            pages.lines(&lines)
        };
        // A reader that quits early has seen enough.
        if !read {
            break;
        }
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

/// Keeps the message with this number, and its turn.
fn one(shown: &mut Shown, number: i64) -> Result<()> {
    let seqs = shown.messages.iter().filter_map(|m| m.seq);
    let last = shown.newer.or_else(|| seqs.max()).unwrap_or(0);
    shown.messages.retain(|m| m.seq == Some(number));
    let Some(turn) = shown.messages.first().map(|m| m.turn_id) else {
        let handle = &shown.conversation.handle;
        let text = format!("{handle} has no message {number}; its last is {last}");
        return Err(CommandError::not_found(text).try_this(format!("rejoin show {handle}")));
    };
    shown.turns.retain(|t| Some(t.turn_id) == turn);
    Ok(())
}

/// The author of a message, for people.
fn who(message: &MessageView) -> &str {
    match message.role {
        Role::User => "you",
        Role::Assistant => message.agent.as_deref().unwrap_or("assistant"),
    }
}

/// How the turn was continued, in the words of `explain`; how it ended, if that was not well.
/// Leaves out the model where the line would be wider than `width`.
fn verdict(turn: &TurnView, width: usize) -> String {
    let whole = verdict_with(turn, turn.model.as_deref());
    if Line::plain(&whole).width() <= width {
        whole
    } else {
        verdict_with(turn, None)
    }
}

fn verdict_with(turn: &TurnView, model: Option<&str>) -> String {
    let case = Case {
        agent: &turn.agent,
        verdict: turn.verdict.as_deref().and_then(|v| v.parse().ok()),
        reason: turn.reason.as_deref().and_then(|r| r.parse().ok()),
        sent: turn.sent,
        evidence: refusal(&turn.checks),
    };
    let joins = turn.reason.as_deref() == Some(Reason::NoSession.as_str());
    let mut parts = vec![if joins {
        verdict_line::joins(turn)
    } else {
        case.headline(Tense::Past)
    }];
    if let Some(error) = &turn.error {
        parts.insert(
            0,
            if error.class == turn.status {
                format!("{}: {}", turn.status, error.message)
            } else {
                format!("{}, {}: {}", turn.status, error.class, error.message)
            },
        );
    } else if turn.reply_id.is_none() {
        parts.insert(0, turn.status.clone());
    }
    let model = model.filter(|model| *model != turn.agent);
    parts.extend(model.map(str::to_owned));
    parts.extend(turn.cost_usd.map(|cost| money(Some(cost))));
    parts.push(duration(turn.duration_ms));
    parts.join(" · ")
}
