//! A turn in the store of this process: run here, or by another process.

use std::pin::Pin;
use std::time::{Duration, Instant};

use rejoin_core::{AnswerRequest, TurnId, TurnStatus};
use rejoin_hub::{Accepted, Error, IfBusy, TurnView};
use rejoin_runner::Asks;
use rejoin_store::StoredTurn;
use tokio::sync::watch;

use super::{Changes, End, FollowOptions, Interrupt, State, Step, TurnFeed, Waits, follow};
use crate::app::App;
use crate::cli::answer::see_to;
use crate::cli::progress_view::View;
use crate::cli::report::{Reported, interrupted, report};
use crate::cli::watch::leave_running;
use rejoin_errors::{CommandError, Result};

/// Time within which rows of another process are seen.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Time after which a queued turn, with nothing running before it, counts as abandoned.
const ABANDONED: Duration = Duration::from_secs(3);

pub(in crate::cli) async fn run_and_report(
    app: &App,
    accepted: &Accepted,
    if_busy: IfBusy,
    stream: bool,
    interrupted: impl Future<Output = u8>,
) -> Result<u8> {
    let signal = run_until_idle(app, accepted, if_busy, stream, interrupted).await?;
    report(app, accepted.turn, Reported::of(stream), signal).await
}

/// Runs a turn and follows it. Returns the signal that interrupted it, if any. A turn that waits for a person, if
/// none is at the terminal, goes on in a process of its own.
///
/// `interrupted`: listened to since before the turn was accepted, so that a signal cancels it and
/// does not leave it to others.
pub(in crate::cli) async fn run_until_idle(
    app: &App,
    accepted: &Accepted,
    if_busy: IfBusy,
    stream: bool,
    interrupted: impl Future<Output = u8>,
) -> Result<Option<u8>> {
    let (out, turn) = (app.out, accepted.turn);
    let (cancel, cancelled) = watch::channel(false);
    let mut view = View::of(out, stream);
    let mut feed = RunFeed {
        app,
        turn,
        cancel,
        asks: app.runner.config.asks == Asks::Somebody,
    };
    let options = FollowOptions {
        stream,
        interrupt: Interrupt::Cancels,
        waits: Waits::Return,
    };
    let followed = {
        let run = app.runner.run_accepted(accepted, if_busy, &cancelled);
        tokio::pin!(run);
        let mut changes = RunChanges {
            run,
            wake: app.runner.wake.subscribe(),
            listens: feed.asks || view.wants_events(),
        };
        follow(
            out,
            options,
            &mut feed,
            &mut changes,
            &mut view,
            interrupted,
        )
        .await?
    };
    view.show(app, turn).await?;
    view.close();
    if followed.end == End::Waits {
        app.runner.leave(turn).await?;
        leave_running(app, accepted.conversation, turn)?;
    }
    Ok(followed.signal)
}

/// Follows a turn that another process runs.
pub(in crate::cli) async fn follow_stored(
    app: &App,
    turn: TurnId,
    options: FollowOptions,
) -> Result<End> {
    let mut view = View::of(app.out, options.stream);
    let mut feed = StoreFeed {
        app,
        turn,
        queued: None,
    };
    let mut changes = StoreChanges { app, first: true };
    let interrupted = interrupted();
    let followed = follow(
        app.out,
        options,
        &mut feed,
        &mut changes,
        &mut view,
        interrupted,
    )
    .await?;
    view.close();
    Ok(followed.end)
}

/// A turn that this process runs.
struct RunFeed<'a> {
    app: &'a App,
    turn: TurnId,
    cancel: watch::Sender<bool>,
    asks: bool,
}

enum RunChange {
    Committed,
    Ended,
}

struct RunChanges<'a, R> {
    run: Pin<&'a mut R>,
    /// Sent to at every commit of the run.
    wake: watch::Receiver<u64>,
    listens: bool,
}

impl<R, E> Changes for RunChanges<'_, R>
where
    R: Future<Output = std::result::Result<(), E>>,
    CommandError: From<E>,
{
    type Change = RunChange;

    async fn next(&mut self) -> Result<RunChange> {
        tokio::select! {
            biased;
            ran = &mut self.run => {
                ran?;
                Ok(RunChange::Ended)
            }
            _changed = self.wake.changed(), if self.listens => Ok(RunChange::Committed),
        }
    }
}

impl TurnFeed for RunFeed<'_> {
    type Change = RunChange;

    async fn observe(&mut self, step: Step<RunChange>, view: &mut View) -> Result<State> {
        view.show(self.app, self.turn).await?;
        match step {
            Step::Change(RunChange::Ended) => Ok(State::Ended),
            Step::Change(RunChange::Committed) | Step::Tick | Step::Typed if self.asks => {
                let mut read = self.app.hub().store.read().await?;
                if !read.questions().is_waiting(self.turn).await? {
                    return Ok(State::Running);
                }
                Ok(State::Waiting)
            }
            Step::Change(RunChange::Committed) | Step::Tick | Step::Typed => Ok(State::Unchanged),
        }
    }

    async fn turn_view(&mut self) -> Result<TurnView> {
        Ok(self.app.hub().turn_view(self.turn).await?)
    }

    async fn answer(&mut self, answer: &AnswerRequest) -> Result<()> {
        store_answer(self.app, self.turn, answer).await
    }

    /// The run goes on until its processes are gone and it is settled.
    async fn cancel(&mut self) -> Result<()> {
        self.cancel.send_replace(true);
        Ok(())
    }
}

/// A turn that another process runs.
struct StoreFeed<'a> {
    app: &'a App,
    turn: TurnId,
    /// Queued with nothing running before it, since then.
    queued: Option<Instant>,
}

struct StoreChanges<'a> {
    app: &'a App,
    first: bool,
}

impl Changes for StoreChanges<'_> {
    type Change = ();

    async fn next(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.first) {
            tokio::time::sleep(LOOK_AGAIN).await;
            // The process that held it may have died meanwhile.
            self.app.runner.recover().await?;
        }
        Ok(())
    }
}

impl TurnFeed for StoreFeed<'_> {
    type Change = ();

    async fn observe(&mut self, step: Step<()>, view: &mut View) -> Result<State> {
        if matches!(step, Step::Tick) {
            view.spin();
            return Ok(State::Unchanged);
        }
        // Read before the events: an ended turn has no more of them.
        let stored = self.stored().await?;
        view.show(self.app, self.turn).await?;
        if stored.status.ended() {
            return Ok(State::Ended);
        }
        if stored.status == TurnStatus::Waiting {
            return Ok(State::Waiting);
        }
        self.must_have_a_process(&stored).await?;
        Ok(State::Running)
    }

    async fn turn_view(&mut self) -> Result<TurnView> {
        Ok(self.app.hub().turn_view(self.turn).await?)
    }

    async fn answer(&mut self, answer: &AnswerRequest) -> Result<()> {
        store_answer(self.app, self.turn, answer).await?;
        see_to(self.app, self.turn).await
    }

    async fn cancel(&mut self) -> Result<()> {
        Ok(self.app.hub().ask_cancel(self.turn).await?)
    }
}

impl StoreFeed<'_> {
    async fn stored(&self) -> Result<StoredTurn> {
        let found = self
            .app
            .hub()
            .store
            .read()
            .await?
            .turns()
            .get(self.turn)
            .await?;
        found.ok_or_else(|| Error::NotFound("the turn was withdrawn".into()).into())
    }

    /// Fails if the turn is queued, nothing runs before it, and its sender has not started it for a while.
    async fn must_have_a_process(&mut self, turn: &StoredTurn) -> Result<()> {
        let mut read = self.app.hub().store.read().await?;
        if turn.status != TurnStatus::Queued
            || read.turns().unfinished(turn.conversation).await?.is_some()
        {
            self.queued = None;
            return Ok(());
        }
        if self.queued.get_or_insert_with(Instant::now).elapsed() <= ABANDONED {
            return Ok(());
        }
        let text =
            "the turn is queued and whoever sent it is gone; it runs before the next message";
        Err(CommandError::conflict(text).try_this("rejoin send -c CONV \"…\", or rejoin cancel"))
    }
}

async fn store_answer(app: &App, turn: TurnId, answer: &AnswerRequest) -> Result<()> {
    match app.hub().answer(turn, answer).await {
        Ok(_) => app.runner.wake.send_modify(|n| *n += 1),
        // Another answer was first, the turn has ended, or that was no answer.
        Err(error @ (Error::Conflict(_) | Error::QuestionGone { .. } | Error::Usage(_))) => {
            app.out.note(&error.to_string());
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
