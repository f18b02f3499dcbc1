//! `rejoin answer`

use clap::Args;
use rejoin_core::{AnswerWish, Choice, TurnId, TurnStatus};
use rejoin_hub::{Error, InboxView, QuestionView, TurnView};

use super::dialog::me;
use super::outcome::interrupted;
use super::question::wish;
use super::send;
use super::there::{Following, Interrupt};
use super::watch::{Waits, leave_running};
use crate::app::App;
use crate::at::At;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::remote::{Ask, Remote};

const SENT: &str = "the process that asked is gone; the answer is sent as a new message";

/// Answer what an agent asks
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin answer allow\n  rejoin answer tmqx 2\n  rejoin answer tmqx deny --text \"not on a Friday\""
)]
pub(crate) struct AnswerArgs {
    /// [TURN] allow, always, deny, or numbers of options
    #[arg(value_name = "WORD", num_args = 0..)]
    words: Vec<String>,
    /// Other words than its options; with deny: why
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
}

pub(crate) async fn run(at: At<'_>, args: &AnswerArgs) -> Result<u8> {
    let (named, words) = match args.words.split_first() {
        Some((first, rest)) if !is_answer(first) => (Some(first.as_str()), rest),
        Some(_) | None => (None, &args.words[..]),
    };
    if words.is_empty() && args.text.is_none() {
        return Err(Failure::usage("there is no answer").try_this("rejoin answer allow"));
    }
    if let Some(word) = words.iter().find(|word| !is_answer(word)) {
        let text = format!("`{word}` is neither allow, always, deny nor a number");
        return Err(Failure::usage(text).try_this("rejoin answer --text \"…\""));
    }
    let turn = match named {
        Some(name) => at.turn(name).await?,
        None => at.turn(&the_only_one(at).await?.to_string()).await?,
    };
    let said = said(&turn, words, args.text.as_deref())?;
    match at {
        At::Here(app) => here(app, turn.turn_id, &said).await,
        At::There(remote) => there(remote, turn.turn_id, &said).await,
    }
}

async fn here(app: &App, turn: TurnId, said: &AnswerWish) -> Result<u8> {
    match app.hub().answer(turn, said).await {
        Ok(_) => {
            see_to(app, turn).await?;
            answered(app.out, &app.hub().turn_view(turn).await?);
            Ok(0)
        }
        Err(Error::QuestionGone {
            conversation,
            text,
            answer,
        }) => {
            app.out.note(SENT);
            send::as_message(app, conversation, text, answer).await
        }
        Err(error) => Err(error.into()),
    }
}

async fn there(remote: &Remote, turn: TurnId, said: &AnswerWish) -> Result<u8> {
    let interrupted = interrupted();
    let view = say(remote, turn, said).await?;
    if view.turn_id == turn {
        answered(remote.out, &view);
        return Ok(0);
    }
    remote.out.note(SENT);
    let following = Following {
        stream: false,
        interrupt: Interrupt::Cancels,
        waits: Waits::Return,
    };
    following.to_its_end(remote, view, interrupted).await
}

/// Says it to the daemon; another turn comes back if it became a new message.
pub(super) async fn say(remote: &Remote, turn: TurnId, said: &AnswerWish) -> Result<TurnView> {
    let body = serde_json::json!({
        "question_id": said.question_id, "decision": said.decision, "message": said.message,
        "answers": said.answers, "by": said.by,
    });
    let ask = Ask::post(&["api", "turns", &turn.to_string(), "answer"]).body(body);
    remote.ask(ask).await
}

fn answered(out: Output, view: &TurnView) {
    if out.json {
        out.json(view);
        return;
    }
    out.text(match view.questions.len() {
        0 => "answered; the turn goes on: rejoin wait",
        _ => "answered; it asks more: rejoin inbox",
    });
}

fn is_answer(word: &str) -> bool {
    let number = |c: char| c.is_ascii_digit() || c == ',';
    word.parse::<Choice>().is_ok() || (!word.is_empty() && word.chars().all(number))
}

/// What the words say to the first thing the turn asks.
fn said(view: &TurnView, words: &[String], text: Option<&str>) -> Result<AnswerWish> {
    let by = me();
    let Some(question) = view.questions.first() else {
        // The hub knows best why there is none.
        let decision = words.first().and_then(|word| word.parse().ok());
        return Ok(AnswerWish {
            decision: decision.or(Some(Choice::Deny)),
            by,
            ..AnswerWish::default()
        });
    };
    let wish = wish(question, words, text);
    let wish = wish.map_err(|why| Failure::usage(why).try_this("rejoin inbox"))?;
    Ok(AnswerWish { by, ..wish })
}

async fn the_only_one(at: At<'_>) -> Result<TurnId> {
    let inbox = at.inbox().await?;
    let waits = |one: &&InboxView| one.status == TurnStatus::Waiting.as_str();
    let waiting: Vec<&InboxView> = inbox.iter().filter(waits).collect();
    // One that was lost can be answered without its name if it is the only one there is.
    let waiting = if waiting.is_empty() {
        inbox.iter().collect()
    } else {
        waiting
    };
    match waiting.as_slice() {
        [] => Err(Failure::conflict("nothing waits for an answer").try_this("rejoin inbox")),
        [one] => Ok(one.turn_id),
        several => {
            let names: Vec<_> = several.iter().map(|one| one.handle.as_str()).collect();
            let text = format!("{} turns wait: {}; name one", names.len(), names.join(", "));
            Err(Failure::usage(text).try_this(format!("rejoin answer {} …", names[0])))
        }
    }
}

/// Sees to it that somebody passes the answer on, and settles the turn.
pub(super) async fn see_to(app: &App, turn: TurnId) -> Result<()> {
    let stored = app.hub().store.read().await?.turn(turn).await?;
    match stored {
        Some(stored) if !stored.status.ended() && !app.runner.is_held(&stored).await? => {
            leave_running(app, stored.conversation, turn)
        }
        Some(_) | None => Ok(()),
    }
}

/// What a turn waits for, told to nobody in particular.
pub(super) fn tell(out: Output, view: &TurnView) {
    let width = out.width();
    let mut lines = vec![];
    for question in &view.questions {
        lines.extend(super::question::lines(&view.agent, question, width));
    }
    out.say(&lines);
    let next = |question: &QuestionView| super::question::hint(question, &view.handle);
    let next = view.questions.first().map(next);
    let next = next.unwrap_or_else(|| format!("rejoin wait {}", view.handle));
    out.note(&format!(
        "rejoin: waiting for a person · {} · {next}",
        view.handle
    ));
}
