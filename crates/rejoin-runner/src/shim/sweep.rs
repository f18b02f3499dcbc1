//! Lists and ends the processes that the CLI left running.
//!
//! The shim is the subreaper, so every process of the turn is below it, however it was detached, and
//! becomes a child of the shim once its parent is gone. Children are killed and reaped until the
//! kernel reports that there is none: a list of processes misses those that start while it is read.

use std::collections::HashSet;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

use super::reap::reap;
use super::spec::{Leftover, ShimEnd};
use crate::process::tree::{self, Entry};

/// Treatment of processes that still run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    Kill,
    Keep,
}

/// Time for processes to end by themselves after the CLI has ended.
const GRACE: Duration = Duration::from_millis(100);
/// Time after which processes that survive SIGKILL (stuck in the kernel) are given up.
const GIVE_UP: Duration = Duration::from_secs(10);
/// Longest fight against processes that keep starting others.
const LONGEST: Duration = Duration::from_mins(5);
const STEP: Duration = Duration::from_millis(5);

/// Ends the processes, or only lists them, and fills in `leftovers`, `killed`, and `error` if a
/// process could not be ended.
pub(super) fn sweep(signals: &SignalFd, policy: Policy, end: &mut ShimEnd) {
    let begin = Instant::now();
    let left = loop {
        let left = living();
        if left.is_empty() || begin.elapsed() >= GRACE {
            break left;
        }
        pause(signals);
    };
    end.leftovers = left
        .iter()
        .map(|entry| Leftover {
            pid: entry.pid,
            command: tree::command(entry.pid),
        })
        .collect();
    if policy == Policy::Keep {
        return;
    }
    let (killed, error) = kill_all(signals);
    end.killed = killed;
    if let Some(error) = error {
        end.error.get_or_insert(error);
    }
}

/// Kills children until none is left. Returns the number of killed processes, and an error if some
/// could not be ended.
fn kill_all(signals: &SignalFd) -> (usize, Option<String>) {
    let begin = Instant::now();
    let mut newest = begin;
    let mut killed: HashSet<(i32, u64)> = HashSet::new();
    loop {
        reap(0);
        if is_childless() {
            return (killed.len(), None);
        }
        // Killed at once: a process that lives for a millisecond has started its successor otherwise.
        let mut any_new = false;
        for pid in children() {
            kill(Pid::from_raw(pid), Signal::SIGKILL).ok();
            // Nobody else reaps it, so its entry is still there.
            let entry = tree::read(pid);
            any_new |= entry.is_some_and(|entry| killed.insert((pid, entry.start)));
        }
        if any_new {
            newest = Instant::now();
        } else {
            pause(signals);
        }
        if newest.elapsed() >= GIVE_UP || begin.elapsed() >= LONGEST {
            let error = format!("{} processes do not end after SIGKILL", living().len());
            return (killed.len(), Some(error));
        }
    }
}

/// Returns the pids of the shim's children, or of all descendants where the kernel has no list.
fn children() -> Vec<i32> {
    let listed = tree::children(nix::unistd::getpid().as_raw());
    listed.unwrap_or_else(|| tree::mine().into_iter().map(|entry| entry.pid).collect())
}

/// Returns true if nothing is left: all orphans below the shim become its children.
fn is_childless() -> bool {
    waitpid(None, Some(WaitPidFlag::WNOHANG)) == Err(Errno::ECHILD)
}

fn living() -> Vec<Entry> {
    // The CLI was reaped before, so no child reaped here is the CLI.
    reap(0);
    if is_childless() {
        return Vec::new();
    }
    tree::mine()
}

/// Waits for a child to end, but not longer than one step.
fn pause(signals: &SignalFd) {
    let mut fds = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
    poll(
        &mut fds,
        PollTimeout::try_from(STEP).unwrap_or(PollTimeout::ZERO),
    )
    .ok();
    while let Ok(Some(_)) = signals.read_signal() {}
}
