//! Ends a running CLI step by step: ask, tell, kill.
//!
//! SIGINT goes to the CLI alone, so that it can end its tools and close its session properly.
//! SIGTERM and SIGKILL go to everything below the shim. SIGINT and SIGTERM are sent once per process:
//! some CLIs take a second signal for "quit at once".

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::spec::StopReason;
use crate::process::tree;

/// Progress of the termination, and its cause.
#[derive(Debug)]
pub(super) struct Termination {
    cli: i32,
    grace: Duration,
    why: Option<StopReason>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Free,
    /// SIGINT was sent to the CLI.
    Asked {
        until: Instant,
    },
    /// SIGTERM was sent to all processes.
    RunAssignment {
        until: Instant,
    },
    /// SIGKILL was sent to all processes and is repeated, because processes that were forked
    /// meanwhile did not get it.
    Killing {
        again: Instant,
    },
}

const TOLD_AFTER_ASKING: Duration = Duration::from_secs(2);
const TOLD_AT_ONCE: Duration = Duration::from_secs(1);
const KILL_AGAIN: Duration = Duration::from_millis(100);

impl Termination {
    pub(super) fn new(cli: i32, grace: Duration) -> Self {
        Self {
            cli,
            grace,
            why: None,
            stage: Stage::Free,
        }
    }

    /// Returns the first cause, or None if nothing has asked the CLI to end.
    pub(super) fn why(&self) -> Option<StopReason> {
        self.why
    }

    /// Asks the CLI to end with SIGINT. Asking again changes nothing.
    pub(super) fn ask(&mut self, why: StopReason, now: Instant) {
        self.why.get_or_insert(why);
        if self.stage == Stage::Free {
            kill(Pid::from_raw(self.cli), Signal::SIGINT).ok();
            self.stage = Stage::Asked {
                until: now + self.grace,
            };
        }
    }

    /// Tells all processes to end at once, with SIGTERM.
    pub(super) fn tell(&mut self, why: StopReason, now: Instant) {
        self.why.get_or_insert(why);
        match self.stage {
            Stage::Free | Stage::Asked { .. } => {
                signal_all(Signal::SIGTERM);
                self.stage = Stage::RunAssignment {
                    until: now + TOLD_AT_ONCE,
                };
            }
            Stage::RunAssignment { until } => {
                self.stage = Stage::RunAssignment {
                    until: until.min(now + TOLD_AT_ONCE),
                };
            }
            Stage::Killing { .. } => {}
        }
    }

    /// Returns the time at which `step` has something to do.
    pub(super) fn next(&self) -> Option<Instant> {
        match self.stage {
            Stage::Free => None,
            Stage::Asked { until } | Stage::RunAssignment { until } => Some(until),
            Stage::Killing { again } => Some(again),
        }
    }

    /// Advances by one step if it is time.
    pub(super) fn step(&mut self, now: Instant) {
        if self.next().is_none_or(|at| now < at) {
            return;
        }
        if let Stage::Asked { .. } = self.stage {
            signal_all(Signal::SIGTERM);
            self.stage = Stage::RunAssignment {
                until: now + TOLD_AFTER_ASKING,
            };
        } else {
            signal_all(Signal::SIGKILL);
            self.stage = Stage::Killing {
                again: now + KILL_AGAIN,
            };
        }
    }
}

/// Sends a signal to all descendants. They include the whole process group of the CLI: its orphans
/// become children of the shim, which is the subreaper.
fn signal_all(signal: Signal) {
    for entry in tree::mine() {
        kill(Pid::from_raw(entry.pid), signal).ok();
    }
}
