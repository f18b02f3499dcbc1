//! The picker on a terminal: the screen is borrowed, and given back whatever happens.

use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{self, SetArg, Termios};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::keys::{Key, keys, last};
use super::picker::{Choice, Picker, Pressed};
use crate::output::Output;
use rejoin_errors::{CommandError, Result};

/// How soon the end, or another size of the screen, is seen.
const LOOK: u16 = 50;

/// The user's choice.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Picked {
    These(Vec<usize>),
    Nothing,
    /// By a signal of this number.
    Stopped(u8),
}

/// Returns true if stdin and stdout are a terminal that can show the list.
pub(super) fn can_ask(out: Output) -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    out.screen() && std::io::stdin().is_terminal() && !dumb
}

pub(super) async fn pick(out: Output, choices: Vec<Choice>) -> Result<Picked> {
    let trouble =
        |e: &dyn std::fmt::Display| CommandError::unavailable(format!("the terminal: {e}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(|e| trouble(&e))?;
    let mut hang_up = signal(SignalKind::hangup()).map_err(|e| trouble(&e))?;
    let borrowed = Borrowed::now().map_err(|e| trouble(&e))?;
    let mut typed = listen(borrowed.over.clone());
    let mut tick = tokio::time::interval(Duration::from_millis(u64::from(LOOK)));
    let mut picker = Picker::new(choices);
    let mut before = String::new();
    loop {
        draw(out, &mut picker, &mut before);
        tokio::select! {
            key = typed.recv() => match key.map(|key| picker.press(key)) {
                Some(Pressed::Going) => {}
                Some(Pressed::Taken(these)) => return Ok(Picked::These(these)),
                Some(Pressed::Left) | None => return Ok(Picked::Nothing),
            },
            _ = terminate.recv() => return Ok(Picked::Stopped(15)),
            _ = hang_up.recv() => return Ok(Picked::Stopped(1)),
            _ = tick.tick() => {}
        }
    }
}

/// Only if it would look different.
fn draw(out: Output, picker: &mut Picker, before: &mut String) {
    let size = terminal_size::terminal_size();
    let height = size.map_or(24, |(_, height)| usize::from(height.0));
    let width = size.map_or(out.width(), |(width, _)| usize::from(width.0));
    let lines = picker.screen(width, height);
    let mut screen = String::from("\x1b[H");
    for (n, line) in lines.iter().take(height).enumerate() {
        if n > 0 {
            screen.push_str("\r\n");
        }
        screen.push_str(&out.rendered(line));
        screen.push_str("\x1b[K");
    }
    screen.push_str("\x1b[J");
    if screen != *before {
        let mut to = std::io::stdout().lock();
        let _gone = to.write_all(screen.as_bytes()).and_then(|()| to.flush());
        *before = screen;
    }
}

/// Waits for keys in a thread of its own: a terminal can only be waited for.
fn listen(over: Arc<AtomicBool>) -> mpsc::UnboundedReceiver<Key> {
    let (told, heard) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let mut bytes = vec![];
        while !over.load(Ordering::Relaxed) {
            let Some(more) = wait() else { return };
            let found = if more.is_empty() {
                last(&mut bytes).into_iter().collect()
            } else {
                bytes.extend(more);
                keys(&mut bytes)
            };
            if found.into_iter().any(|key| told.send(key).is_err()) {
                return;
            }
        }
    });
    heard
}

/// Waits a moment for input. Returns the bytes typed, empty if there were none; none if the terminal is gone.
fn wait() -> Option<Vec<u8>> {
    let stdin = std::io::stdin();
    let mut waiting = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    match poll(&mut waiting, PollTimeout::from(LOOK)) {
        Ok(0) | Err(nix::errno::Errno::EINTR) => return Some(vec![]),
        Ok(_) => {}
        Err(_) => return None,
    }
    let mut bytes = [0; 256];
    match nix::unistd::read(stdin.as_fd(), &mut bytes) {
        Ok(0) | Err(_) => None,
        Ok(n) => Some(bytes[..n].to_vec()),
    }
}

/// The terminal, each key as it is typed, on a screen of its own.
struct Borrowed {
    as_it_was: Termios,
    over: Arc<AtomicBool>,
}

impl Borrowed {
    fn now() -> nix::Result<Self> {
        let stdin = std::io::stdin();
        let as_it_was = termios::tcgetattr(stdin.as_fd())?;
        let mut raw = as_it_was.clone();
        termios::cfmakeraw(&mut raw);
        termios::tcsetattr(stdin.as_fd(), SetArg::TCSADRAIN, &raw)?;
        let mut to = std::io::stdout().lock();
        let _gone = to
            .write_all(b"\x1b[?1049h\x1b[?25l")
            .and_then(|()| to.flush());
        Ok(Self {
            as_it_was,
            over: Arc::default(),
        })
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let mut to = std::io::stdout().lock();
        let _gone = to
            .write_all(b"\x1b[?25h\x1b[?1049l")
            .and_then(|()| to.flush());
        let stdin = std::io::stdin();
        let _back = termios::tcsetattr(stdin.as_fd(), SetArg::TCSADRAIN, &self.as_it_was);
    }
}
