//! A turn that a daemon runs, followed from here to its rest.

use rejoin_core::TurnId;
use rejoin_hub::TurnView;
use rejoin_runner::failure::codes;

use super::answer::say;
use super::dialog::Dialog;
use super::live::View;
use super::outcome::{Reported, report_view};
use super::watch::Waits;
use crate::failure::{Failure, Result};
use crate::remote::{Ask, Events, Remote, Told};

/// How it is followed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Following {
    pub(super) stream: bool,
    pub(super) interrupt: Interrupt,
    pub(super) waits: Waits,
}

/// What a signal does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interrupt {
    Cancels,
    Leaves,
}

/// It has ended, or waits for somebody, or is not looked at any more.
pub(super) struct Rest {
    pub(super) turn: TurnView,
    /// The exit code of the signal that cancelled it.
    pub(super) signal: Option<u8>,
    /// The exit code for having been told to leave.
    pub(super) left: Option<u8>,
}

impl Following {
    /// Follows it, and tells how it came out.
    pub(super) async fn to_its_end(
        self,
        remote: &Remote,
        turn: TurnView,
        interrupted: impl Future<Output = u8>,
    ) -> Result<u8> {
        let rest = self.to_its_rest(remote, turn, interrupted).await?;
        self.report(remote, &rest)
    }

    /// The exit code is the turn's.
    pub(super) fn report(self, remote: &Remote, rest: &Rest) -> Result<u8> {
        if let Some(mut failure) = Failure::held_back(&rest.turn) {
            if failure.code == codes::CANCELLED.word {
                failure.exit = rest.signal.unwrap_or(failure.exit);
            }
            return Err(failure);
        }
        let reported = Reported::of(self.stream);
        Ok(report_view(remote.out, &rest.turn, reported, rest.signal))
    }

    pub(super) async fn to_its_rest(
        self,
        remote: &Remote,
        turn: TurnView,
        interrupted: impl Future<Output = u8>,
    ) -> Result<Rest> {
        let mut view = View::of(remote.out, self.stream);
        view.called(&turn.handle);
        let followed = self.follow(remote, &turn, &mut view, interrupted).await;
        view.close();
        followed.map_err(|failure| gone_on(remote, &turn, failure))
    }

    async fn follow(
        self,
        remote: &Remote,
        turn: &TurnView,
        view: &mut View,
        interrupted: impl Future<Output = u8>,
    ) -> Result<Rest> {
        let id = turn.turn_id;
        let mut dialog = Dialog::possible(remote.out).then(Dialog::default);
        let mut events = Events::of(remote, id);
        let mut signal = None;
        tokio::pin!(interrupted);
        loop {
            let told = {
                let next = events.next();
                tokio::pin!(next);
                loop {
                    tokio::select! {
                        biased;
                        code = &mut interrupted, if signal.is_none() => match self.interrupt {
                            Interrupt::Leaves => return Ok(Rest {
                                turn: turn.clone(),
                                signal: None,
                                left: Some(code),
                            }),
                            Interrupt::Cancels => {
                                signal = Some(code);
                                remote.out.note("cancelling…");
                                cancel_turn(remote, id).await?;
                            }
                        },
                        told = &mut next => break told?,
                        () = view.tick() => view.spin(),
                        line = typed(&mut dialog) => {
                            hear(remote, id, &mut dialog, line).await?;
                            // Nobody is here any more, or it is asked again.
                            if let Some(turn) = self.see(remote, id, &mut dialog, view).await? {
                                return Ok(Rest { turn, signal, left: None });
                            }
                        }
                    }
                }
            };
            view.told(&told.json);
            if ends(&told) {
                let turn = look(remote, id).await?;
                return Ok(Rest {
                    turn,
                    signal,
                    left: None,
                });
            }
            if asks(&told)
                && let Some(turn) = self.see(remote, id, &mut dialog, view).await?
            {
                return Ok(Rest {
                    turn,
                    signal,
                    left: None,
                });
            }
        }
    }

    /// Asks what the turn waits for, or gives it back if there is nobody to ask.
    async fn see(
        self,
        remote: &Remote,
        id: TurnId,
        dialog: &mut Option<Dialog>,
        view: &mut View,
    ) -> Result<Option<TurnView>> {
        let now = look(remote, id).await?;
        let waits = now.status == "waiting";
        match dialog {
            Some(dialog) if !waits => dialog.rest(remote.out, view),
            Some(dialog) if !dialog.is_left() => dialog.ask(remote.out, now, view),
            Some(_) | None if waits && self.waits == Waits::Return => return Ok(Some(now)),
            Some(_) | None => {}
        }
        Ok(None)
    }
}

async fn look(remote: &Remote, turn: TurnId) -> Result<TurnView> {
    remote
        .ask(Ask::get(&["api", "turns", &turn.to_string()]))
        .await
}

/// It may have ended meanwhile.
async fn cancel_turn(remote: &Remote, turn: TurnId) -> Result<()> {
    let id = turn.to_string();
    match remote
        .tell(Ask::post(&["api", "turns", &id, "cancel"]))
        .await
    {
        Err(failure) if failure.exit == 4 => Ok(()),
        told => told,
    }
}

async fn typed(dialog: &mut Option<Dialog>) -> Option<String> {
    match dialog {
        Some(dialog) => dialog.line().await,
        None => std::future::pending().await,
    }
}

async fn hear(
    remote: &Remote,
    turn: TurnId,
    dialog: &mut Option<Dialog>,
    line: Option<String>,
) -> Result<()> {
    let wish = (dialog.as_mut()).and_then(|dialog| dialog.answer(remote.out, line));
    let Some(wish) = wish else {
        return Ok(());
    };
    match say(remote, turn, &wish).await {
        Ok(_) => Ok(()),
        // Somebody was faster, it has ended, or that was no answer and it is asked again.
        Err(failure) if matches!(failure.exit, 2 | 4) => {
            remote.out.note(&failure.message);
            Ok(())
        }
        Err(failure) => Err(failure),
    }
}

fn ends(told: &Told) -> bool {
    told.kind == "turn.ended"
}

/// What it waits for may be another thing now.
fn asks(told: &Told) -> bool {
    matches!(told.kind.as_str(), "question" | "approval" | "answered")
}

/// Whoever told of it is gone; the turn is not.
fn gone_on(remote: &Remote, turn: &TurnView, failure: Failure) -> Failure {
    if failure.exit != codes::UNAVAILABLE.exit {
        return failure;
    }
    let text = format!("{}; the turn goes on", failure.message);
    let name = &turn.handle;
    Failure::unavailable(text).try_this(remote.command(&format!("wait {name}")))
}
