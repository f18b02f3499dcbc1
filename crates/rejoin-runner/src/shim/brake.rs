//! Ends a running CLI step by step: ask, tell, kill.
//!
//! SIGINT goes to the CLI alone, so that it can end its tools and close its session properly.
//! SIGTERM and SIGKILL go to everything below the shim, once each per process and step: some CLIs
//! take a second signal for "quit at once".

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::spec::Why;
use crate::process::tree;

/// How far the end has come, and why it was begun.
#[derive(Debug)]
pub(super) struct Brake {
    cli: i32,
    grace: Duration,
    why: Option<Why>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Free,
    /// SIGINT sent.
    Asked {
        until: Instant,
    },
    /// SIGTERM sent to all.
    Told {
        until: Instant,
    },
    /// SIGKILL sent to all, to be repeated: what was forked meanwhile did not get it.
    Killing {
        again: Instant,
    },
}

const TOLD_AFTER_ASKING: Duration = Duration::from_secs(2);
const TOLD_AT_ONCE: Duration = Duration::from_secs(1);
const KILL_AGAIN: Duration = Duration::from_millis(100);

impl Brake {
    pub(super) fn new(cli: i32, grace: Duration) -> Self {
        Self {
            cli,
            grace,
            why: None,
            stage: Stage::Free,
        }
    }

    /// The first cause, if the CLI does not end by itself.
    pub(super) fn why(&self) -> Option<Why> {
        self.why
    }

    /// Asks the CLI to end; asking again changes nothing.
    pub(super) fn ask(&mut self, why: Why, now: Instant) {
        self.why.get_or_insert(why);
        if self.stage == Stage::Free {
            kill(Pid::from_raw(self.cli), Signal::SIGINT).ok();
            self.stage = Stage::Asked {
                until: now + self.grace,
            };
        }
    }

    /// Tells everything to end at once.
    pub(super) fn tell(&mut self, why: Why, now: Instant) {
        self.why.get_or_insert(why);
        match self.stage {
            Stage::Free | Stage::Asked { .. } => {
                signal_all(Signal::SIGTERM);
                self.stage = Stage::Told {
                    until: now + TOLD_AT_ONCE,
                };
            }
            Stage::Told { until } => {
                self.stage = Stage::Told {
                    until: until.min(now + TOLD_AT_ONCE),
                };
            }
            Stage::Killing { .. } => {}
        }
    }

    /// When `step` has something to do.
    pub(super) fn next(&self) -> Option<Instant> {
        match self.stage {
            Stage::Free => None,
            Stage::Asked { until } | Stage::Told { until } => Some(until),
            Stage::Killing { again } => Some(again),
        }
    }

    /// Goes one step further if it is time.
    pub(super) fn step(&mut self, now: Instant) {
        if self.next().is_none_or(|at| now < at) {
            return;
        }
        if let Stage::Asked { .. } = self.stage {
            signal_all(Signal::SIGTERM);
            self.stage = Stage::Told {
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

/// The whole group of the CLI is among the descendants: its orphans come to us, the subreaper.
fn signal_all(signal: Signal) {
    for entry in tree::mine() {
        kill(Pid::from_raw(entry.pid), signal).ok();
    }
}
