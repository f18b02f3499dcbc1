//! The main loop: one `poll` over everything that can happen while the CLI runs.
//!
//! The results of poll are not evaluated: all sources are non-blocking, so after each wake-up every
//! source is asked. That costs a few system calls and leaves no case to forget.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;

use super::order::Order;
use super::reap::{ChildEnd, reap};
use super::release_pages::trim;
use super::scan::Scanner;
use super::socket::Socket;
use super::spec::{Spec, StopReason};
use super::spools::{Scanned, Spools};
use super::stdin::Stdin;
use super::terminal::Terminal;
use super::termination::Termination;

/// Running CLI with its pipes, limits and clients.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    cli: i32,
    signals: &'a SignalFd,
    stdin: Stdin,
    spools: Spools,
    /// Terminal that is the CLI's stdout, if it has one.
    terminal: Option<Terminal>,
    socket: Socket,
    termination: Termination,
    scanner: Scanner,
    /// True while the output is searched for the line that ends the turn.
    awaits_last_word: bool,
    linger: Duration,
    /// Deadline for the CLI to end after the line that ends the turn.
    over_at: Option<Instant>,
    limits: Limits,
    /// True if the CLI may rest between prompts, and the time until which it rests now.
    rests: bool,
    rest_until: Option<Instant>,
    /// Time at which the last client left, or of the start.
    alone_since: Instant,
    disk_checked: Instant,
    /// Time from which the shim mostly waits; None once that time has passed.
    calm_at: Option<Instant>,
    more_to_scan: bool,
}

#[derive(Debug, Clone, Copy)]
struct Limits {
    wall: Option<Instant>,
    idle: Option<Duration>,
    orphan: Option<Duration>,
    /// Deadline on the boot clock, so that time counts during which the machine slept.
    lease: Option<Duration>,
    spool_bytes: u64,
    min_free_bytes: u64,
}

/// Interval in which free space and, in case a wake-up was missed, everything else is checked.
const TICK: Duration = Duration::from_secs(1);

/// Time before which trimming is not worth it, because the run may be over by then.
const CALM_AFTER: Duration = Duration::from_millis(250);

impl<'a> Turn<'a> {
    pub(super) fn new(
        spec: &Spec,
        cli: i32,
        signals: &'a SignalFd,
        stdin: Stdin,
        spools: Spools,
        socket: Socket,
    ) -> Self {
        let now = Instant::now();
        let limits = Limits {
            wall: spec
                .wall_ms
                .and_then(|wall| now.checked_add(Duration::from_millis(wall))),
            idle: spec.idle_ms.map(Duration::from_millis),
            orphan: spec.orphan_ms.map(Duration::from_millis),
            lease: spec.lease_ms.map(Duration::from_millis),
            spool_bytes: spec.spool_bytes,
            min_free_bytes: spec.min_free_bytes,
        };
        Self {
            cli,
            signals,
            stdin,
            spools,
            terminal: None,
            socket,
            termination: Termination::new(cli, Duration::from_millis(spec.grace_ms)),
            scanner: Scanner::new(if spec.hold_stdin {
                &spec.close_stdin_on
            } else {
                &spec.done_on
            }),
            awaits_last_word: !spec.hold_stdin && !spec.done_on.is_empty(),
            linger: Duration::from_millis(spec.linger_ms),
            over_at: None,
            limits,
            rests: spec.rests,
            rest_until: None,
            alone_since: now,
            disk_checked: now,
            calm_at: now.checked_add(CALM_AFTER),
            more_to_scan: false,
        }
    }

    /// Sets the terminal that is the CLI's stdout.
    pub(super) fn showing(self, terminal: Option<Terminal>) -> Self {
        Self { terminal, ..self }
    }

    /// Runs until the CLI has ended.
    ///
    /// The socket is returned open, so that its clients see the shim hang up after `end.json`. The
    /// spools are returned too: closing an inotify descriptor takes the kernel some ten milliseconds.
    pub(super) fn run(mut self) -> (ChildEnd, StopReason, Socket, Spools) {
        loop {
            self.wait();
            let now = Instant::now();
            self.obey_signals(now);
            self.copy_terminal();
            if let Some(ended) = reap(self.cli) {
                self.copy_terminal();
                let failed = !matches!(ended, ChildEnd::Code(0));
                let full = || failed && self.disk_is_full();
                let why = self.termination.why();
                let why = why.or_else(|| full().then_some(StopReason::DiskFull));
                let why = why.unwrap_or(StopReason::Exited);
                return (ended, why, self.socket, self.spools);
            }
            self.obey_clients(now);
            if self.spools.look(now) {
                self.socket.announce();
            }
            self.mind_stdin(now);
            self.mind_the_end(now);
            self.check_limits(now);
            self.termination.step(now);
            if self.calm_at.take_if(|at| now >= *at).is_some() {
                trim();
            }
        }
    }

    fn wait(&self) {
        let now = Instant::now();
        let mut fds = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        self.socket.watch(&mut fds);
        let terminal = self.terminal.as_ref().map(Terminal::fd);
        fds.extend(terminal.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        fds.extend(
            self.stdin
                .wants_to_write()
                .map(|fd| PollFd::new(fd, PollFlags::POLLOUT)),
        );
        fds.extend(
            self.spools
                .wants_to_hear(now)
                .map(|fd| PollFd::new(fd, PollFlags::POLLIN)),
        );
        let left = self.next_deadline(now).saturating_duration_since(now);
        // Rounded up: waking a moment too early would only cost another round.
        let left = if left.is_zero() {
            left
        } else {
            left + Duration::from_millis(1)
        };
        poll(
            &mut fds,
            PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO),
        )
        .ok();
    }

    fn next_deadline(&self, now: Instant) -> Instant {
        if self.more_to_scan {
            return now;
        }
        let running = self.termination.why().is_none();
        [
            self.termination.next(),
            self.spools.next_look(now),
            self.orphan_at(),
            self.over_at.filter(|_| running),
            self.rest_until,
            self.calm_at,
            self.limits.wall.filter(|_| running),
            self.idle_at().filter(|_| running),
        ]
        .into_iter()
        .flatten()
        .fold(now + TICK, Instant::min)
    }

    fn orphan_at(&self) -> Option<Instant> {
        let alone =
            self.stdin.is_held() && !self.socket.is_anybody_here() && self.rest_until.is_none();
        self.limits
            .orphan
            .filter(|_| alone)
            .and_then(|it| self.alone_since.checked_add(it))
    }

    fn idle_at(&self) -> Option<Instant> {
        self.limits
            .idle
            .and_then(|idle| self.spools.grown.checked_add(idle))
    }

    /// Handles signals. SIGCHLD only wakes us and SIGHUP is ignored; SIGTERM and SIGINT interrupt
    /// the CLI.
    fn obey_signals(&mut self, now: Instant) {
        while let Ok(Some(info)) = self.signals.read_signal() {
            let number = info.ssi_signo.cast_signed();
            if number == Signal::SIGTERM as i32 || number == Signal::SIGINT as i32 {
                self.termination.ask(StopReason::Interrupted, now);
            }
        }
    }

    fn copy_terminal(&mut self) {
        let Self {
            terminal, spools, ..
        } = self;
        terminal.take_if(|terminal| !terminal.copy(spools));
    }

    fn obey_clients(&mut self, now: Instant) {
        let somebody_was_here = self.socket.is_anybody_here();
        let Self {
            socket,
            stdin,
            termination,
            limits,
            rests,
            rest_until,
            ..
        } = self;
        socket.serve(self.cli, |order| {
            match order {
                Order::Stdin { data } => {
                    *rest_until = None;
                    return stdin.add(&data);
                }
                Order::Say { key, data } => {
                    *rest_until = None;
                    return stdin.say(key, &data);
                }
                Order::Rest { ms } => {
                    if !*rests || !stdin.is_held() || termination.why().is_some() {
                        return Err("it is not to rest".to_owned());
                    }
                    *rest_until = now.checked_add(Duration::from_millis(ms));
                }
                Order::CloseStdin => stdin.close(),
                Order::Interrupt => termination.ask(StopReason::Interrupted, now),
                Order::Stop => termination.tell(StopReason::Stopped, now),
                Order::Ping => {}
                Order::Lease { until_ms } => limits.lease = Some(Duration::from_millis(until_ms)),
            }
            Ok(())
        });
        if somebody_was_here || self.socket.is_anybody_here() {
            self.alone_since = now;
        }
    }

    fn mind_stdin(&mut self, now: Instant) {
        if self.stdin.is_held() {
            let scanned = self.spools.scan(&mut self.scanner);
            self.more_to_scan = scanned == Scanned::NotDone;
            let orphaned = self.orphan_at().is_some_and(|at| now >= at);
            if orphaned && self.rests {
                self.termination.ask(StopReason::Interrupted, now);
            }
            if scanned == Scanned::Found || orphaned {
                self.stdin.close();
                self.more_to_scan = false;
            }
            if self.rest_until.is_some_and(|at| now >= at) {
                self.rest_until = None;
                self.stdin.close();
                self.over_at = now.checked_add(self.linger);
            }
        } else {
            self.more_to_scan = false;
        }
        self.stdin.write();
    }

    /// Ends a CLI that stays alive after the line that ends the turn. Its later work is not part of
    /// the turn.
    fn mind_the_end(&mut self, now: Instant) {
        if self.awaits_last_word {
            let scanned = self.spools.scan(&mut self.scanner);
            self.more_to_scan = scanned == Scanned::NotDone;
            if scanned == Scanned::Found {
                self.awaits_last_word = false;
                self.over_at = now.checked_add(self.linger);
            }
        }
        if self.over_at.is_some_and(|at| now >= at) {
            self.over_at = None;
            self.termination.tell(StopReason::Exited, now);
        }
    }

    /// Returns true if the spools have less room than the limit.
    fn disk_is_full(&self) -> bool {
        let free = self.spools.free();
        free.is_some_and(|free| free < self.limits.min_free_bytes)
    }

    fn check_limits(&mut self, now: Instant) {
        let passed = |limit: Option<Instant>| limit.is_some_and(|at| now >= at);
        if self.spools.size > self.limits.spool_bytes {
            self.termination.ask(StopReason::SpoolFull, now);
        }
        if now.duration_since(self.disk_checked) >= TICK {
            self.disk_checked = now;
            if self.disk_is_full() {
                self.termination.ask(StopReason::DiskFull, now);
            }
        }
        // Checked at least once a second: see `TICK`.
        if (self.limits.lease).is_some_and(|until| rejoin_hub::Clock.since_boot() >= until) {
            self.termination.ask(StopReason::LeaseRanOut, now);
        }
        if passed(self.limits.wall) {
            self.termination.ask(StopReason::Wall, now);
        }
        if passed(self.idle_at()) {
            self.termination.ask(StopReason::Idle, now);
        }
    }
}
