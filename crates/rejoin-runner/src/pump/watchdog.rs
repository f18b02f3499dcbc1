//! Watches the shim of a run, and enforces the limits of the run if the shim cannot.
//!
//! A shim enforces its run's limits and ends its processes. An agent that may send signals to its
//! shim could stop or kill it, and a shim can be killed when memory runs out. A stopped shim is
//! continued; one that is stopped again and again, or that does not end its run when it has to, is
//! killed together with everything below it. The CLI of a killed shim may finish its turn, within the
//! limits.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::Ended;
use crate::holder::Holder;
use crate::process::tree::{self, Entry};
use crate::shim::{Begun, ShimEnd, Spec, StopReason, begun};
use crate::stray_processes;
use crate::worker_thread::on_worker;

/// Interval between two checks of the shim.
const LOOK: Duration = Duration::from_millis(500);
/// Time after which a shim that is found stopped, although it was continued, is killed.
const STOPPED: Duration = Duration::from_secs(10);
/// Time without a stop after which earlier stops of the shim are forgotten.
const CALM: Duration = Duration::from_mins(1);
/// Time in which a shim ends its run after the grace period of the CLI; after that it hangs.
const HANGS: Duration = Duration::from_secs(15);

/// Reason why a run has to end early, and the time at which that was decided.
#[derive(Default)]
pub(super) struct FirstStop(OnceLock<(StopReason, Instant)>);

impl FirstStop {
    /// Notes that the run has to end. Only the first reason counts.
    pub(super) fn begin(&self, why: StopReason) {
        self.0.get_or_init(|| (why, Instant::now()));
    }

    fn get(&self) -> Option<(StopReason, Instant)> {
        self.0.get().copied()
    }

    /// Returns the end of a run. An end that was not observed gets the reason that is known here.
    pub(super) fn explain(&self, end: Ended) -> Ended {
        match (end, self.get()) {
            (Ended::Unseen, Some((why, _))) => Ended::Seen(killed(why, 0)),
            (end, _) => end,
        }
    }
}

/// Watch over one run.
pub(super) struct Watchdog<'a> {
    folder: PathBuf,
    turn: String,
    limits: Limits,
    ending: &'a FirstStop,
    /// Times at which the shim was first and last found stopped.
    stopped: Option<(Instant, Instant)>,
}

#[derive(Clone, Copy)]
struct Limits {
    wall: Option<Duration>,
    grace: Duration,
    spool_bytes: u64,
}

/// Action that a run needs.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Leave,
    /// The shim is stopped and has to be continued.
    Continue(i32),
    /// The shim is gone, so the watch asks the CLI to end.
    Ask(i32, StopReason),
    /// Kill the run with everything that belongs to it.
    Kill(StopReason),
}

impl<'a> Watchdog<'a> {
    pub(super) fn new(folder: &Path, turn: String, ending: &'a FirstStop) -> Self {
        let spec = Spec::load(folder).unwrap_or_default();
        Self {
            folder: folder.to_owned(),
            turn,
            limits: Limits {
                wall: spec.wall_ms.map(Duration::from_millis),
                grace: Duration::from_millis(spec.grace_ms),
                spool_bytes: spec.spool_bytes,
            },
            ending,
            stopped: None,
        }
    }

    /// Watches until the future is dropped.
    pub(super) async fn watch(mut self) -> Infallible {
        let mut asked = None;
        loop {
            tokio::time::sleep(LOOK).await;
            let now = Instant::now();
            match self.judge(asked, now) {
                Verdict::Leave => {}
                Verdict::Continue(shim) => send(shim, Signal::SIGCONT),
                Verdict::Ask(cli, why) => {
                    asked = Some(now);
                    self.ending.begin(why);
                    send(cli, Signal::SIGINT);
                }
                Verdict::Kill(why) => {
                    self.ending.begin(why);
                    let (folder, turn) = (self.folder.clone(), self.turn.clone());
                    if let Err(error) = on_worker(move || end_run(&folder, &turn, why)).await {
                        tracing::warn!(turn = %self.turn, %error, "A run could not be ended");
                    }
                }
            }
        }
    }

    /// Judges the run by its processes. `asked` is the time at which this watch asked the CLI to
    /// end.
    fn judge(&mut self, asked: Option<Instant>, now: Instant) -> Verdict {
        let Ok(Begun::By(shim)) = begun(&self.folder) else {
            return Verdict::Leave;
        };
        let ending = self.ending.get();
        let waited = |since: Instant| now.saturating_duration_since(since);
        if let Some(shim) = alive(&shim) {
            // A shim whose CLI has ended may wait for free disk space.
            let hangs = ending.filter(|(_, since)| waited(*since) > self.limits.grace + HANGS);
            let hangs = hangs.filter(|_| stray_processes::live_cli(&self.folder).is_some());
            let why = ending.map_or(StopReason::Exited, |(why, _)| why);
            if hangs.is_some() || self.is_held_down(&shim, now) {
                return Verdict::Kill(why);
            }
            return if shim.stopped {
                Verdict::Continue(shim.pid)
            } else {
                Verdict::Leave
            };
        }
        let Some(cli) = stray_processes::live_cli(&self.folder) else {
            return Verdict::Leave;
        };
        let why = ending.map(|(why, _)| why).or_else(|| self.exceeded(&cli));
        match (why, asked) {
            (Some(why), None) => Verdict::Ask(cli.pid, why),
            (Some(why), Some(since)) if waited(since) > self.limits.grace => Verdict::Kill(why),
            (None, _) | (Some(_), Some(_)) => Verdict::Leave,
        }
    }

    /// Returns true if the shim is still found stopped although it was continued.
    fn is_held_down(&mut self, shim: &Entry, now: Instant) -> bool {
        let calm = |last: Instant| now.saturating_duration_since(last) > CALM;
        self.stopped.take_if(|(_, last)| calm(*last));
        if !shim.stopped {
            return false;
        }
        let (first, last) = self.stopped.get_or_insert((now, now));
        *last = now;
        now.saturating_duration_since(*first) > STOPPED
    }

    /// Returns the limit that the CLI of a dead shim has exceeded.
    fn exceeded(&self, cli: &Holder) -> Option<StopReason> {
        let age = tree::read(cli.pid).map(|entry| entry.age());
        let late = self
            .limits
            .wall
            .is_some_and(|wall| age.is_some_and(|age| age > wall));
        let size = |name: &str| fs_err::metadata(self.folder.join(name)).map_or(0, |it| it.len());
        if late {
            Some(StopReason::Wall)
        } else if size("out") + size("err") > self.limits.spool_bytes {
            Some(StopReason::SpoolFull)
        } else {
            None
        }
    }
}

/// Sends a signal. Errors are ignored, because a process that is gone needs none.
fn send(pid: i32, signal: Signal) {
    kill(Pid::from_raw(pid), signal).ok();
}

/// Returns the process if it is still the same one.
fn alive(holder: &Holder) -> Option<Entry> {
    tree::read(holder.pid).filter(|_| holder.is_alive())
}

/// Kills every process of the turn, its shim included, and writes `end.json` in place of the shim.
fn end_run(folder: &Path, turn: &str, why: StopReason) -> io::Result<()> {
    let count = stray_processes::end_marked(turn)?;
    if ShimEnd::load(folder)?.is_none() {
        killed(why, count).save(folder)?;
    }
    Ok(())
}

fn killed(why: StopReason, count: usize) -> ShimEnd {
    ShimEnd {
        signal: Some(Signal::SIGKILL as i32),
        why,
        killed: count,
        ..ShimEnd::default()
    }
}
