//! Follows one run. Turns the output of the CLI into events and commits them together with the
//! offset up to which the spool was read; answers the questions of the CLI; returns when the run
//! has ended and everything is committed.

mod control;
mod idle;
mod offered;
mod output;
mod questions;
mod watchdog;

use std::time::Duration;

use rejoin_agents::{EndCause, ProcessEnd, RunReport, StreamParser};
use rejoin_core::{Class, EventBody, Failure, Outcome};
use rejoin_hub::{Hub, fault};
use tokio::sync::watch;

use crate::cost_limit::{self, CostWatch};
use crate::error::{Error, Result};
use crate::process::ShimChild;
use crate::run::Run;
use crate::schedule;
use crate::shim::{Begun, ShimEnd, StopReason, begun, void};
use crate::spool::{Piece, SpoolReader};
use crate::stray_processes;
use crate::warm;
use control::Control;
use idle::Idle;
pub(crate) use idle::limit as idle_limit;
use output::Spools;
pub(crate) use output::is_dialogue;
use output::parser_of;
use questions::{Batch, Talk};
use watchdog::{FirstStop, Watchdog};

/// Interval between two checks if another process asked to cancel.
const POLL_CANCEL: Duration = Duration::from_millis(500);

/// Interval between two checks for answers from other processes, while the run waits for one.
const POLL_ANSWERS: Duration = Duration::from_millis(200);

/// Interval between two checks for messages of a hook, if the run may have one.
const POLL_HOOK: Duration = Duration::from_millis(100);

/// Result of a run that has ended.
pub(crate) struct RunEnd {
    pub ran: RunReport,
    pub cause: EndCause,
    pub leftovers: Vec<String>,
    /// True if the processes that were left running were not killed.
    pub kept: bool,
    /// True if the run went through a process of its own, and that process printed nothing.
    pub silent: bool,
    /// Id of the tool call that the run deferred and that a person was asked about.
    pub deferred: Option<String>,
}

/// Reader of one run.
pub(crate) struct Pump<'a> {
    pub hub: &'a Hub,
    pub run: &'a Run<'a>,
    /// Number of bytes of the spool whose events are already committed.
    pub committed: u64,
    /// Process of the shim, if this process started it.
    pub child: Option<ShimChild>,
    pub cancel: watch::Receiver<bool>,
    /// Time for which the CLI may print nothing; None means no limit.
    pub idle: Option<Duration>,
    pub cost: CostWatch<'a>,
    /// Tool that the CLI offers although the turn may not use it.
    pub forbidden: Option<String>,
    pub wake: &'a watch::Sender<u64>,
}

impl Pump<'_> {
    /// Follows the run to its end. Always parses the spool from its beginning, because the parser
    /// needs its state; only lines after `committed` become events.
    pub(crate) async fn follow(self) -> Result<RunEnd> {
        let parser = parser_of(self.run);
        let ending = FirstStop::default();
        let watchdog = Watchdog::new(
            &self.run.folder,
            self.run.claimed.turn.id.to_string(),
            &ending,
        );
        tokio::select! {
            biased;
            done = self.follow_output(parser, &ending) => done,
            never = watchdog.watch() => match never {},
        }
    }

    async fn follow_output(
        mut self,
        mut parser: Box<dyn StreamParser>,
        ending: &FirstStop,
    ) -> Result<RunEnd> {
        let mut out = Spools::of(&self.run.folder);
        let mut talk = self.talk().await?;
        let mut control = Control::default();
        let mut idle = Idle::new(self.idle, &self.run.folder);
        let mut skipped = 0;
        let mut cancel = self.cancel.clone();
        let mut wake = self.wake.subscribe();
        let mut poll_cancel = every(POLL_CANCEL);
        let mut poll_answers = every(POLL_ANSWERS);
        let mut poll_hook = every(POLL_HOOK);
        let end = loop {
            // Check for the end first, then read the output: nothing can be printed in between.
            let end = self.ended()?;
            let came = self
                .read_on(&mut out, parser.as_mut(), &mut talk, &mut idle)
                .await?;
            skipped += came.skipped;
            control.wrong |= came.wrong;
            control.too_dear |= came.too_dear;
            if came.heard {
                idle.heard();
            }
            if parser.patience().is_some_and(|most| idle.silence() > most) {
                parser.give_up();
                control.wrong = true;
            }
            if let Some(end) = end {
                break end;
            }
            control.connect(&mut self.child, &self.run.folder).await;
            control.renew_lease(self.run.claimed).await;
            talk.say(&mut control.shim).await;
            control.too_long |= idle.is_exceeded(talk.waits());
            control.enforce(&self.run.folder, ending).await;
            let (waits, cancelled) = (talk.waits(), control.cancelled);
            let maybe_answered = tokio::select! {
                () = control.news() => false,
                () = schedule::cancelled(&mut cancel), if !cancelled => {
                    control.cancelled = true;
                    false
                }
                _ = poll_cancel.tick(), if !cancelled => {
                    control.cancelled = self.hub.cancel_asked(self.run.claimed.turn.id).await?;
                    false
                }
                Ok(()) = wake.changed(), if waits => true,
                _ = poll_answers.tick(), if waits => true,
                _ = poll_hook.tick(), if self.run.plan.asks && parser.has_aside() => false,
            };
            if maybe_answered {
                let (turn, n) = (self.run.claimed.turn.id, self.run.attempt.n);
                talk.look(self.hub, turn, n, parser.as_mut()).await?;
            }
        };
        let end = ending.explain(end);
        fault::point("after_end");
        let torn = self.drain(&mut out, parser.as_mut(), &mut talk).await?;
        if skipped > 0 {
            let note =
                EventBody::warning(format!("{skipped} bytes of over-long lines were skipped"));
            self.commit(&Batch::of(vec![note]), out.printed.offset())
                .await?;
        }
        self.over(end, control.cancelled, torn, out, parser, &talk)
    }

    /// Commits the output so far, delivers pending answers, and returns without following the run.
    pub(crate) async fn poll_once(mut self) -> Result<()> {
        let mut parser = parser_of(self.run);
        let mut out = Spools::of(&self.run.folder);
        let mut talk = self.talk().await?;
        let mut idle = Idle::new(None, &self.run.folder);
        self.read_on(&mut out, parser.as_mut(), &mut talk, &mut idle)
            .await?;
        let mut control = Control::default();
        control.connect(&mut self.child, &self.run.folder).await;
        talk.say(&mut control.shim).await;
        Ok(())
    }

    async fn talk(&self) -> Result<Talk> {
        Talk::of(
            self.hub,
            self.run.claimed.turn.id,
            self.run.attempt.n,
            self.run.plan.asks,
            &self.run.folder,
        )
        .await
    }

    /// Reads the lines that are available and commits the new ones.
    async fn read_on(
        &mut self,
        out: &mut Spools,
        parser: &mut dyn StreamParser,
        talk: &mut Talk,
        idle: &mut Idle,
    ) -> Result<Came> {
        let mut batch = Batch::default();
        let mut came = Came::default();
        let Spools {
            printed,
            stderr,
            aside,
        } = out;
        while let Some(line) = printed
            .next_line()
            .map_err(Error::io("reading the spool"))?
        {
            came.skipped += line.skipped;
            came.heard = true;
            let said = parser.line(&line.bytes);
            idle.see(&said);
            self.cost.see(&said);
            came.wrong |= self.see_offer(&said);
            came.too_dear |= self.cost.is_exceeded(parser.spent());
            let fresh = line.end > self.committed;
            if fresh {
                self.log(&said);
                batch.events.extend(said);
            }
            talk.hear(self.hub, parser, fresh, &mut batch)?;
        }
        while parser.hears_stderr()
            && let Some(line) = stderr.next_line().map_err(Error::io("reading the spool"))?
        {
            came.heard = true;
            parser.stderr(&line.bytes);
        }
        while let Some(line) = aside.next_line().map_err(Error::io("reading the spool"))? {
            parser.aside(&line.bytes);
            talk.hear(self.hub, parser, true, &mut batch)?;
        }
        came.wrong |= batch.events.iter().any(|event| self.is_elsewhere(event));
        came.wrong |= parser.stop().is_some();
        let offset = out.printed.offset();
        if offset > self.committed || !batch.asked.is_empty() {
            self.commit(&batch, offset.max(self.committed)).await?;
            fault::point("mid_stream");
        }
        Ok(came)
    }

    fn log(&self, said: &[EventBody]) {
        for event in said {
            if let EventBody::TurnStarted { session_id, .. } = event {
                let (turn, session) = (self.run.claimed.turn.id, session_id.as_deref());
                tracing::info!(%turn, session, "Captured session ID");
            }
        }
    }

    /// Builds the result of the run from its end and its last output.
    fn over(
        &self,
        end: Ended,
        cancelled: bool,
        torn: bool,
        mut out: Spools,
        mut parser: Box<dyn StreamParser>,
        talk: &Talk,
    ) -> Result<RunEnd> {
        read_stderr(&mut out.stderr, parser.as_mut())?;
        let (end, cause) = match end {
            Ended::Seen(end) => {
                let end = warm::end_of_cli(&self.run.folder, end);
                let cancelled = cancelled || self.run.claimed.turn.cancel;
                let cause = cost_limit::cause(&self.run.folder, &end, cancelled)
                    .unwrap_or_else(|| idle::cause(&self.run.folder, &end, cancelled));
                (end, cause)
            }
            Ended::Unseen => (ShimEnd::default(), EndCause::Unseen),
        };
        if let Some(error) = &end.error {
            parser.stderr(error.as_bytes());
        }
        let ended = matches!(cause, EndCause::ByItself | EndCause::Unseen);
        let deferred = parser.deferred().filter(|call| talk.asked(call));
        let deferred = deferred.filter(|_| ended && !torn && matches!(end.code, Some(0) | None));
        let mut ran = parser.finish(&ProcessEnd {
            code: end.code,
            signal: end.signal,
            cause,
            torn,
            asked_session: self.run.plan.asked_session(),
        });
        let other = self.other_outcome(&ran.outcome, &end, cause, talk.waits());
        if let Some(outcome) = self.offer_failure().or(other) {
            ran.outcome = outcome;
        }
        let leftovers = end
            .leftovers
            .iter()
            .map(|l| format!("{} {}", l.pid, l.command))
            .collect();
        Ok(RunEnd {
            ran,
            cause,
            leftovers,
            kept: end.killed == 0,
            silent: warm::printed_nothing(&self.run.folder),
            deferred,
        })
    }

    /// Returns the outcome of a run whose CLI reports only an interruption: the cause is the idle
    /// limit, the lease, or the missing answer.
    fn other_outcome(
        &self,
        reported: &Outcome,
        end: &ShimEnd,
        cause: EndCause,
        waits: bool,
    ) -> Option<Outcome> {
        let lost = |message: &str| {
            let message = message.into();
            let class = Class::Lost;
            Some(Outcome::Lost(Failure { class, message }))
        };
        let ended = matches!(cause, EndCause::ByItself | EndCause::Unseen);
        let succeeded = matches!(reported, Outcome::Succeeded);
        let idle = (cause == EndCause::IdleLimit && !succeeded).then(|| idle::outcome(self.idle));
        let failed = matches!(idle.as_ref().unwrap_or(reported), Outcome::Failed(_));
        if end.why == StopReason::LeaseRanOut && !succeeded {
            lost("nobody was left to follow it, and the store did not hear of it in time")
        } else if failed && waits && ended {
            lost("the agent's process ended while it waited for an answer")
        } else {
            idle
        }
    }

    /// Returns true if the CLI was to resume a session and reports another one, or none.
    fn is_elsewhere(&self, event: &EventBody) -> bool {
        let EventBody::TurnStarted { session_id, .. } = event else {
            return false;
        };
        let plan = &self.run.plan;
        let resumed = plan.continues() || plan.so_far.is_some();
        let asked = plan.asked_session().filter(|_| resumed);
        asked.is_some_and(|asked| session_id.as_deref() != Some(asked.as_str()))
    }

    /// Commits a batch with the offset up to which the spool was read.
    async fn commit(&mut self, batch: &Batch, offset: u64) -> Result<()> {
        let (events, asked) = (&batch.events, &batch.asked);
        self.hub
            .append(self.run.claimed, self.run.attempt.n, events, asked, offset)
            .await?;
        self.committed = offset;
        self.wake.send_modify(|n| *n += 1);
        Ok(())
    }

    /// Commits the lines that were printed between the last read and the end. Returns true if the
    /// last line is incomplete.
    async fn drain(
        &mut self,
        out: &mut Spools,
        parser: &mut dyn StreamParser,
        talk: &mut Talk,
    ) -> Result<bool> {
        let mut batch = Batch::default();
        let mut torn = false;
        let out = &mut out.printed;
        while let Some(piece) = out.finish().map_err(Error::io("reading the spool"))? {
            match piece {
                Piece::Line(line) => {
                    let said = parser.line(&line.bytes);
                    let fresh = line.end > self.committed;
                    if fresh {
                        batch.events.extend(said);
                    }
                    talk.hear(self.hub, parser, fresh, &mut batch)?;
                }
                Piece::Torn(rest) => {
                    torn = true;
                    batch.events.extend(parser.rest(&rest.bytes));
                    batch.events.push(EventBody::warning(format!(
                        "the last line is cut off after {} bytes",
                        rest.bytes.len()
                    )));
                }
            }
        }
        if !batch.events.is_empty() || !batch.asked.is_empty() {
            self.commit(&batch, out.offset()).await?;
        }
        Ok(torn)
    }

    /// Returns the end of the run. Returns None while it runs, under its shim or, if the shim was
    /// killed, without one.
    fn ended(&mut self) -> Result<Option<Ended>> {
        let seen =
            || ShimEnd::load(&self.run.folder).map_err(Error::io("reading how the run ended"));
        if let Some(end) = seen()? {
            return Ok(Some(Ended::Seen(end)));
        }
        let gone = match &mut self.child {
            Some(child) => child
                .try_wait()
                .map_err(Error::io("looking after the shim"))?
                .is_some(),
            None => match begun(&self.run.folder).map_err(Error::io("looking after the shim"))? {
                Begun::By(holder) => !holder.is_alive(),
                // A shim may have claimed the run without its name being readable.
                Begun::Unclear => {
                    let turn = self.run.claimed.turn.id.to_string();
                    stray_processes::marked(&turn).is_empty()
                }
                Begun::No | Begun::Void => true,
            },
        };
        if !gone {
            return Ok(None);
        }
        // The shim may have written the end just before it exited.
        if let Some(end) = seen()? {
            return Ok(Some(Ended::Seen(end)));
        }
        let nothing_begun = self.child.is_some()
            && matches!(begun(&self.run.folder), Ok(Begun::No))
            && void(&self.run.folder).is_ok_and(|void| void);
        if nothing_begun {
            return Ok(Some(Ended::Seen(ShimEnd {
                why: StopReason::NotStarted,
                error: Some("the shim could not start".into()),
                ..ShimEnd::default()
            })));
        }
        Ok(stray_processes::live_cli(&self.run.folder)
            .is_none()
            .then_some(Ended::Unseen))
    }
}

/// Reads the rest of stderr.
fn read_stderr(err: &mut SpoolReader, parser: &mut dyn StreamParser) -> Result<()> {
    while let Some(piece) = err.finish().map_err(Error::io("reading the spool"))? {
        match piece {
            Piece::Line(line) => parser.stderr(&line.bytes),
            Piece::Torn(rest) => parser.stderr(&rest.bytes),
        }
    }
    Ok(())
}

/// Result of reading the available lines.
#[derive(Default)]
struct Came {
    skipped: u64,
    /// True if there was a line.
    heard: bool,
    /// True if the run must be stopped.
    wrong: bool,
    /// True if the run has reached its cost limit.
    too_dear: bool,
}

fn every(period: Duration) -> tokio::time::Interval {
    let mut interval = tokio::time::interval(period);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    interval
}

enum Ended {
    Seen(ShimEnd),
    Unseen,
}
