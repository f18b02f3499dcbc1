//! Runs an accepted turn to its end, shows what happens meanwhile, and tells how it came out.

use rejoin_hub::Accepted;
use rejoin_runner::IfBusy;
use tokio::sync::watch;

use crate::app::App;
use crate::cli::live::View;
use crate::cli::outcome::{Reported, report};
use crate::failure::Result;

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
    let run = app.runner.run_accepted(accepted, if_busy, cancelled);
    let mut view = View::of(app.out, stream);
    let mut wake = app.runner.wake.subscribe();
    tokio::pin!(run);
    let done = loop {
        tokio::select! {
            biased;
            done = &mut run => break done,
            changed = wake.changed(), if view.wants_events() => drop(changed),
            () = view.tick() => {}
        }
        view.show(app, accepted.turn).await?;
    };
    view.show(app, accepted.turn).await?;
    view.close();
    Ok(done?)
}
