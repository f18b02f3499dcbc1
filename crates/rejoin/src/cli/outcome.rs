//! How a turn came out, told the same way by `send`, `wait` and `cancel`.

use rejoin_core::{TurnId, TurnStatus};
use rejoin_hub::TurnView;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::app::App;
use crate::cli::answer::tell;
use crate::failure::{Result, exit_of};
use crate::output::Output;

/// It waits for somebody who is not here.
const PERSON_NEEDED: u8 = 7;

/// Has the answer been shown already, while it came?
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
    if !app.out.json
        && let Some((summary, text)) = app.hub().reply(turn).await?
    {
        if reported == Reported::Not && !app.out.live() {
            app.out.text(&text);
        }
        app.out.note(&summary);
        return Ok(0);
    }
    let view = app.hub().turn_view(turn).await?;
    Ok(report_view(app.out, &view, reported, signal))
}

/// The same of a turn that was looked at already.
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
        out.note(&view.summary);
    }
    exit_code(view, signal)
}

fn exit_code(view: &TurnView, signal: Option<u8>) -> u8 {
    match view.status.parse() {
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
