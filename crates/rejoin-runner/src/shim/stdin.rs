//! The CLI's stdin: the data that is still to be written, and if it stays open.
//!
//! Writes to the pipe never block: prompts are larger than a pipe, and a CLI may not read for
//! minutes.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::fcntl::{FcntlArg, OFlag, fcntl};

/// Writing end of the CLI's stdin.
#[derive(Debug)]
pub(super) struct Stdin {
    pipe: Option<File>,
    waiting: Vec<u8>,
    written: usize,
    held: bool,
    /// Keys whose data was already added.
    keys: HashSet<String>,
}

/// Largest number of bytes that may wait to be written.
const MOST: usize = 64 * 1024 * 1024;

impl Stdin {
    pub(super) fn new(pipe: OwnedFd, prompt: String, held: bool) -> io::Result<Self> {
        fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let waiting = prompt.into_bytes();
        Ok(Self {
            pipe: Some(File::from(pipe)),
            waiting,
            written: 0,
            held,
            keys: HashSet::new(),
        })
    }

    /// Returns true while more can be written.
    pub(super) fn is_held(&self) -> bool {
        self.held && self.pipe.is_some()
    }

    /// Returns the pipe if data waits for it.
    pub(super) fn wants_to_write(&self) -> Option<BorrowedFd<'_>> {
        self.pipe
            .as_ref()
            .filter(|_| !self.waiting.is_empty())
            .map(AsFd::as_fd)
    }

    pub(super) fn add(&mut self, data: &str) -> Result<(), String> {
        if !self.is_held() {
            return Err("stdin is closed".to_owned());
        }
        if self.waiting.len() - self.written + data.len() > MOST {
            return Err("too much is waiting to be read from stdin".to_owned());
        }
        self.waiting.drain(..self.written);
        self.written = 0;
        self.waiting.extend_from_slice(data.as_bytes());
        Ok(())
    }

    /// Adds the data of each key once, however often it is sent. A repeated key succeeds even if
    /// the CLI has closed its end since.
    pub(super) fn say(&mut self, key: String, data: &str) -> Result<(), String> {
        if !self.keys.contains(&key) {
            self.add(data)?;
            self.keys.insert(key);
        }
        Ok(())
    }

    /// Closes stdin as soon as the waiting data is written.
    pub(super) fn close(&mut self) {
        self.held = false;
    }

    /// Writes as much as the pipe takes now.
    pub(super) fn write(&mut self) {
        while let Some(pipe) = &mut self.pipe {
            let rest = self.waiting.get(self.written..).unwrap_or_default();
            if rest.is_empty() {
                self.waiting = Vec::new();
                self.written = 0;
                if !self.held {
                    self.pipe = None;
                }
                return;
            }
            match pipe.write(rest) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The CLI has closed its end and will never read from us again.
                Err(_) => {
                    self.pipe = None;
                    self.waiting = Vec::new();
                    self.written = 0;
                }
            }
        }
    }
}
