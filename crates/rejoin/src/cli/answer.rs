//! `rejoin answer`

use clap::Args;
use rejoin_core::{AnswerRequest, Choice, TurnId, TurnStatus};
use rejoin_hub::{Error, InboxView, QuestionView, TurnView};

use super::dialog::me;
use super::escalate::next_turn;
use super::follow::remote::follow_and_report;
use super::question::wish;
use super::report::interrupted;
use super::send;
use super::watch::leave_running;
use crate::app::App;
use crate::cli::command::{Help, Run, Task, TrustCheck};
use crate::hub_client::HubClient;
use crate::output::Output;
use crate::remote::{Ask, Remote};
use rejoin_errors::{CommandError, Result};

const SENT: &str = "the process that asked is gone; the answer is sent as a new message";

/// Answer a question or an approval
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin answer allow\n  rejoin answer tmqx 2\n  rejoin answer tmqx deny --text \"not on a Friday\""
)]
pub(crate) struct AnswerArgs {
    /// [TURN] allow, always, deny, or option numbers
    #[arg(value_name = "WORD", num_args = 0..)]
    words: Vec<String>,
    /// Answer in your own words; with deny: the reason
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
}

impl Run for AnswerArgs {
    const NAME: &'static str = "answer";
    const HELP: Help = Help::Talk("answer one");

    fn task(self) -> Task {
        Task::hub(self, run).by_daemon().trust(TrustCheck::ByWork)
    }
}

async fn run(hub: HubClient<'_>, args: &AnswerArgs) -> Result<u8> {
    let (named, words) = match args.words.split_first() {
        Some((first, rest)) if !is_answer(first) => (Some(first.as_str()), rest),
        Some(_) | None => (None, &args.words[..]),
    };
    // That nothing is open is said first, whatever the answer.
    let only = match named {
        None => Some(the_only_one(hub).await?),
        Some(_) => None,
    };
    if words.is_empty() && args.text.is_none() {
        return Err(CommandError::usage("there is no answer").try_this("rejoin answer allow"));
    }
    if let Some(word) = words.iter().find(|word| !is_answer(word)) {
        let text = format!("`{word}` is neither allow, always, deny nor a number");
        return Err(CommandError::usage(text).try_this("rejoin answer --text \"…\""));
    }
    let name = only.map(|turn| turn.to_string());
    let turn = hub
        .turn(name.as_deref().or(named).unwrap_or_default())
        .await?;
    let said = said(&turn, words, args.text.as_deref())?;
    match hub {
        HubClient::Local(app) => run_local(app, turn.turn_id, &said).await,
        HubClient::Remote(remote) => run_remote(remote, turn.turn_id, &said).await,
    }
}

async fn run_local(app: &App, turn: TurnId, said: &AnswerRequest) -> Result<u8> {
    match app.hub().answer(turn, said).await {
        Ok(_) => {
            see_to(app, turn).await?;
            let view = app.hub().turn_view(turn).await?;
            if let Some(next) = next_turn(&view) {
                leave_running(app, view.conversation_id, next)?;
            }
            answered(app.out, &view);
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

async fn run_remote(remote: &Remote, turn: TurnId, said: &AnswerRequest) -> Result<u8> {
    let interrupted = interrupted();
    let view = post_answer(remote, turn, said).await?;
    if view.turn_id == turn {
        answered(remote.out, &view);
        return Ok(0);
    }
    remote.out.note(SENT);
    follow_and_report(remote, view, false, interrupted).await
}

/// Sends an answer to the daemon. Returns another turn if it became a new message.
pub(super) async fn post_answer(
    remote: &Remote,
    turn: TurnId,
    said: &AnswerRequest,
) -> Result<TurnView> {
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
    let decision = view.escalation.as_ref().filter(|_| view.ended());
    let decision = decision.and_then(|asked| asked["decision"].as_str());
    if view.agent == rejoin_agents::WORKFLOW_AGENT {
        out.text(
            "answered; the run goes on: rejoin workflow list, then resume RUN without a daemon",
        );
        return;
    }
    out.text(match view.questions.len() {
        0 if decision == Some("climbed") => "allowed; the climb runs: rejoin wait",
        0 if decision == Some("refused") => "denied; the agent is told with its next turn",
        0 => "answered; the turn goes on: rejoin wait",
        _ => "answered; it asks more: rejoin inbox",
    });
}

fn is_answer(word: &str) -> bool {
    let number = |c: char| c.is_ascii_digit() || c == ',';
    word.parse::<Choice>().is_ok() || (!word.is_empty() && word.chars().all(number))
}

/// Parses the words as an answer to the first pending question of the turn.
fn said(view: &TurnView, words: &[String], text: Option<&str>) -> Result<AnswerRequest> {
    let by = me();
    let Some(question) = view.questions.first() else {
        // The hub knows best why there is none.
        let decision = words.first().and_then(|word| word.parse().ok());
        return Ok(AnswerRequest {
            decision: decision.or(Some(Choice::Deny)),
            by,
            ..AnswerRequest::default()
        });
    };
    let wish = wish(question, words, text);
    let wish = wish.map_err(|why| CommandError::usage(why).try_this("rejoin inbox"))?;
    Ok(AnswerRequest { by, ..wish })
}

async fn the_only_one(hub: HubClient<'_>) -> Result<TurnId> {
    let inbox = hub.inbox().await?;
    let waits = |one: &&InboxView| one.status != TurnStatus::Lost.as_str();
    let waiting: Vec<&InboxView> = inbox.turns.iter().filter(waits).collect();
    // One that was lost can be answered without its name if it is the only one there is.
    let waiting = if waiting.is_empty() {
        inbox.turns.iter().collect()
    } else {
        waiting
    };
    match waiting.as_slice() {
        [] => Err(CommandError::conflict("nothing waits for an answer").try_this("rejoin inbox")),
        [one] => Ok(one.turn_id),
        several => {
            let names: Vec<_> = several.iter().map(|one| one.handle.as_str()).collect();
            let text = format!("{} turns wait: {}; name one", names.len(), names.join(", "));
            Err(CommandError::usage(text).try_this(format!("rejoin answer {} …", names[0])))
        }
    }
}

/// Sees to it that somebody passes the answer on, and settles the turn.
pub(super) async fn see_to(app: &App, turn: TurnId) -> Result<()> {
    let stored = app.hub().store.read().await?.turns().get(turn).await?;
    match stored {
        Some(stored) if !stored.status.ended() && !app.runner.is_held(&stored).await? => {
            leave_running(app, stored.conversation, turn)
        }
        Some(_) | None => Ok(()),
    }
}

/// Prints the questions of a turn that no person at this terminal can answer.
pub(super) fn tell(out: Output, view: &TurnView) {
    let width = out.width();
    let mut lines = vec![];
    for question in &view.questions {
        let most = super::question::CHANGED_LINES;
        lines.extend(super::question::lines(&view.agent, question, width, most));
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
