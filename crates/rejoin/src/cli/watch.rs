//! `rejoin watch`, `rejoin wait`, `rejoin cancel`, and the hidden process behind `send --detach`.

mod there;

use std::time::{Duration, Instant};

use clap::Args;
use rejoin_core::{ConversationId, TurnId, TurnStatus};
use rejoin_hub::TurnView;
use rejoin_runner::IfBusy;
use rejoin_store::StoredTurn;
use tokio::sync::watch;

use crate::app::App;
use crate::at::At;
use crate::cli::answer::see_to;
use crate::cli::dialog::Dialog;
use crate::cli::live::View;
use crate::cli::outcome::{Reported, interrupted, report};
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Rows that another process writes are seen within this time.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A turn that is queued for so long with nothing running before it has nobody.
const ABANDONED: Duration = Duration::from_secs(3);

const LEFT: &str = "the turn goes on; try: rejoin watch, or rejoin cancel";

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

/// Stop a turn, or end what it kept running
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

pub(crate) async fn watch(at: At<'_>, args: &WatchArgs) -> Result<u8> {
    let app = match at {
        At::Here(app) => app,
        At::There(remote) => return there::watch(at, remote, args).await,
    };
    let turn = app.hub().find_turn(&args.turn, &app.folders()).await?;
    let mut view = View::of(app.out, args.stream);
    let left = until_ended(app, turn.id, &mut view, Waits::On).await?;
    view.close();
    if let Some(code) = left {
        app.out.note(LEFT);
        return Ok(code);
    }
    report(app, turn.id, Reported::of(args.stream), None).await
}

pub(crate) async fn wait(at: At<'_>, args: &WaitArgs) -> Result<u8> {
    let app = match at {
        At::Here(app) => app,
        At::There(remote) => return there::wait(at, remote, args).await,
    };
    let turn = app.hub().find_turn(&args.turn, &app.folders()).await?;
    let mut view = View::of(app.out, false);
    let left = until_ended(app, turn.id, &mut view, Waits::Return).await?;
    view.close();
    match left {
        Some(code) => Ok(code),
        None => report(app, turn.id, Reported::Not, None).await,
    }
}

pub(crate) async fn cancel(at: At<'_>, args: &CancelArgs) -> Result<u8> {
    let app = match at {
        At::Here(app) => app,
        At::There(remote) => return there::cancel(at, remote, args).await,
    };
    let turn = app.hub().find_turn(&args.turn, &app.folders()).await?;
    if turn.status.ended() {
        if app.runner.end_kept(&turn).await? == 0 {
            return Err(ended(turn.status.as_str(), &args.turn));
        }
        let view = app.hub().turn_view(turn.id).await?;
        kept_ended(app.out, &view);
        return Ok(0);
    }
    if app.hub().withdraw_queued(turn.id).await? {
        withdrawn(app.out, turn.id);
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

fn ended(how: &str, name: &str) -> Failure {
    let text = format!("the turn has ended already: {how}");
    Failure::conflict(text).try_this(format!("rejoin explain {name}"))
}

/// Reports that the processes which an ended turn had kept are gone.
fn kept_ended(out: Output, turn: &TurnView) {
    if out.json {
        out.json(turn);
    } else {
        out.text("the processes that the turn had left running were ended");
    }
}

fn withdrawn(out: Output, turn: TurnId) {
    if out.json {
        out.json(&serde_json::json!({"turn_id": turn, "withdrawn": true}));
    } else {
        out.text("withdrawn before it ran; the message was not kept");
    }
}

/// Its own session: no terminal ends it.
pub(crate) async fn run_turn(app: &App, args: &RunTurnArgs) -> Result<u8> {
    rejoin_runner::process::leave_terminal();
    let (_never, cancelled) = watch::channel(false);
    app.runner
        .run_to_rest(args.conversation, args.turn, IfBusy::Wait, &cancelled)
        .await?;
    Ok(0)
}

/// The turn goes on in a process of its own, until it is settled or waits without one.
pub(super) fn leave_running(app: &App, c: ConversationId, turn: TurnId) -> Result<()> {
    let mut args = vec!["run-turn".to_owned(), c.to_string(), turn.to_string()];
    if let Some(file) = app.config_file.as_ref().and_then(|f| f.to_str()) {
        args.extend(["--config".to_owned(), file.to_owned()]);
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    rejoin_runner::process::spawn_self(&args).map_err(|e| {
        Failure::unavailable(format!(
            "the turn could not be left running ({e}); the next command goes on with it"
        ))
    })?;
    Ok(())
}

/// What was answered by somebody who could not see to it any more goes on as well.
pub(super) async fn see_to_answered(app: &App) -> Result<()> {
    for (conversation, turn) in app.runner.answered().await? {
        leave_running(app, conversation, turn)?;
    }
    Ok(())
}

/// What to do about a turn that waits for a person, if there is none here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    On,
    Return,
}

/// None when the turn has ended, or waits and `waits` says so; else the exit code for having been told
/// to leave.
async fn until_ended(app: &App, turn: TurnId, view: &mut View, waits: Waits) -> Result<Option<u8>> {
    let interrupted = interrupted();
    tokio::pin!(interrupted);
    let mut waiting = None;
    let mut dialog = Dialog::possible(app.out).then(Dialog::default);
    loop {
        view.show(app, turn).await?;
        let stored = stored(app, turn).await?;
        if let Some(dialog) = &mut dialog {
            dialog.look(app, turn, view).await?;
        }
        let somebody = dialog.as_ref().is_some_and(|dialog| !dialog.is_left());
        if stored.status == TurnStatus::Waiting && waits == Waits::Return && !somebody {
            return Ok(None);
        }
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
            line = typed(&mut dialog) => {
                if let Some(dialog) = &mut dialog {
                    dialog.hear(app, turn, line).await?;
                    see_to(app, turn).await?;
                }
            }
        }
        // Whoever held it may have died meanwhile.
        app.runner.recover().await?;
    }
}

async fn typed(dialog: &mut Option<Dialog>) -> Option<String> {
    match dialog {
        Some(dialog) => dialog.line().await,
        None => std::future::pending().await,
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
