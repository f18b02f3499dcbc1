//! Follows one run: what the CLI prints becomes events, committed together with how far the spool
//! was read; what it asks is answered; when it ends, everything is there.

mod idle;
mod news;
mod reading;
mod talk;
mod watchdog;

use std::path::Path;
use std::time::Duration;

use rejoin_agents::{End as AgentEnd, EndCause, Ran, StreamParser};
use rejoin_core::{Class, EventBody, Failure, Outcome, SessionId};
use rejoin_hub::{Claimed, HubLink, fault};
use tokio::sync::watch;

use crate::error::{Error, Result};
use crate::holder::Holder;
use crate::leftovers;
use crate::process::ShimChild;
use crate::recover::told_to_stop;
use crate::shim::{Begun, End, KNOWS_LEASES, Order, Why, begun, void};
use crate::shim_link::ShimLink;
use crate::spool::{Piece, SpoolReader};
use crate::warm;
use idle::Idle;
pub(crate) use idle::limit as idle_limit;
use news::{SOON, news, tell};
use reading::Spools;
pub use reading::{is_led, reader_of};
use talk::{Batch, Talk};
use watchdog::{Ending, Watchdog};

/// How often somebody else's wish to cancel is looked for.
const LOOK_FOR_CANCEL: Duration = Duration::from_millis(500);

/// How often answers of other processes are looked for, while it waits.
const LOOK_FOR_ANSWERS: Duration = Duration::from_millis(200);

/// How often what a hook tells is looked for, where there may be one.
const LOOK_ASIDE: Duration = Duration::from_millis(100);

/// A run that is over.
pub struct Pumped {
    pub ran: Ran,
    pub cause: EndCause,
    pub leftovers: Vec<String>,
    /// They were let live.
    pub kept: bool,
    /// The call that it has put off, and that a person was asked about.
    pub deferred: Option<String>,
}

pub struct Pump<'a, L> {
    pub link: &'a L,
    pub claimed: &'a Claimed,
    pub n: i64,
    pub folder: &'a Path,
    /// Bytes of the spool whose events are committed already.
    pub committed: u64,
    /// There is somebody who could answer what it asks.
    pub asks: bool,
    /// The session the CLI was told to use.
    pub asked: Option<SessionId>,
    /// It was to go on with that one.
    pub resumed: bool,
    pub child: Option<ShimChild>,
    pub cancel: watch::Receiver<bool>,
    /// How long the CLI may print nothing; none: for ever.
    pub idle: Option<Duration>,
    pub wake: &'a watch::Sender<u64>,
}

impl<L: HubLink> Pump<'_, L> {
    /// Follows the run to its end. The spool is always parsed from its beginning, to know what the
    /// parser must know; only what lies after `committed` becomes events again.
    pub async fn follow(self, parser: Box<dyn StreamParser>) -> Result<Pumped> {
        let ending = Ending::default();
        let watchdog = Watchdog::new(self.folder, self.claimed.turn.id.to_string(), &ending);
        tokio::select! {
            biased;
            done = self.follow_output(parser, &ending) => done,
            never = watchdog.watch() => match never {},
        }
    }

    async fn follow_output(
        mut self,
        mut parser: Box<dyn StreamParser>,
        ending: &Ending,
    ) -> Result<Pumped> {
        let mut out = Spools::of(self.folder);
        let mut talk = self.talk().await?;
        let mut shim: Option<ShimLink> = None;
        let (mut cancelled, mut told, mut skipped) = (false, false, 0);
        let (mut wrong, mut stopped) = (false, false);
        let (mut leased, mut idle) = (None, Idle::new(self.idle, self.folder));
        let mut too_long = false;
        let mut pause = SOON;
        let mut cancel = self.cancel.clone();
        let mut wake = self.wake.subscribe();
        let mut look = every(LOOK_FOR_CANCEL);
        let mut listen = every(LOOK_FOR_ANSWERS);
        let mut beside = every(LOOK_ASIDE);
        let end = loop {
            // First how it ended, then what it said: nothing can come in between.
            let end = self.ended()?;
            let came = self
                .read_on(&mut out, parser.as_mut(), &mut talk, &mut idle)
                .await?;
            skipped += came.skipped;
            wrong |= came.wrong;
            if came.heard {
                idle.heard();
            }
            if parser.patience().is_some_and(|most| idle.silence() > most) {
                parser.give_up();
                wrong = true;
            }
            if let Some(end) = end {
                break end;
            }
            if shim.is_none() {
                shim = self.reach().await;
            }
            let deadline = self.claimed.lease.deadline();
            let knows = |link: &ShimLink| link.hello().shim >= KNOWS_LEASES;
            if let Some(until_ms) = deadline.filter(|_| deadline != leased)
                && shim.as_ref().is_some_and(knows)
                && tell(&mut shim, Order::Lease { until_ms }).await
            {
                leased = deadline;
            }
            talk.say(&mut shim).await;
            too_long = too_long || idle.is_exceeded(talk.waits());
            if wrong {
                ending.begin(Why::Stopped);
            } else if cancelled || too_long {
                ending.begin(Why::Interrupted);
            }
            // It goes on with another session than it was told to, or for ever: every moment counts.
            if wrong && !stopped {
                stopped = match shim {
                    Some(_) => tell(&mut shim, Order::Stop).await,
                    None => self.interrupt_by_signal(),
                };
            }
            // Said until it was heard: the shim may not have listened yet.
            if (cancelled || too_long) && !told {
                told = match shim {
                    Some(_) => tell(&mut shim, Order::Interrupt).await,
                    None => self.interrupt_by_signal(),
                };
            }
            let waits = talk.waits();
            let maybe_answered = tokio::select! {
                () = news(&mut shim, &mut pause) => false,
                () = told_to_stop(&mut cancel), if !cancelled => {
                    cancelled = true;
                    false
                }
                _ = look.tick(), if !cancelled => {
                    cancelled = self.link.cancel_asked(self.claimed.turn.id).await?;
                    false
                }
                Ok(()) = wake.changed(), if waits => true,
                _ = listen.tick(), if waits => true,
                _ = beside.tick(), if self.asks && parser.has_aside() => false,
            };
            if maybe_answered {
                let turn = self.claimed.turn.id;
                talk.look(self.link, turn, self.n, parser.as_mut()).await?;
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
        self.over(end, cancelled, torn, out, parser, &talk)
    }

    /// Takes in what was printed so far and says what is to be said to it, and does not stay.
    pub async fn attend(mut self, mut parser: Box<dyn StreamParser>) -> Result<()> {
        let mut out = Spools::of(self.folder);
        let mut talk = self.talk().await?;
        let mut idle = Idle::new(None, self.folder);
        self.read_on(&mut out, parser.as_mut(), &mut talk, &mut idle)
            .await?;
        let mut shim = self.reach().await;
        talk.say(&mut shim).await;
        Ok(())
    }

    async fn talk(&self) -> Result<Talk> {
        Talk::of(
            self.link,
            self.claimed.turn.id,
            self.n,
            self.asks,
            self.folder,
        )
        .await
    }

    /// Reads the lines there are by now, and commits what is new in them.
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
            let fresh = line.end > self.committed;
            if fresh {
                self.log(&said);
                batch.events.extend(said);
            }
            talk.hear(self.link, parser, fresh, &mut batch)?;
        }
        while parser.hears_stderr()
            && let Some(line) = stderr.next_line().map_err(Error::io("reading the spool"))?
        {
            came.heard = true;
            parser.stderr(&line.bytes);
        }
        while let Some(line) = aside.next_line().map_err(Error::io("reading the spool"))? {
            parser.aside(&line.bytes);
            talk.hear(self.link, parser, true, &mut batch)?;
        }
        came.wrong = batch.events.iter().any(|event| self.is_elsewhere(event));
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
                let (turn, session) = (self.claimed.turn.id, session_id.as_deref());
                tracing::info!(%turn, session, "Captured session ID");
            }
        }
    }

    async fn reach(&mut self) -> Option<ShimLink> {
        let line = self.child.as_mut().and_then(ShimChild::line);
        let link = match line {
            Some(line) => ShimLink::adopt(line).await,
            None => ShimLink::connect(self.folder).await,
        };
        link.unwrap_or(None)
    }

    /// What it came to.
    fn over(
        &self,
        end: Ended,
        cancelled: bool,
        torn: bool,
        mut out: Spools,
        mut parser: Box<dyn StreamParser>,
        talk: &Talk,
    ) -> Result<Pumped> {
        read_stderr(&mut out.stderr, parser.as_mut())?;
        let (end, cause) = match end {
            Ended::Seen(end) => {
                let end = warm::seen(self.folder, end);
                let cancelled = cancelled || self.claimed.turn.cancel;
                let cause = idle::cause(self.folder, &end, cancelled);
                (end, cause)
            }
            Ended::Unseen => (End::default(), EndCause::Unseen),
        };
        if let Some(error) = &end.error {
            parser.stderr(error.as_bytes());
        }
        let ended = matches!(cause, EndCause::ByItself | EndCause::Unseen);
        let deferred = parser.deferred().filter(|call| talk.asked(call));
        let deferred = deferred.filter(|_| ended && !torn && matches!(end.code, Some(0) | None));
        let mut ran = parser.finish(&AgentEnd {
            code: end.code,
            signal: end.signal,
            cause,
            torn,
            asked_session: self.asked.clone(),
        });
        let lost = |message: &str| {
            let message = message.into();
            let class = Class::Lost;
            Outcome::Lost(Failure { class, message })
        };
        if cause == EndCause::IdleLimit && !matches!(ran.outcome, Outcome::Succeeded) {
            ran.outcome = idle::outcome(self.idle);
        }
        let failed = matches!(ran.outcome, Outcome::Failed(_));
        // The CLI's word for having been interrupted is not the cause.
        if end.why == Why::LeaseRanOut && !matches!(ran.outcome, Outcome::Succeeded) {
            ran.outcome =
                lost("nobody was left to follow it, and the store did not hear of it in time");
        } else if failed && talk.waits() && ended {
            ran.outcome = lost("the agent's process ended while it waited for an answer");
        }
        let leftovers = end
            .leftovers
            .iter()
            .map(|l| format!("{} {}", l.pid, l.command))
            .collect();
        Ok(Pumped {
            ran,
            cause,
            leftovers,
            kept: end.killed == 0,
            deferred,
        })
    }

    /// A CLI that starts afresh, or goes on somewhere else, has not done what it was told.
    fn is_elsewhere(&self, event: &EventBody) -> bool {
        let EventBody::TurnStarted { session_id, .. } = event else {
            return false;
        };
        let asked = self.asked.as_ref().filter(|_| self.resumed);
        asked.is_some_and(|asked| session_id.as_deref() != Some(asked.as_str()))
    }

    async fn commit(&mut self, batch: &Batch, offset: u64) -> Result<()> {
        let (events, asked) = (&batch.events, &batch.asked);
        self.link
            .append(self.claimed, self.n, events, asked, offset)
            .await?;
        self.committed = offset;
        self.wake.send_modify(|n| *n += 1);
        Ok(())
    }

    /// What came between the last look and the end. True if the last line has no end.
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
                    talk.hear(self.link, parser, fresh, &mut batch)?;
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

    /// None: it still runs, under its shim or, if that was killed, without.
    fn ended(&mut self) -> Result<Option<Ended>> {
        let seen = || End::load(self.folder).map_err(Error::io("reading how the run ended"));
        if let Some(end) = seen()? {
            return Ok(Some(Ended::Seen(end)));
        }
        let gone = match &mut self.child {
            Some(child) => child
                .try_wait()
                .map_err(Error::io("looking after the shim"))?
                .is_some(),
            None => match begun(self.folder).map_err(Error::io("looking after the shim"))? {
                Begun::By(holder) => !holder.is_alive(),
                // Whoever begins it may not have said yet who they are.
                Begun::Unclear => {
                    let turn = self.claimed.turn.id.to_string();
                    leftovers::marked(&turn).is_empty()
                }
                Begun::No | Begun::Void => true,
            },
        };
        if !gone {
            return Ok(None);
        }
        // It may have written the end just before it went.
        if let Some(end) = seen()? {
            return Ok(Some(Ended::Seen(end)));
        }
        let nothing_begun = self.child.is_some()
            && matches!(begun(self.folder), Ok(Begun::No))
            && void(self.folder).is_ok_and(|void| void);
        if nothing_begun {
            return Ok(Some(Ended::Seen(End {
                why: Why::NotStarted,
                error: Some("the shim could not start".into()),
                ..End::default()
            })));
        }
        Ok(leftovers::live_cli(self.folder)
            .is_none()
            .then_some(Ended::Unseen))
    }

    /// True if there was somebody to send it to.
    fn interrupt_by_signal(&self) -> bool {
        let shim = begun(self.folder).ok().and_then(|b| match b {
            Begun::By(holder) => Some(holder),
            Begun::No | Begun::Void | Begun::Unclear => None,
        });
        let target = shim
            .filter(Holder::is_alive)
            .or_else(|| leftovers::live_cli(self.folder));
        target.is_some_and(|holder| {
            let pid = nix::unistd::Pid::from_raw(holder.pid);
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).is_ok()
        })
    }
}

/// What of it was not read yet.
fn read_stderr(err: &mut SpoolReader, parser: &mut dyn StreamParser) -> Result<()> {
    while let Some(piece) = err.finish().map_err(Error::io("reading the spool"))? {
        match piece {
            Piece::Line(line) => parser.stderr(&line.bytes),
            Piece::Torn(rest) => parser.stderr(&rest.bytes),
        }
    }
    Ok(())
}

/// What came with the last lines.
#[derive(Default)]
struct Came {
    skipped: u64,
    /// There were any.
    heard: bool,
    /// It must not go on.
    wrong: bool,
}

fn every(period: Duration) -> tokio::time::Interval {
    let mut interval = tokio::time::interval(period);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    interval
}

enum Ended {
    Seen(End),
    Unseen,
}
