//! Reaps children: the CLI, and the processes that became ours because their parents died.

use nix::errno::Errno;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

use crate::process::tree;

/// End of the CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChildEnd {
    Code(i32),
    Signal(i32),
    /// Gone without a readable status.
    Unseen,
}

/// Reaps all children that have ended. Returns the end of the CLI if it was among them.
pub(super) fn reap(cli: i32) -> Option<ChildEnd> {
    let mut ended = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) if pid.as_raw() == cli => {
                ended = Some(ChildEnd::Code(code));
            }
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid.as_raw() == cli => {
                ended = Some(ChildEnd::Signal(signal as i32));
            }
            Ok(WaitStatus::StillAlive) => return ended,
            Err(Errno::ECHILD) => return ended.or(Some(ChildEnd::Unseen)),
            // nix has no name for real-time signals: a child was reaped, but its pid is unknown.
            Err(Errno::EINVAL) if ended.is_none() && tree::read(cli).is_none() => {
                ended = Some(ChildEnd::Unseen);
            }
            Ok(_) | Err(Errno::EINTR | Errno::EINVAL) => {}
            Err(_) => return ended,
        }
    }
}
