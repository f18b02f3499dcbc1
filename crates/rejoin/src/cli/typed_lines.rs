//! Lines that a person types while a command runs. A thread reads the terminal until the reader is dropped, so
//! that nothing typed later is taken from the next reader.

use std::fs::File;
use std::io::{IsTerminal, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{getpgrp, pipe, tcgetpgrp};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Lines that were typed, and that nothing has received.
static UNUSED: Mutex<Vec<String>> = Mutex::new(vec![]);

/// True if lines typed before a question answer no question.
static SEPARATE: AtomicBool = AtomicBool::new(false);

/// Keeps lines apart that were typed before a reader began: they are messages, and answer no question.
pub(super) fn keep_earlier_lines() {
    SEPARATE.store(true, Ordering::Relaxed);
}

/// Keeps a line that its reader could not use.
pub(super) fn keep_unused(line: String) {
    let mut unused = UNUSED.lock().unwrap_or_else(PoisonError::into_inner);
    unused.push(line);
}

/// Takes the lines that were typed, and that nothing has received.
pub(super) fn take_unused() -> Vec<String> {
    std::mem::take(&mut *UNUSED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Opens the terminal that a person types at: stdin, or the controlling terminal if stdin is a file or a pipe.
/// Returns none in the background, where reading would stop the process.
fn terminal() -> Option<File> {
    let stdin = std::io::stdin();
    let file = if stdin.is_terminal() {
        File::from(stdin.as_fd().try_clone_to_owned().ok()?)
    } else {
        File::open("/dev/tty").ok()?
    };
    (tcgetpgrp(&file).ok()? == getpgrp()).then_some(file)
}

/// Returns true if a person can type.
pub(super) fn possible() -> bool {
    std::io::stdin().is_terminal() || terminal().is_some()
}

/// Reads lines from the terminal until it is dropped.
pub(super) struct TypedLines {
    receive: UnboundedReceiver<String>,
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl TypedLines {
    /// Begins to read. Without a terminal the lines have ended at once.
    pub(super) fn begin() -> Self {
        let (send, receive) = unbounded_channel();
        let mut lines = Self {
            receive,
            stop: None,
            thread: None,
        };
        let (Some(mut tty), Ok((stopped, stop))) = (terminal(), pipe()) else {
            return lines;
        };
        let mut pending = vec![];
        if SEPARATE.load(Ordering::Relaxed) {
            while is_ready(&tty) && read_some(&mut tty, &mut pending) {}
            take_lines(&mut pending).for_each(keep_unused);
        }
        lines.stop = Some(stop);
        lines.thread = Some(std::thread::spawn(move || {
            read_lines(tty, &stopped, pending, &send);
        }));
        lines
    }

    /// Returns the next line; none: the input has ended.
    pub(super) async fn next(&mut self) -> Option<String> {
        self.receive.recv().await
    }
}

impl Drop for TypedLines {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
        while let Ok(line) = self.receive.try_recv() {
            keep_unused(line);
        }
    }
}

fn read_lines(
    mut tty: File,
    stopped: &OwnedFd,
    mut pending: Vec<u8>,
    send: &UnboundedSender<String>,
) {
    loop {
        let mut waits = [
            PollFd::new(tty.as_fd(), PollFlags::POLLIN),
            PollFd::new(stopped.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut waits, PollTimeout::NONE) {
            Err(nix::errno::Errno::EINTR) => continue,
            Err(_) => return,
            Ok(_) => {}
        }
        if waits[1].any() == Some(true) || !read_some(&mut tty, &mut pending) {
            break;
        }
        for line in take_lines(&mut pending) {
            if let Err(unsent) = send.send(line) {
                keep_unused(unsent.0);
            }
        }
    }
    // Typed without its end, and then the input ended.
    if !pending.is_empty() {
        keep_unused(String::from_utf8_lossy(&pending).into_owned());
    }
}

fn is_ready(tty: &File) -> bool {
    let mut waits = [PollFd::new(tty.as_fd(), PollFlags::POLLIN)];
    matches!(poll(&mut waits, PollTimeout::ZERO), Ok(n) if n > 0)
}

/// Reads what the terminal has. Returns false at the end of the input.
fn read_some(tty: &mut File, pending: &mut Vec<u8>) -> bool {
    let mut bytes = [0; 4096];
    match tty.read(&mut bytes) {
        Ok(0) => false,
        Ok(n) => {
            pending.extend_from_slice(&bytes[..n]);
            true
        }
        Err(e) => e.kind() == std::io::ErrorKind::Interrupted,
    }
}

/// Takes the complete lines out of `pending`.
fn take_lines(pending: &mut Vec<u8>) -> impl Iterator<Item = String> + use<> {
    let end = pending
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |n| n + 1);
    let lines: Vec<u8> = pending.drain(..end).collect();
    let lines = String::from_utf8_lossy(&lines).into_owned();
    lines
        .lines()
        .map(str::to_owned)
        .collect::<Vec<_>>()
        .into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_lines_are_taken() {
        let mut pending = b"one\ntwo\r\nthr".to_vec();
        let lines: Vec<_> = take_lines(&mut pending).collect();
        assert_eq!(lines, ["one", "two"]);
        assert_eq!(pending, b"thr");
        assert_eq!(take_lines(&mut pending).count(), 0);
    }
}
