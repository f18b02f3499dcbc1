//! Runs a short command to its end and returns its output: `--version` and the like.
//!
//! Nothing a probed binary does may block us: output is bounded, time is bounded, and a process
//! that it left behind with our pipe open is not waited for.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use super::tree;
use crate::wall::Wall;

/// Output and end of a command.
#[derive(Debug)]
pub struct Captured {
    pub status: ExitStatus,
    /// At most 8 MiB; the rest is discarded. The same holds for `stderr`.
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// True if the command did not end in time and was killed, with everything it had started.
    pub timed_out: bool,
}

const MOST: usize = 8 * 1024 * 1024;
/// Time to wait for output when the command has ended but another process holds its pipes.
const AFTER_END: Duration = Duration::from_millis(200);
const STEP: Duration = Duration::from_millis(10);

/// Runs `program` in `dir` with exactly the environment `env`, for at most `timeout`,
/// behind a wall if one is given.
///
/// Blocks; must be called off the async threads.
pub fn capture(
    program: &OsStr,
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    env: impl IntoIterator<Item = (OsString, OsString)>,
    dir: &Path,
    stdin: &[u8],
    timeout: Duration,
    wall: Option<&Wall>,
) -> io::Result<Captured> {
    let deadline = Instant::now() + timeout;
    let mut command = super::command(program);
    command
        .args(args)
        .env_clear()
        .envs(env)
        .current_dir(dir)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = match wall {
        Some(wall) => wall.behind(|| command.spawn())?,
        None => command.spawn()?,
    };
    let outcome = attend(&mut child, stdin, deadline);
    if outcome.is_err() {
        end(&mut child)?;
    }
    outcome
}

fn attend(child: &mut Child, mut stdin: &[u8], deadline: Instant) -> io::Result<Captured> {
    let mut input = child.stdin.take();
    let mut output = child.stdout.take();
    let mut errors = child.stderr.take();
    for fd in [
        input.as_ref().map(AsFd::as_fd),
        output.as_ref().map(AsFd::as_fd),
        errors.as_ref().map(AsFd::as_fd),
    ]
    .into_iter()
    .flatten()
    {
        let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
        fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    }
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut status: Option<(ExitStatus, Instant)> = None;
    loop {
        feed(&mut input, &mut stdin);
        drain(&mut output, &mut stdout);
        drain(&mut errors, &mut stderr);
        let now = Instant::now();
        if status.is_none() {
            status = child.try_wait()?.map(|status| (status, now));
        }
        match status {
            Some((status, at)) => {
                let complete = output.is_none() && errors.is_none();
                if complete || now >= at + AFTER_END || now >= deadline {
                    return Ok(Captured {
                        status,
                        stdout,
                        stderr,
                        timed_out: false,
                    });
                }
            }
            None if now >= deadline => {
                let status = end(child)?;
                drain(&mut output, &mut stdout);
                drain(&mut errors, &mut stderr);
                return Ok(Captured {
                    status,
                    stdout,
                    stderr,
                    timed_out: true,
                });
            }
            None => {}
        }
        let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(3);
        fds.extend(
            input
                .as_ref()
                .map(|it| PollFd::new(it.as_fd(), PollFlags::POLLOUT)),
        );
        fds.extend(
            output
                .as_ref()
                .map(|it| PollFd::new(it.as_fd(), PollFlags::POLLIN)),
        );
        fds.extend(
            errors
                .as_ref()
                .map(|it| PollFd::new(it.as_fd(), PollFlags::POLLIN)),
        );
        let step = STEP.min(deadline.saturating_duration_since(now));
        poll(
            &mut fds,
            PollTimeout::try_from(step).unwrap_or(PollTimeout::ZERO),
        )
        .ok();
    }
}

fn feed<W: Write>(pipe: &mut Option<W>, rest: &mut &[u8]) {
    while let Some(open) = pipe {
        if rest.is_empty() {
            *pipe = None;
            return;
        }
        match open.write(rest) {
            Ok(written) => *rest = rest.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => *pipe = None,
        }
    }
}

fn drain<R: Read>(pipe: &mut Option<R>, kept: &mut Vec<u8>) {
    let mut block = [0; 16 * 1024];
    // Bounded, so that an endless writer cannot keep us from checking the time.
    for _ in 0..64 {
        let Some(open) = pipe else { return };
        match open.read(&mut block) {
            Ok(0) => *pipe = None,
            Ok(count) => {
                let room = MOST.saturating_sub(kept.len()).min(count);
                kept.extend_from_slice(&block[..room]);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => *pipe = None,
        }
    }
}

/// Kills the command, its group, and all its descendants that are still recognisable as such.
fn end(child: &mut Child) -> io::Result<ExitStatus> {
    let pid = child.id().cast_signed();
    // Stopped first, so that the tree does not change while it is listed.
    killpg(Pid::from_raw(pid), Signal::SIGSTOP).ok();
    for entry in tree::below(&tree::all(), &[pid], &[]) {
        kill(Pid::from_raw(entry.pid), Signal::SIGKILL).ok();
    }
    killpg(Pid::from_raw(pid), Signal::SIGKILL).ok();
    child.kill().ok();
    child.wait()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn sh(script: &str, stdin: &[u8], timeout: Duration) -> Captured {
        let path = std::env::var_os("PATH").unwrap();
        let env = [("PATH".into(), path)];
        capture(
            "sh".as_ref(),
            ["-c", script],
            env,
            "/".as_ref(),
            stdin,
            timeout,
            None,
        )
        .unwrap()
    }

    #[test]
    fn keeps_output_and_status() {
        let big = vec![b'x'; 1_000_000];
        let it = sh("wc -c; pwd >&2; exit 3", &big, Duration::from_secs(10));
        assert_eq!(String::from_utf8_lossy(&it.stdout).trim(), "1000000");
        assert_eq!(
            (it.stderr.as_slice(), it.status.code()),
            (b"/\n".as_slice(), Some(3))
        );
        assert!(!it.timed_out);
    }

    #[test]
    fn output_is_bounded() {
        let it = sh("head -c 20000000 /dev/zero", b"", Duration::from_secs(20));
        assert_eq!((it.stdout.len(), it.status.code()), (MOST, Some(0)));
    }

    #[test]
    fn a_left_process_with_our_pipe_is_not_awaited() {
        let begin = Instant::now();
        let it = sh("sleep 63 & echo $!", b"", Duration::from_secs(20));
        assert!(begin.elapsed() < Duration::from_secs(10));
        let pid = String::from_utf8_lossy(&it.stdout).trim().parse().unwrap();
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    }

    #[test]
    fn too_slow_is_killed_with_its_children() {
        let it = sh(
            "setsid sleep 61 & echo $!; sleep 62",
            b"",
            Duration::from_millis(300),
        );
        assert!(it.timed_out);
        let pid: i32 = String::from_utf8_lossy(&it.stdout).trim().parse().unwrap();
        let deadline = Instant::now() + Duration::from_secs(5);
        while tree::read(pid).is_some_and(|entry| !entry.zombie) {
            assert!(Instant::now() < deadline);
            std::thread::yield_now();
        }
    }
}
