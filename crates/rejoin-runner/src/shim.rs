//! The shim: the small process under which one run of an agent CLI lives.
//!
//! It is independent of every rejoin process that can be restarted, so a turn continues when the
//! daemon or the terminal that began it dies. It starts the CLI with its output going into spool
//! files, holds its stdin, takes orders over a socket, enforces the limits, and ends the processes
//! that the CLI left running. It has no async runtime, and no threads except while it starts the CLI
//! behind a wall ([`crate::wall`]): hundreds of shims must cost next to nothing.
//!
//! The turn's folder holds `spec.json` (the run), `begin` (the claim on it), `cli.json` (the process),
//! `out` and `err` (spools), `s` (the socket) and at last `end.json`.

mod begin;
mod order;
mod prespawn;
mod reap;
mod release_pages;
mod scan;
mod socket;
mod spec;
mod spools;
mod stdin;
mod sweep;
mod terminal;
mod termination;
mod turn;

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{chdir, close, dup2_stderr, dup2_stdin, dup2_stdout, fchdir, pipe2, setsid};

use crate::holder::Holder;
use crate::process::{Group, c_string, environment, launch, tree};
use reap::ChildEnd;
use socket::{SOCKET, Socket};
use spools::Spools;
use stdin::Stdin;
use sweep::Policy;
use terminal::Terminal;
use turn::Turn;

pub use begin::{Begun, begun, void};
pub(crate) use order::{Grew, KNOWS_KEYS, KNOWS_LEASES, Reply};
pub use order::{Hello, Order};
pub(crate) use prespawn::{LATER, RunAssignment};
pub use spec::{END, Leftover, ShimEnd, Spec, StopReason};

/// Exit code of a shim that came second: another process began or voided the run.
pub const ALREADY_BEGUN: i32 = 75;

/// Time for which, and interval in which, the shim tries to write `end.json`; on a full disk it
/// tries longer and less often.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(100);
const DISK: Duration = Duration::from_hours(24);
const DISK_PAUSE: Duration = Duration::from_millis(500);

/// Runs the turn in `folder`, or in the one that is named on stdin later (`-`), and returns the exit
/// code; 0 means that `end.json` is written, or that no turn was named.
///
/// Must be called first in `main`: it takes over the whole process, closes every descriptor that is
/// open and changes session, signals and working folder.
pub fn main(folder: &Path) -> i32 {
    live(folder).unwrap_or(1)
}

fn live(folder: &Path) -> io::Result<i32> {
    let signals = block_signals()?;
    setsid().ok();
    close_strangers(&signals);
    let mut line = if folder == Path::new(LATER) {
        Some(prespawn::line()?)
    } else {
        None
    };
    silence()?;
    set_child_subreaper(true)?;
    let mut vars: Vec<_> = std::env::vars_os().collect();
    if let Some(line) = &mut line {
        let Some(told) = RunAssignment::hear(line)? else {
            return Ok(0);
        };
        chdir(&told.folder)?;
        let more = told.env.into_iter().map(|(n, v)| (n.into(), v.into()));
        vars.extend(more);
    } else {
        chdir(folder)?;
    }
    let env = environment(vars)?;
    let here = Path::new(".");
    if !begin::begin(here)? {
        return Ok(ALREADY_BEGUN);
    }
    // Clients see us hang up when the socket is dropped, which is after `end.json` is written.
    let (mut end, policy, _open) = match start(here, &signals, &env, line) {
        Ok((turn, keep_background)) => {
            let since = rejoin_hub::Clock.since_boot();
            let (ended, why, socket, spools) = turn.run();
            let ran = rejoin_hub::Clock.since_boot().saturating_sub(since);
            // A turn that was cancelled or cut off keeps no background processes.
            let keep = keep_background && why == StopReason::Exited;
            let policy = if keep { Policy::Keep } else { Policy::Kill };
            let end = ShimEnd {
                ran_ms: u64::try_from(ran.as_millis()).ok(),
                ..ended_so(ended, why)
            };
            (end, policy, Some((socket, spools)))
        }
        Err(error) => (ShimEnd::not_started(&error), Policy::Kill, None),
    };
    sweep::sweep(&signals, policy, &mut end);
    write_end(&end)?;
    fs_err::remove_file(SOCKET).ok();
    Ok(0)
}

/// Blocks the signals that are read from a descriptor instead. SIGHUP is read and ignored: no
/// terminal ends a turn.
fn block_signals() -> io::Result<SignalFd> {
    let signals: SigSet = [
        Signal::SIGCHLD,
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
    ]
    .into_iter()
    .collect();
    signals.thread_block()?;
    Ok(SignalFd::with_flags(
        &signals,
        SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC,
    )?)
}

/// Closes descriptors that the caller left open by mistake: a pipe that is held here would never
/// end there.
fn close_strangers(signals: &SignalFd) {
    let Ok(entries) = fs_err::read_dir("/proc/self/fd") else {
        return;
    };
    let number = |name: &OsStr| name.to_str()?.parse::<i32>().ok();
    let open: Vec<i32> = entries
        .filter_map(|entry| number(&entry.ok()?.file_name()))
        .collect();
    for fd in open
        .into_iter()
        .filter(|fd| *fd > 2 && *fd != signals.as_raw_fd())
    {
        close(fd).ok();
    }
}

fn silence() -> io::Result<()> {
    let null = fs_err::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?
        .into_file();
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    Ok(())
}

/// Starts the CLI. The flag is true if the processes that it leaves running may live.
fn start<'a>(
    folder: &Path,
    signals: &'a SignalFd,
    env: &[CString],
    line: Option<UnixStream>,
) -> io::Result<(Turn<'a>, bool)> {
    let mut spec = Spec::load(folder)?;
    let mut socket = Socket::open()?;
    let spools = Spools::create(Instant::now())?;
    let (theirs, ours) = pipe2(OFlag::O_CLOEXEC)?;
    let (terminal, slave) = if spec.pty {
        Terminal::open()?
    } else {
        (None, None)
    };
    let [out, err] = spools.for_cli();
    let out = slave.as_ref().map_or(out, AsRawFd::as_raw_fd);
    let cli = start_cli(&spec, env, [theirs.as_raw_fd(), out, err])?;
    drop((theirs, slave));
    // The client that named the run is connected from the start.
    socket.admit(line, cli);
    raise_oom_score(cli);
    if let Ok(holder) = Holder::of(cli).and_then(|it| Ok(serde_json::to_vec(&it)?)) {
        spec::put(&folder.join("cli.json"), &holder).ok();
    }
    let stdin = Stdin::new(ours, std::mem::take(&mut spec.stdin), spec.hold_stdin)?;
    Ok((
        Turn::new(&spec, cli, signals, stdin, spools, socket).showing(terminal),
        spec.keep_background,
    ))
}

fn start_cli(spec: &Spec, env: &[CString], stdio: [RawFd; 3]) -> io::Result<i32> {
    let argv: Vec<_> = spec
        .argv
        .iter()
        .map(|it| c_string(OsStr::new(it)))
        .collect::<io::Result<_>>()?;
    let Some(program) = argv.first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "argv is empty"));
    };
    let stdio = stdio.map(Some);
    let home = fs_err::File::open(".")?.into_file();
    chdir(&spec.dir)
        .map_err(|error| io::Error::other(format!("folder {}: {error}", spec.dir.display())))?;
    // The path was resolved when the folder was checked: a link that has replaced it leads
    // elsewhere.
    let entered = std::env::current_dir();
    let started = match entered {
        Ok(entered) if entered == spec.dir => {
            let start = || launch(program, &argv, env, stdio, Group::Own);
            match &spec.wall {
                Some(wall) => wall.behind(start),
                None => start(),
            }
        }
        Ok(_) | Err(_) => Err(io::Error::other("the working folder was replaced")),
    };
    fchdir(home.as_fd())?;
    match started {
        Ok(pid) => Ok(pid.as_raw()),
        Err(error) => Err(io::Error::new(
            error.kind(),
            format!("{}: {error}", spec.argv[0]),
        )),
    }
}

/// Raises the CLI's OOM score: if memory runs out, the kernel kills the CLI and not the shim, which
/// can report it.
fn raise_oom_score(cli: i32) {
    let own = fs_err::read_to_string("/proc/self/oom_score_adj").unwrap_or_default();
    let score = own.trim().parse().unwrap_or(0) + 200;
    fs_err::write(
        tree::file(cli, "oom_score_adj"),
        score.min(1000).to_string(),
    )
    .ok();
}

fn ended_so(ended: ChildEnd, why: StopReason) -> ShimEnd {
    let (code, signal) = match ended {
        ChildEnd::Code(code) => (Some(code), None),
        ChildEnd::Signal(signal) => (None, Some(signal)),
        ChildEnd::Unseen => (None, None),
    };
    ShimEnd {
        code,
        signal,
        why,
        ..ShimEnd::default()
    }
}

/// Writes `end.json` as the last step. Waits for room on a full disk, because without this file the
/// end of the turn is unknown.
fn write_end(end: &ShimEnd) -> io::Result<()> {
    let text = serde_json::to_vec(end)?;
    let since = Instant::now();
    loop {
        let error = match spec::put(Path::new(END), &text) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let kind = error.kind();
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded].contains(&kind);
        let (patience, pause) = if full {
            (DISK, DISK_PAUSE)
        } else {
            (PATIENCE, PAUSE)
        };
        if kind == io::ErrorKind::NotFound || since.elapsed() > patience {
            return Err(error);
        }
        thread::sleep(pause);
    }
}
