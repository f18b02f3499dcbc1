//! Child process that runs as long as its handle exists.

use std::ffi::{CString, OsStr, OsString};
use std::io::{self, PipeReader};
use std::os::fd::AsRawFd;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::{Group, c_string, environment, launch};

/// Interval between two checks if the process has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Handle that kills the process on drop. Processes that it started are not killed.
#[derive(Debug)]
pub struct BackgroundProcess {
    pid: Pid,
    ended: bool,
}

impl BackgroundProcess {
    /// Starts the program in our working folder, with our stderr and an empty stdin. Its stdout is
    /// the returned pipe.
    pub fn start(
        program: &OsStr,
        args: &[String],
        env: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> io::Result<(Self, PipeReader)> {
        let program = c_string(program)?;
        let args = args.iter().map(|arg| c_string(OsStr::new(arg)));
        let argv: Vec<CString> = std::iter::once(Ok(program.clone()))
            .chain(args)
            .collect::<io::Result<_>>()?;
        let (ours, theirs) = io::pipe()?;
        let stdio = [None, Some(theirs.as_raw_fd()), Some(2)];
        let pid = launch(&program, &argv, &environment(env)?, stdio, Group::Inherited)?;
        Ok((Self { pid, ended: false }, ours))
    }

    /// Asks the process to end, and kills it if it has not ended after this time.
    pub async fn end(mut self, within: Duration) {
        kill(self.pid, Signal::SIGTERM).ok();
        let gone = async {
            while !self.has_ended() {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        drop(tokio::time::timeout(within, gone).await);
    }

    pub fn has_ended(&mut self) -> bool {
        self.ended = self.ended
            || !matches!(
                waitpid(self.pid, Some(WaitPidFlag::WNOHANG)),
                Ok(WaitStatus::StillAlive)
            );
        self.ended
    }
}

impl Drop for BackgroundProcess {
    fn drop(&mut self) {
        if !self.has_ended() {
            kill(self.pid, Signal::SIGKILL).ok();
            waitpid(self.pid, None).ok();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn shell(script: &str) -> (BackgroundProcess, PipeReader) {
        let args = ["-c", script].map(str::to_owned);
        BackgroundProcess::start(OsStr::new("/bin/sh"), &args, std::env::vars_os()).unwrap()
    }

    fn said(out: &mut PipeReader) -> String {
        let mut said = String::new();
        out.read_to_string(&mut said).unwrap();
        said
    }

    #[tokio::test]
    async fn it_ends_when_it_is_asked_to_or_is_killed() {
        let (mut process, mut out) = shell("echo hi; exit 3");
        assert_eq!(said(&mut out), "hi\n");
        while !process.has_ended() {
            tokio::task::yield_now().await;
        }
        // The pipe reaches its end only after the process has ended.
        let (process, mut out) = shell("trap 'echo bye; exit' TERM; echo up; while :; do :; done");
        out.read_exact(&mut [0; 3]).unwrap();
        process.end(Duration::from_mins(1)).await;
        assert_eq!(said(&mut out), "bye\n");
        let (process, mut out) = shell("trap '' TERM; echo up; while :; do :; done");
        out.read_exact(&mut [0; 3]).unwrap();
        process.end(Duration::ZERO).await;
        assert_eq!(said(&mut out), "");
        let (process, mut out) = shell("while :; do :; done");
        drop(process);
        assert_eq!(said(&mut out), "");
    }
}
