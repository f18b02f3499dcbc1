//! How a turn came out, told the same way by `send`, `wait` and `cancel`.

use std::io::IsTerminal as _;

use rejoin_core::{TurnId, TurnStatus};
use rejoin_hub::TurnView;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::app::App;
use crate::cli::answer::tell;
use crate::cli::verdict_line;
use crate::output::{self, Output};
use rejoin_errors::{CommandError, Result, exit_of};

/// Exit code of a turn that waits for a person, if none is at the terminal.
const PERSON_NEEDED: u8 = 7;

/// Tells whether the answer was shown as it arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reported {
    /// As events: nothing more on stdout.
    AsEvents,
    Not,
}

impl Reported {
    pub(super) fn of(stream: bool) -> Self {
        if stream { Self::AsEvents } else { Self::Not }
    }
}

/// Prints the answer and the verdict line; the exit code is the turn's.
pub(super) async fn report(
    app: &App,
    turn: TurnId,
    reported: Reported,
    signal: Option<u8>,
) -> Result<u8> {
    // A script needs no more than these two.
    if !app.out.json
        && !std::io::stderr().is_terminal()
        && let Some((summary, text)) = app.hub().reply(turn).await?
    {
        if reported == Reported::Not && !app.out.live() {
            app.out.text(&text);
            if let Some(error) = output::take_unwritten() {
                app.out.note(&summary);
                let view = app.hub().turn_view(turn).await?;
                return Err(unwritten(&view, &error));
            }
        }
        app.out.note(&summary);
        return Ok(0);
    }
    let view = app.hub().turn_view(turn).await?;
    let code = report_view(app.out, &view, reported, signal);
    match output::take_unwritten() {
        Some(error) => Err(unwritten(&view, &error)),
        None => Ok(code),
    }
}

/// Returns the failure for an answer that could not be written.
fn unwritten(view: &TurnView, error: &std::io::Error) -> CommandError {
    CommandError::unavailable(format!(
        "the answer could not be written: {error}; it is kept"
    ))
    .try_this(format!("rejoin show {}", view.handle))
}

/// Reports a turn that was read already.
pub(super) fn report_view(
    out: Output,
    view: &TurnView,
    reported: Reported,
    signal: Option<u8>,
) -> u8 {
    if !view.ended() {
        if out.json && reported == Reported::Not {
            out.json(view);
        } else if !out.json {
            tell(out, view);
        }
        return PERSON_NEEDED;
    }
    if out.json && reported == Reported::Not {
        out.json(view);
    } else if reported == Reported::Not
        && !out.live()
        && let Some(text) = &view.text
    {
        out.text(text);
    }
    if !out.json {
        verdict_line::print(out, view);
        if let Some(line) = escalation(view) {
            out.note(&line);
        }
    }
    exit_code(view, signal)
}

/// Returns the line about a turn's request for a higher tier.
fn escalation(view: &TurnView) -> Option<String> {
    let asked = view.escalation.as_ref()?;
    let to = asked["requested"].as_str().unwrap_or("the next tier");
    let decision = asked["decision"].as_str()?;
    let failed = asked["checks"]
        .as_array()?
        .iter()
        .find(|check| check["ok"] == false);
    let why = failed.and_then(|check| check["evidence"].as_str());
    Some(match (decision, why) {
        ("climbed", _) => format!("rejoin: climbs to {to}"),
        ("waiting", _) => format!(
            "rejoin: asks for {to}, a person must approve it · rejoin answer {} allow|deny",
            view.handle.split(':').next().unwrap_or("")
        ),
        ("refused", Some(why)) => format!("rejoin: asked for {to}, refused: {why}"),
        _ => format!(
            "rejoin: asks for {to} · rejoin escalate {}",
            view.handle.split(':').next().unwrap_or("")
        ),
    })
}

fn exit_code(view: &TurnView, signal: Option<u8>) -> u8 {
    match view.status.parse() {
        // The question of a succeeded turn is the approval of its climb.
        Ok(TurnStatus::Succeeded) if !view.questions.is_empty() => PERSON_NEEDED,
        Ok(TurnStatus::Succeeded) => 0,
        Ok(TurnStatus::Cancelled) => signal.unwrap_or(130),
        _ => exit_of(view.error.as_ref().and_then(|e| e.class.parse().ok())),
    }
}

/// Resolves with the exit code of the signal that came, also if it came before anybody waited: it is
/// listened for from the call on.
pub(super) fn interrupted() -> impl Future<Output = u8> {
    let mut int = signal(SignalKind::interrupt()).ok();
    let mut term = signal(SignalKind::terminate()).ok();
    async move {
        tokio::select! {
            () = came(&mut int) => 130,
            () = came(&mut term) => 143,
        }
    }
}

async fn came(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}
