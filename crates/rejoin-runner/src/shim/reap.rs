//! Reaps children: the CLI, and everything that became ours because its parent died.

use nix::errno::Errno;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

use crate::process::tree;

/// How the CLI ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Code(i32),
    Signal(i32),
    /// Gone without a status that we could read.
    Unseen,
}

/// Reaps all that have ended; tells how the CLI ended if it was among them.
pub(super) fn reap(cli: i32) -> Option<Ended> {
    let mut ended = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) if pid.as_raw() == cli => {
                ended = Some(Ended::Code(code));
            }
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid.as_raw() == cli => {
                ended = Some(Ended::Signal(signal as i32));
            }
            Ok(WaitStatus::StillAlive) => return ended,
            Err(Errno::ECHILD) => return ended.or(Some(Ended::Unseen)),
            // A real-time signal has no name in nix: reaped, but by which pid is not told.
            Err(Errno::EINVAL) if ended.is_none() && tree::read(cli).is_none() => {
                ended = Some(Ended::Unseen);
            }
            Ok(_) | Err(Errno::EINTR | Errno::EINVAL) => {}
            Err(_) => return ended,
        }
    }
}
