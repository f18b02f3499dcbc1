//! How a turn came out, told the same way by `send`, `wait` and `cancel`.

use rejoin_core::{TurnId, TurnStatus};
use rejoin_hub::TurnView;

use crate::app::App;
use crate::failure::{Result, exit_of};

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
    let view = app.hub().turn_view(turn).await?;
    let succeeded = view.status == TurnStatus::Succeeded.as_str();
    if app.out.json && reported == Reported::Not {
        app.out.json(&view);
    } else if reported == Reported::Not
        && !app.out.live()
        && let Some(text) = &view.text
    {
        app.out.text(text);
    }
    if !app.out.json {
        app.out.note(&view.summary);
        if let (false, Some(next)) = (succeeded, view.error.as_ref().and_then(|e| e.next.as_ref()))
        {
            app.out.note(&format!("  try: {next}"));
        }
    }
    Ok(exit_code(&view, signal))
}

fn exit_code(view: &TurnView, signal: Option<u8>) -> u8 {
    match view.status.parse() {
        Ok(TurnStatus::Succeeded) => 0,
        Ok(TurnStatus::Cancelled) => signal.unwrap_or(130),
        _ => exit_of(view.error.as_ref().and_then(|e| e.class.parse().ok())),
    }
}

/// Resolves with the exit code of the signal that came.
pub(super) async fn interrupted() -> u8 {
    let terminate = tokio::signal::unix::SignalKind::terminate();
    let Ok(mut term) = tokio::signal::unix::signal(terminate) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => 130,
        _ = term.recv() => 143,
    }
}
