//! A turn that a daemon runs.

use rejoin_core::{AnswerRequest, TurnId};
use rejoin_hub::TurnView;

use super::{Changes, End, FollowOptions, Interrupt, State, Step, TurnFeed, Waits, follow};
use crate::cli::answer::post_answer;
use crate::cli::progress_view::View;
use crate::cli::report::{Reported, report_view};
use crate::remote::{Ask, Events, Remote, TurnEvent};
use rejoin_errors::{CommandError, Result, codes};

/// Follows a turn and reports its outcome. A signal cancels it.
pub(in crate::cli) async fn follow_and_report(
    remote: &Remote,
    turn: TurnView,
    stream: bool,
    interrupted: impl Future<Output = u8>,
) -> Result<u8> {
    let followed = follow_sent(remote, turn, stream, interrupted).await?;
    report_sent(remote, &followed, stream)
}

/// Follows a turn that was sent to the daemon. A signal cancels it.
pub(in crate::cli) async fn follow_sent(
    remote: &Remote,
    turn: TurnView,
    stream: bool,
    interrupted: impl Future<Output = u8>,
) -> Result<FollowedRemote> {
    let options = FollowOptions {
        stream,
        interrupt: Interrupt::Cancels,
        waits: Waits::Return,
    };
    follow_remote(remote, turn, options, interrupted).await
}

/// Reports the outcome of a turn that was sent. Returns its exit code.
pub(in crate::cli) fn report_sent(
    remote: &Remote,
    followed: &FollowedRemote,
    stream: bool,
) -> Result<u8> {
    let signal = followed.signal;
    if let Some(mut failure) = CommandError::held_back(&followed.turn) {
        if failure.code == codes::CANCELLED.word {
            failure.exit = signal.unwrap_or(failure.exit);
        }
        return Err(failure);
    }
    let reported = Reported::of(stream);
    Ok(report_view(remote.out, &followed.turn, reported, signal))
}

/// The end of following, with the turn as it was then.
pub(in crate::cli) struct FollowedRemote {
    pub(in crate::cli) turn: TurnView,
    pub(in crate::cli) end: End,
    signal: Option<u8>,
}

pub(in crate::cli) async fn follow_remote(
    remote: &Remote,
    turn: TurnView,
    options: FollowOptions,
    interrupted: impl Future<Output = u8>,
) -> Result<FollowedRemote> {
    let mut view = View::of(remote.out, options.stream);
    view.called(&turn.handle);
    view.queued(&turn.handle, &turn.status);
    let mut changes = Events::of(remote, turn.turn_id);
    let mut feed = RemoteFeed { remote, turn };
    let out = remote.out;
    let followed = follow(
        out,
        options,
        &mut feed,
        &mut changes,
        &mut view,
        interrupted,
    )
    .await;
    view.close();
    let followed = followed.map_err(|failure| connection_lost(remote, &feed.turn, failure))?;
    Ok(FollowedRemote {
        turn: feed.turn,
        end: followed.end,
        signal: followed.signal,
    })
}

struct RemoteFeed<'a> {
    remote: &'a Remote,
    /// The turn as it was read last.
    turn: TurnView,
}

impl Changes for Events<'_> {
    type Change = TurnEvent;

    async fn next(&mut self) -> Result<TurnEvent> {
        self.next_event().await
    }
}

impl TurnFeed for RemoteFeed<'_> {
    type Change = TurnEvent;

    async fn observe(&mut self, step: Step<TurnEvent>, view: &mut View) -> Result<State> {
        let ended = match step {
            Step::Tick => {
                view.spin();
                return Ok(State::Unchanged);
            }
            Step::Typed => false,
            Step::Change(event) => {
                view.told(&event.json);
                match event.kind.as_str() {
                    "turn.ended" => true,
                    // These may change the pending question.
                    "question" | "approval" | "answered" => false,
                    _ => return Ok(State::Unchanged),
                }
            }
        };
        self.turn = get_turn(self.remote, self.turn.turn_id).await?;
        Ok(match self.turn.status.as_str() {
            _ if ended => State::Ended,
            "waiting" => State::Waiting,
            _ => State::Running,
        })
    }

    async fn turn_view(&mut self) -> Result<TurnView> {
        Ok(self.turn.clone())
    }

    async fn answer(&mut self, answer: &AnswerRequest) -> Result<()> {
        match post_answer(self.remote, self.turn.turn_id, answer).await {
            Ok(_) => Ok(()),
            // Another answer was first, the turn has ended, or that was no answer.
            Err(failure) if matches!(failure.exit, 2 | 4) => {
                self.remote.out.note(&failure.message);
                Ok(())
            }
            Err(failure) => Err(failure),
        }
    }

    /// A turn that has ended meanwhile is no failure.
    async fn cancel(&mut self) -> Result<()> {
        let id = self.turn.turn_id.to_string();
        let ask = Ask::post(&["api", "turns", &id, "cancel"]);
        match self.remote.tell(ask).await {
            Err(failure) if failure.exit == 4 => Ok(()),
            told => told,
        }
    }
}

async fn get_turn(remote: &Remote, turn: TurnId) -> Result<TurnView> {
    let ask = Ask::get(&["api", "turns", &turn.to_string()]);
    let view: TurnView = remote.ask(ask).await?;
    // A command prints the same turn without a daemon.
    Ok(TurnView {
        as_of: None,
        ..view
    })
}

/// Failure of a connection to the daemon; the turn goes on there.
fn connection_lost(remote: &Remote, turn: &TurnView, failure: CommandError) -> CommandError {
    if failure.exit != codes::UNAVAILABLE.exit {
        return failure;
    }
    let text = format!("{}; the turn goes on", failure.message);
    let name = &turn.handle;
    CommandError::unavailable(text).try_this(remote.command(&format!("wait {name}")))
}
