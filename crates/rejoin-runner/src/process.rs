//! The only module that starts processes.
//!
//! Shims and CLIs are started with `posix_spawn`, not `std::process::Command`, for one reason: it
//! can reset signals to their default. A rejoin that a script started with `&` has SIGINT ignored, and
//! so would every CLI below it, which could then never be interrupted.

mod background;
mod capture;
mod editor;
mod foreground;
mod pager;
pub(crate) mod tree;

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawnp};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::stat::Mode;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

pub use background::BackgroundProcess;
pub use capture::{Captured, capture};
pub use editor::run_editor;
pub use foreground::{ForegroundEnd, foreground};
pub use pager::Pager;

use crate::shim::{LATER, RunAssignment};

/// Path of the running executable, which works even after its file was replaced or deleted.
pub const SELF: &str = "/proc/self/exe";

/// Starts `PROGRAM shim FOLDER` with exactly the environment `env` and nothing else of ours.
///
/// The shim makes itself independent: it continues when the caller dies.
pub fn spawn_shim(
    program: &Path,
    folder: &Path,
    env: impl IntoIterator<Item = (OsString, OsString)>,
) -> io::Result<ShimChild> {
    reap_dropped();
    let program = c_string(program.as_os_str())?;
    let argv = [
        c"rejoin".to_owned(),
        c"shim".to_owned(),
        c_string(folder.as_os_str())?,
    ];
    let pid = launch(
        &program,
        &argv,
        &environment(env)?,
        [None; 3],
        Group::Inherited,
    )?;
    Ok(ShimChild::new(pid, None))
}

/// Starts a shim that waits for its run ([`ShimChild::tell`]). If it is dropped before that, or
/// this process dies, the shim exits without having done anything.
pub fn spawn_waiting_shim(
    program: &Path,
    env: impl IntoIterator<Item = (OsString, OsString)>,
) -> io::Result<ShimChild> {
    reap_dropped();
    let (ours, theirs) = UnixStream::pair()?;
    let argv = [c"rejoin", c"shim", &c_string(OsStr::new(LATER))?].map(CStr::to_owned);
    let pid = launch(
        &c_string(program.as_os_str())?,
        &argv,
        &environment(env)?,
        [Some(theirs.as_raw_fd()), None, None],
        Group::Inherited,
    )?;
    Ok(ShimChild::new(pid, Some(ours)))
}

/// Starts this program again with other arguments and our environment. Its input and output are
/// `/dev/null`; it continues when we exit.
pub fn spawn_self(args: &[&str]) -> io::Result<()> {
    let program = c_string(OsStr::new(SELF))?;
    let argv = std::iter::once("rejoin").chain(args.iter().copied());
    let argv: Vec<CString> = argv
        .map(|a| c_string(OsStr::new(a)))
        .collect::<io::Result<_>>()?;
    let env = environment(std::env::vars_os())?;
    let pid = launch(&program, &argv, &env, [None; 3], Group::Inherited)?;
    drop(ShimChild::new(pid, None));
    Ok(())
}

/// Starts a program of the desktop that opens an address, and does not wait for it. Fails if there is no
/// such program.
pub fn open_address(program: &str, address: &str) -> io::Result<()> {
    let program = c_string(OsStr::new(program))?;
    let argv = [program.clone(), c_string(OsStr::new(address))?];
    let env = environment(std::env::vars_os())?;
    let pid = launch(&program, &argv, &env, [None; 3], Group::Inherited)?;
    drop(ShimChild::new(pid, None));
    Ok(())
}

/// Detaches from the terminal, so that this process continues when the terminal is closed.
pub fn leave_terminal() {
    // Fails only for the leader of a process group, which has no terminal to lose.
    nix::unistd::setsid().ok();
}

/// Shim that this process started and has to reap, without ever waiting for it.
#[derive(Debug)]
pub struct ShimChild {
    pid: Pid,
    ended: Option<ShimExit>,
    /// Connection to a shim that was started early: carries first its run, then its notifications.
    line: Option<UnixStream>,
}

/// End of a shim process; the turn's own end is in `end.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShimExit {
    /// Exit code. 0: `end.json` is written. 75: the folder was begun or voided before. Any other:
    /// it failed.
    Code(i32),
    Killed,
}

impl ShimChild {
    fn new(pid: Pid, line: Option<UnixStream>) -> Self {
        Self {
            pid,
            ended: None,
            line,
        }
    }

    /// Sends a shim that was started early its run.
    pub fn tell(mut self, folder: &Path, env: &[(String, String)]) -> io::Result<Self> {
        let told = RunAssignment {
            folder: folder.to_owned(),
            env: env.to_vec(),
        };
        let line = self.line.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        told.say(line)?;
        Ok(self)
    }

    /// Returns the connection to a shim that was started early, once.
    pub(crate) fn line(&mut self) -> Option<UnixStream> {
        self.line.take()
    }

    pub fn pid(&self) -> i32 {
        self.pid.as_raw()
    }

    /// Reaps the shim if it has ended; `None` while it runs. Never blocks.
    pub fn try_wait(&mut self) -> io::Result<Option<ShimExit>> {
        if self.ended.is_none() {
            self.ended = match waitpid(self.pid, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(_, code)) => Some(ShimExit::Code(code)),
                Ok(WaitStatus::Signaled(..)) | Err(Errno::EINVAL | Errno::ECHILD) => {
                    Some(ShimExit::Killed)
                }
                Ok(_) | Err(Errno::EINTR) => None,
                Err(error) => return Err(error.into()),
            };
        }
        Ok(self.ended)
    }
}

/// Shims that outlived their `ShimChild`, reaped when the next shim is started.
static DROPPED: Mutex<Vec<ShimChild>> = Mutex::new(Vec::new());

impl Drop for ShimChild {
    fn drop(&mut self) {
        if let Ok(None) = self.try_wait()
            && let Ok(mut dropped) = DROPPED.lock()
        {
            dropped.push(Self::new(self.pid, None));
        }
    }
}

fn reap_dropped() {
    let Ok(mut dropped) = DROPPED.lock() else {
        return;
    };
    let mut waiting = std::mem::take(&mut *dropped);
    waiting.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    *dropped = waiting;
}

/// Process group of a new process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Inherited,
    Own,
}

/// Starts `program` (looked up in our PATH) with default signals and an empty signal mask.
///
/// `stdio` names descriptors of ours that become 0, 1 and 2; `None` is `/dev/null`.
pub(crate) fn launch(
    program: &CStr,
    argv: &[CString],
    env: &[CString],
    stdio: [Option<RawFd>; 3],
    group: Group,
) -> io::Result<Pid> {
    let mut files = PosixSpawnFileActions::init()?;
    for (number, source) in (0..).zip(stdio) {
        match source {
            Some(fd) => files.add_dup2(fd, number)?,
            None => files.add_open(number, c"/dev/null", OFlag::O_RDWR, Mode::empty())?,
        }
    }
    let mut attributes = PosixSpawnAttr::init()?;
    let mut flags =
        PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK;
    if group == Group::Own {
        flags |= PosixSpawnFlags::POSIX_SPAWN_SETPGROUP;
        attributes.set_pgroup(Pid::from_raw(0))?;
    }
    attributes.set_flags(flags)?;
    attributes.set_sigmask(&SigSet::empty())?;
    let settable = |it: &Signal| !matches!(it, Signal::SIGKILL | Signal::SIGSTOP);
    attributes.set_sigdefault(&Signal::iterator().filter(settable).collect())?;
    Ok(posix_spawnp(program, &files, &attributes, argv, env)?)
}

/// Creates the command of a program, for processes that are not agents.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn command(program: &OsStr) -> Command {
    Command::new(program)
}

/// Builds the `NAME=value` strings for `exec`.
pub(crate) fn environment(
    vars: impl IntoIterator<Item = (OsString, OsString)>,
) -> io::Result<Vec<CString>> {
    // The last value of a repeated name counts; most programs would take the first.
    let vars: BTreeMap<OsString, OsString> = vars.into_iter().collect();
    vars.into_iter()
        .map(|(mut name, value)| {
            name.push("=");
            name.push(value);
            c_string(&name)
        })
        .collect()
}

pub(crate) fn c_string(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
}
