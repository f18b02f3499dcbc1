//! Program in the foreground of our terminal: it has the terminal to itself until it ends, and we
//! only wait.

use std::ffi::{CString, OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill, raise};
use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tokio::signal::unix::{SignalKind, signal};

use super::{Group, c_string, environment, launch};
use crate::wall::Wall;

/// Interval between checks without a signal.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Sequence that resets modes which a killed program may have left on: alternate screen, mouse,
/// focus, paste and keyboard modes, colours, a hidden cursor.
const AS_IT_WAS: &str = "\x1b[<u\x1b[>4m\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1006l\x1b[?2004l\x1b[?2026l\x1b[?1049l\x1b[?1l\x1b>\x1b[0m\x1b[?25h\r\n\x1b[J";

/// End of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForegroundEnd {
    Code(i32),
    Killed(i32),
}

/// Runs `program` in `folder` with exactly the environment `env`, and waits for its end.
///
/// Interrupt and quit keys are for the program, and we ignore them. SIGTERM and SIGHUP are passed on
/// and end the program, and we continue with the remaining work.
pub async fn foreground(
    program: &Path,
    args: &[String],
    env: impl IntoIterator<Item = (OsString, OsString)>,
    folder: &Path,
    wall: Option<&Wall>,
) -> io::Result<ForegroundEnd> {
    let program = c_string(program.as_os_str())?;
    let args = args.iter().map(|arg| c_string(OsStr::new(arg)));
    let argv: Vec<CString> = std::iter::once(Ok(program.clone()))
        .chain(args)
        .collect::<io::Result<_>>()?;
    let env = environment(env)?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut quit = signal(SignalKind::quit())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut child = signal(SignalKind::child())?;
    let modes = Modes::now();
    let pid = started_in(folder, || {
        let stdio = [Some(0), Some(1), Some(2)];
        let start = || launch(&program, &argv, &env, stdio, Group::Inherited);
        match wall {
            Some(wall) => wall.behind(start),
            None => start(),
        }
    })?;
    let ended = loop {
        match waitpid(pid, Some(WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED))? {
            WaitStatus::Exited(_, code) => break ForegroundEnd::Code(code),
            WaitStatus::Signaled(_, signal, _) => break ForegroundEnd::Killed(signal as i32),
            WaitStatus::Stopped(..) => stop_along(pid)?,
            WaitStatus::PtraceEvent(..)
            | WaitStatus::PtraceSyscall(_)
            | WaitStatus::Continued(_)
            | WaitStatus::StillAlive => {}
        }
        tokio::select! {
            _ = child.recv() => {}
            _ = interrupt.recv() => {}
            _ = quit.recv() => {}
            _ = terminate.recv() => drop(kill(pid, Signal::SIGTERM)),
            _ = hang_up.recv() => drop(kill(pid, Signal::SIGHUP)),
            () = tokio::time::sleep(LOOK_AGAIN) => {}
        }
    };
    modes.put_back(ended);
    Ok(ended)
}

/// Starts a process in another working folder: it inherits ours, which is changed for that moment.
fn started_in<T>(folder: &Path, start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let here = std::env::current_dir();
    std::env::set_current_dir(folder)?;
    let started = start();
    if let Ok(here) = here {
        // The folder may be gone by now; nothing here needs it.
        drop(std::env::set_current_dir(here));
    }
    started
}

/// Stops this process too when the program was suspended by its own key, so that the shell gets the
/// terminal, and continues the program afterwards.
fn stop_along(pid: Pid) -> io::Result<()> {
    raise(Signal::SIGSTOP)?;
    kill(pid, Signal::SIGCONT)?;
    Ok(())
}

struct Modes(Option<Termios>);

impl Modes {
    fn now() -> Self {
        Self(tcgetattr(io::stdin()).ok())
    }

    fn put_back(&self, ended: ForegroundEnd) {
        if let ForegroundEnd::Killed(_) = ended {
            let mut out = io::stdout();
            drop(out.write_all(AS_IT_WAS.as_bytes()));
            drop(out.flush());
        }
        if let Some(modes) = &self.0 {
            let _gone = tcsetattr(io::stdin(), SetArg::TCSADRAIN, modes);
        }
    }
}
