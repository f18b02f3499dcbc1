//! Runs an accepted turn to its end, shows what happens meanwhile, and tells how it came out.

use std::time::Duration;

use rejoin_hub::Accepted;
use rejoin_runner::{Asks, IfBusy};
use tokio::sync::watch;

use crate::app::App;
use crate::cli::dialog::Dialog;
use crate::cli::live::View;
use crate::cli::outcome::{Reported, report};
use crate::cli::watch::leave_running;
use crate::failure::Result;

/// How soon an answer of another process is seen, while a question is shown.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

pub(super) async fn to_its_end(
    app: &App,
    accepted: &Accepted,
    if_busy: IfBusy,
    stream: bool,
    interrupted: impl Future<Output = u8>,
) -> Result<u8> {
    let signal = to_its_rest(app, accepted, if_busy, stream, interrupted).await?;
    report(app, accepted.turn, Reported::of(stream), signal).await
}

/// The same without telling how it came out. Gives the signal that came, if one did.
///
/// `interrupted`: listened to since before the turn was accepted, so that a signal cancels it and
/// does not leave it to others.
pub(super) async fn to_its_rest(
    app: &App,
    accepted: &Accepted,
    if_busy: IfBusy,
    stream: bool,
    interrupted: impl Future<Output = u8>,
) -> Result<Option<u8>> {
    let (cancel, cancelled) = watch::channel(false);
    let mut signal = None;
    {
        let follow = follow(app, accepted, if_busy, stream, &cancelled);
        tokio::pin!(follow, interrupted);
        loop {
            tokio::select! {
                biased;
                ran = &mut follow => break ran?,
                code = &mut interrupted, if signal.is_none() => {
                    // The run goes on until its processes are gone and it is settled.
                    signal = Some(code);
                    app.out.note("cancelling…");
                    cancel.send_replace(true);
                }
            }
        }
    }
    Ok(signal)
}

/// Runs the turn, and shows what happens in it meanwhile.
async fn follow(
    app: &App,
    accepted: &Accepted,
    if_busy: IfBusy,
    stream: bool,
    cancelled: &watch::Receiver<bool>,
) -> Result<()> {
    let turn = accepted.turn;
    let run = app.runner.run_accepted(accepted, if_busy, cancelled);
    let mut view = View::of(app.out, stream);
    let mut wake = app.runner.wake.subscribe();
    let asks = app.runner.config.asks == Asks::Somebody;
    let mut dialog = Dialog::default();
    let here = Dialog::possible(app.out);
    let done = {
        tokio::pin!(run);
        loop {
            tokio::select! {
                biased;
                done = &mut run => break Some(done),
                changed = wake.changed(), if asks || view.wants_events() => drop(changed),
                () = view.tick() => {}
                () = tokio::time::sleep(LOOK_AGAIN), if dialog.is_asking() => {}
                line = dialog.line() => dialog.hear(app, turn, line).await?,
            }
            view.show(app, turn).await?;
            if !asks {
                continue;
            }
            if here && !dialog.is_left() {
                dialog.look(app, turn, &mut view).await?;
            } else if app.hub().store.read().await?.is_waiting(turn).await? {
                break None;
            }
        }
    };
    view.show(app, turn).await?;
    view.close();
    match done {
        Some(done) => Ok(done?),
        None => {
            // Nobody is here who could answer: somebody else waits for that.
            app.runner.leave(turn).await?;
            leave_running(app, accepted.conversation, turn)
        }
    }
}
