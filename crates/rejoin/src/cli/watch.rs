//! `rejoin watch`, `rejoin wait`, `rejoin cancel`, and the hidden process behind `send --detach`.

use clap::Args;
use rejoin_core::{ConversationId, TurnId};
use rejoin_hub::{IfBusy, TurnView};
use tokio::sync::watch;

use crate::app::App;
use crate::cli::command::{Help, Run, Task, TrustCheck};
use crate::cli::follow::local::follow_stored;
use crate::cli::follow::remote::follow_remote;
use crate::cli::follow::{End, FollowOptions, Interrupt, Waits};
use crate::cli::report::{Reported, interrupted, report, report_view};
use crate::hub_client::HubClient;
use crate::output::Output;
use crate::remote::{Ask, Remote};
use rejoin_errors::{CommandError, Result};

const LEFT: &str = "the turn goes on; try: rejoin watch, or rejoin cancel";

/// Follow a running turn; Ctrl-C does not stop it
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Conversation or turn
    #[arg(value_name = "CONV", default_value = "last")]
    turn: String,
    /// Print events as JSON lines
    #[arg(long)]
    stream: bool,
}

impl Run for WatchArgs {
    const NAME: &'static str = "watch";
    const HELP: Help = Help::Talk("follow a turn");

    fn task(self) -> Task {
        Task::hub(self, watch)
    }
}

/// Wait for a turn and print its answer
#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// Turn, message or conversation
    #[arg(value_name = "TURN", default_value = "last")]
    turn: String,
}

impl Run for WaitArgs {
    const NAME: &'static str = "wait";
    const HELP: Help = Help::Talk("wait for its answer");

    fn task(self) -> Task {
        Task::hub(self, wait)
    }
}

/// Stop a turn, or end the processes that it kept
#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// Turn, message or conversation
    #[arg(value_name = "TURN", default_value = "last")]
    turn: String,
}

impl Run for CancelArgs {
    const NAME: &'static str = "cancel";
    const HELP: Help = Help::Talk("stop it");

    fn task(self) -> Task {
        Task::hub(self, cancel).by_daemon()
    }
}

/// Run a turn to its end, for nobody in particular
#[derive(Debug, Args)]
pub(crate) struct RunTurnArgs {
    conversation: rejoin_core::ConversationId,
    turn: TurnId,
}

impl Run for RunTurnArgs {
    const NAME: &'static str = "run-turn";
    const HELP: Help = Help::Hidden;

    fn task(self) -> Task {
        Task::store(self, run_turn)
            .unrouted()
            .trust(TrustCheck::ByWork)
    }
}

async fn watch(hub: HubClient<'_>, args: &WatchArgs) -> Result<u8> {
    let options = FollowOptions {
        stream: args.stream,
        interrupt: Interrupt::Leaves,
        waits: Waits::On,
    };
    follow_and_report(hub, &args.turn, options).await
}

async fn wait(hub: HubClient<'_>, args: &WaitArgs) -> Result<u8> {
    let options = FollowOptions {
        stream: false,
        interrupt: Interrupt::Leaves,
        waits: Waits::Return,
    };
    follow_and_report(hub, &args.turn, options).await
}

/// Follows a turn that was sent before, and reports it. A signal ends that, and its exit code is returned.
async fn follow_and_report(hub: HubClient<'_>, name: &str, options: FollowOptions) -> Result<u8> {
    let reported = Reported::of(options.stream);
    let left = match hub {
        HubClient::Local(app) => {
            let turn = app.hub().find_turn(name, &app.folders()).await?.id;
            match follow_stored(app, turn, options).await? {
                End::Left(code) => code,
                End::Ended | End::Waits => return report(app, turn, reported, None).await,
            }
        }
        HubClient::Remote(remote) => {
            let turn = hub.turn(name).await?;
            let followed = follow_remote(remote, turn, options, interrupted()).await?;
            match followed.end {
                End::Left(code) => code,
                End::Ended | End::Waits => {
                    return Ok(report_view(remote.out, &followed.turn, reported, None));
                }
            }
        }
    };
    if options.waits == Waits::On {
        hub.out().note(LEFT);
    }
    Ok(left)
}

async fn cancel(hub: HubClient<'_>, args: &CancelArgs) -> Result<u8> {
    let app = match hub {
        HubClient::Local(app) => app,
        HubClient::Remote(remote) => return cancel_remote(hub, remote, args).await,
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

async fn cancel_remote(hub: HubClient<'_>, remote: &Remote, args: &CancelArgs) -> Result<u8> {
    let turn = hub.turn(&args.turn).await?;
    if turn.ended() && turn.leftovers.is_empty() {
        return Err(ended(&turn.status, &args.turn));
    }
    let id = turn.turn_id.to_string();
    let ask = Ask::post(&["api", "turns", &id, "cancel"]);
    let now = remote.ask(ask).await?;
    if turn.ended() {
        kept_ended(remote.out, &now);
    } else if CommandError::held_back(&now).is_some() {
        withdrawn(remote.out, turn.turn_id);
    } else {
        report_view(remote.out, &now, Reported::Not, None);
    }
    Ok(0)
}

fn ended(how: &str, name: &str) -> CommandError {
    let text = format!("the turn has ended already: {how}");
    CommandError::conflict(text).try_this(format!("rejoin explain {name}"))
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

/// Runs a turn in a process session of its own: no terminal ends it.
async fn run_turn(app: &App, args: &RunTurnArgs) -> Result<u8> {
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
        CommandError::unavailable(format!(
            "the turn could not be left running ({e}); the next command goes on with it"
        ))
    })?;
    Ok(())
}

/// Resumes deferred turns whose answer came from a process that could not resume them.
pub(super) async fn see_to_answered(app: &App) -> Result<()> {
    for (conversation, turn) in app.runner.answered().await? {
        leave_running(app, conversation, turn)?;
    }
    Ok(())
}
