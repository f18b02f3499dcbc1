//! `rejoin watch`, `rejoin wait`, `rejoin cancel`, and the hidden process behind `send --detach`.

use std::time::{Duration, Instant};

use clap::Args;
use rejoin_core::{TurnId, TurnStatus};
use rejoin_runner::IfBusy;
use rejoin_store::StoredTurn;
use tokio::sync::watch;

use crate::app::App;
use crate::cli::live::View;
use crate::cli::outcome::{Reported, interrupted, report};
use crate::failure::{Failure, Result};

/// Rows that another process writes are seen within this time.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A turn that is queued for so long with nothing running before it has nobody.
const ABANDONED: Duration = Duration::from_secs(3);

/// Follow a running turn; leaving does not stop it
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Conversation or turn
    #[arg(value_name = "CONV", default_value = "last")]
    turn: String,
    /// Print events as JSON lines
    #[arg(long)]
    stream: bool,
}

/// Wait for a turn and print its answer
#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// Turn, message or conversation
    #[arg(value_name = "TURN", default_value = "last")]
    turn: String,
}

/// Stop a turn
#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// Turn, message or conversation
    #[arg(value_name = "TURN", default_value = "last")]
    turn: String,
}

/// Run a turn to its end, for nobody in particular
#[derive(Debug, Args)]
pub(crate) struct RunTurnArgs {
    conversation: rejoin_core::ConversationId,
    turn: TurnId,
}

pub(crate) async fn watch(app: &App, args: &WatchArgs) -> Result<u8> {
    let turn = app.hub().find_turn(&args.turn, &app.folders()).await?;
    let mut view = View::of(app.out, args.stream);
    let left = until_ended(app, turn.id, &mut view).await?;
    view.close();
    if let Some(code) = left {
        app.out
            .note("the turn goes on; try: rejoin watch, or rejoin cancel");
        return Ok(code);
    }
    report(app, turn.id, Reported::of(args.stream), None).await
}

pub(crate) async fn wait(app: &App, args: &WaitArgs) -> Result<u8> {
    let turn = app.hub().find_turn(&args.turn, &app.folders()).await?;
    let mut view = View::of(app.out, false);
    let left = until_ended(app, turn.id, &mut view).await?;
    view.close();
    match left {
        Some(code) => Ok(code),
        None => report(app, turn.id, Reported::Not, None).await,
    }
}

pub(crate) async fn cancel(app: &App, args: &CancelArgs) -> Result<u8> {
    let turn = app.hub().find_turn(&args.turn, &app.folders()).await?;
    if turn.status.ended() {
        let text = format!("the turn has ended already: {}", turn.status);
        return Err(Failure::conflict(text).try_this(format!("rejoin explain {}", args.turn)));
    }
    if app.hub().withdraw_queued(turn.id).await? {
        if app.out.json {
            app.out
                .json(&serde_json::json!({"turn_id": turn.id, "withdrawn": true}));
        } else {
            app.out
                .text("withdrawn before it ran; the message was not kept");
        }
        return Ok(0);
    }
    app.hub().ask_cancel(turn.id).await?;
    let (_asked, cancelled) = watch::channel(true);
    app.runner
        .run_until(turn.conversation, turn.id, IfBusy::Wait, &cancelled)
        .await?;
    report(app, turn.id, Reported::Not, None).await?;
    Ok(0)
}

/// Its own session: no terminal ends it.
pub(crate) async fn run_turn(app: &App, args: &RunTurnArgs) -> Result<u8> {
    rejoin_runner::process::leave_terminal();
    let (_never, cancelled) = watch::channel(false);
    app.runner
        .run_until(args.conversation, args.turn, IfBusy::Wait, &cancelled)
        .await?;
    Ok(0)
}

/// None when the turn has ended; else the exit code for having been told to leave.
async fn until_ended(app: &App, turn: TurnId, view: &mut View) -> Result<Option<u8>> {
    let interrupted = interrupted();
    tokio::pin!(interrupted);
    let mut waiting = None;
    loop {
        view.show(app, turn).await?;
        let stored = stored(app, turn).await?;
        if stored.status.ended() {
            view.show(app, turn).await?;
            return Ok(None);
        }
        let waits = stored.status == TurnStatus::Queued && !somebody_runs(app, &stored).await?;
        let since = *waiting.get_or_insert_with(Instant::now);
        if !waits {
            waiting = None;
        } else if since.elapsed() > ABANDONED {
            let text =
                "the turn is queued and whoever sent it is gone; it runs before the next message";
            return Err(
                Failure::conflict(text).try_this("rejoin send -c CONV \"…\", or rejoin cancel")
            );
        }
        tokio::select! {
            code = &mut interrupted => return Ok(Some(code)),
            () = tokio::time::sleep(LOOK_AGAIN) => {}
        }
        // Whoever held it may have died meanwhile.
        app.runner.recover().await?;
    }
}

/// A queued turn moves on if another of its conversation runs.
async fn somebody_runs(app: &App, turn: &StoredTurn) -> Result<bool> {
    let mut read = app.hub().store.read().await?;
    Ok(read.unfinished_turn(turn.conversation).await?.is_some())
}

async fn stored(app: &App, turn: TurnId) -> Result<StoredTurn> {
    let found = app.hub().store.read().await?.turn(turn).await?;
    found.ok_or_else(|| rejoin_hub::Error::NotFound("the turn was withdrawn".into()).into())
}
