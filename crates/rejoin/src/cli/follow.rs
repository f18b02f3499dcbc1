//! Follows a turn until it ends, waits for a person, or a signal comes. One loop for a turn that this process runs,
//! one that another process runs, and one that a daemon runs.

pub(super) mod local;
pub(super) mod remote;

use std::io::IsTerminal as _;
use std::time::Duration;

use rejoin_core::AnswerRequest;
use rejoin_hub::TurnView;

use crate::cli::dialog::Dialog;
use crate::cli::progress_view::View;
use crate::output::Output;
use rejoin_errors::Result;

/// Time within which an answer of another process is seen, while a question is shown.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// A turn that is followed: its state, and the way to a person's answer and to its cancellation.
pub(super) trait TurnFeed {
    type Change;

    /// Shows a step in the view. Returns the state of the turn, if the step may have changed it.
    async fn observe(&mut self, step: Step<Self::Change>, view: &mut View) -> Result<State>;

    /// Reads the turn with its questions.
    async fn turn_view(&mut self) -> Result<TurnView>;

    /// Passes on a person's answer. A refusal is printed: then the question is asked again.
    async fn answer(&mut self, answer: &AnswerRequest) -> Result<()>;

    /// Requests the end of the turn, which follows as a change.
    async fn cancel(&mut self) -> Result<()>;
}

/// The source of a turn's changes. Apart from [`TurnFeed`], because it waits while a person answers.
pub(super) trait Changes {
    type Change;

    async fn next(&mut self) -> Result<Self::Change>;
}

/// An event of the loop.
pub(super) enum Step<C> {
    Change(C),
    Tick,
    /// A person typed a line, or stdin has ended.
    Typed,
}

pub(super) enum State {
    Unchanged,
    Running,
    Waiting,
    Ended,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct FollowOptions {
    pub(super) stream: bool,
    pub(super) interrupt: Interrupt,
    pub(super) waits: Waits,
}

/// The effect of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interrupt {
    Cancels,
    Leaves,
}

/// Policy for a turn that waits for a person, if none is at the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    On,
    Return,
}

/// The end of following.
pub(super) struct Followed {
    pub(super) end: End,
    /// The exit code of the signal that cancelled the turn.
    pub(super) signal: Option<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Ended,
    /// The turn waits for a person, and none is at the terminal.
    Waits,
    /// A signal with this exit code came, and the turn goes on.
    Left(u8),
}

async fn follow<F: TurnFeed>(
    out: Output,
    options: FollowOptions,
    feed: &mut F,
    changes: &mut impl Changes<Change = F::Change>,
    view: &mut View,
    interrupted: impl Future<Output = u8>,
) -> Result<Followed> {
    let mut dialog = Dialog::possible(out).then(Dialog::default);
    let mut signal = None;
    tokio::pin!(interrupted);
    loop {
        // Not begun anew at every tick: a connection that is made would then never be made.
        let next = changes.next();
        tokio::pin!(next);
        let mut changed = false;
        while !changed {
            let asks = dialog.as_ref().is_some_and(Dialog::is_asking);
            let step = tokio::select! {
                biased;
                code = &mut interrupted, if signal.is_none() => {
                    if options.interrupt == Interrupt::Leaves {
                        return Ok(Followed { end: End::Left(code), signal: None });
                    }
                    signal = Some(code);
                    // The terminal shows `^C` where the cursor is.
                    let own_line = std::io::stderr().is_terminal();
                    out.note(if own_line { "\ncancelling…" } else { "cancelling…" });
                    feed.cancel().await?;
                    continue;
                }
                change = &mut next => {
                    changed = true;
                    Step::Change(change?)
                }
                () = view.tick() => Step::Tick,
                () = tokio::time::sleep(LOOK_AGAIN), if asks => Step::Tick,
                line = typed(&mut dialog) => {
                    let answer = dialog.as_mut().and_then(|dialog| dialog.answer(out, line));
                    if let Some(answer) = answer {
                        feed.answer(&answer).await?;
                    }
                    Step::Typed
                }
            };
            let end = match (feed.observe(step, view).await?, &mut dialog) {
                (State::Ended, _) => End::Ended,
                (State::Running, Some(dialog)) => {
                    dialog.rest(out, view);
                    continue;
                }
                (State::Waiting, Some(dialog)) if !dialog.is_left() => {
                    dialog.ask(out, feed.turn_view().await?, view);
                    continue;
                }
                (State::Waiting, _) if options.waits == Waits::Return => End::Waits,
                (State::Waiting | State::Running | State::Unchanged, _) => continue,
            };
            return Ok(Followed { end, signal });
        }
    }
}

async fn typed(dialog: &mut Option<Dialog>) -> Option<String> {
    match dialog {
        Some(dialog) => dialog.line().await,
        None => std::future::pending().await,
    }
}
