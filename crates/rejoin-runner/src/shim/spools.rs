//! The spool files `out` and `err`, into which the CLI writes directly.
//!
//! The shim does not touch the bytes. It checks that the files grow, that they do not grow too much
//! and that the disk has room; while stdin is held, it also looks for the line that ends the turn.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use fs_err::os::unix::fs::OpenOptionsExt;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::statvfs::fstatvfs;

use super::scan::Scanner;

/// Both spools of a run.
#[derive(Debug)]
pub(super) struct Spools {
    out: File,
    err: File,
    inotify: Option<Inotify>,
    /// Number of bytes in both together, and the time at which that last changed.
    pub(super) size: u64,
    pub(super) grown: Instant,
    scanned: u64,
    deaf_until: Instant,
}

/// Shortest interval between wake-ups by a CLI that writes without pause.
const REST: Duration = Duration::from_millis(1);
/// Interval between checks if the system gives us no inotify instance.
const WITHOUT_INOTIFY: Duration = Duration::from_millis(100);
/// Number of blocks to scan before other events are handled.
const BLOCKS_AT_ONCE: usize = 64;

impl Spools {
    /// Creates both files in the current folder.
    pub(super) fn create(now: Instant) -> io::Result<Self> {
        let open = |name| {
            let mut options = fs_err::OpenOptions::new();
            let options = options.read(true).append(true).create(true).mode(0o600);
            options.open(name).map(fs_err::File::into_file)
        };
        let (out, err) = (open("out")?, open("err")?);
        let (size, scanned) = (out.metadata()?.len() + err.metadata()?.len(), 0);
        let inotify = watch_both().ok();
        Ok(Self {
            out,
            err,
            inotify,
            size,
            grown: now,
            scanned,
            deaf_until: now,
        })
    }

    /// Returns the descriptors that become the CLI's stdout and stderr.
    pub(super) fn for_cli(&self) -> [RawFd; 2] {
        [self.out.as_raw_fd(), self.err.as_raw_fd()]
    }

    /// Returns the descriptor to poll for growth, or None during the pause after the last event.
    pub(super) fn wants_to_hear(&self, now: Instant) -> Option<BorrowedFd<'_>> {
        self.inotify
            .as_ref()
            .filter(|_| now >= self.deaf_until)
            .map(AsFd::as_fd)
    }

    /// Returns the time of the next check without an event.
    pub(super) fn next_look(&self, now: Instant) -> Option<Instant> {
        match self.inotify {
            Some(_) => Some(self.deaf_until).filter(|until| now < *until),
            None => Some(now + WITHOUT_INOTIFY),
        }
    }

    /// Notes the present size. Returns true if it changed since the last call.
    pub(super) fn look(&mut self, now: Instant) -> bool {
        if let Some(inotify) = &self.inotify
            && now >= self.deaf_until
        {
            while inotify.read_events().is_ok() {
                self.deaf_until = now + REST;
            }
        }
        let length = |file: &File| file.metadata().map_or(0, |it| it.len());
        let size = length(&self.out) + length(&self.err);
        let grew = size != self.size;
        if grew {
            self.size = size;
            self.grown = now;
        }
        grew
    }

    /// Feeds the new bytes of `out` to the scanner.
    pub(super) fn scan(&mut self, scanner: &mut Scanner) -> Scanned {
        let mut block = [0; 16 * 1024];
        for _ in 0..BLOCKS_AT_ONCE {
            match self.out.read_at(&mut block, self.scanned) {
                Ok(count) if count > 0 => {
                    self.scanned += count as u64;
                    if scanner.feed(&block[..count]) {
                        return Scanned::Found;
                    }
                }
                Ok(_) | Err(_) => return Scanned::Nothing,
            }
        }
        Scanned::NotDone
    }

    /// Returns the free bytes on the file system of the spools, or None if it does not report them.
    pub(super) fn free(&self) -> Option<u64> {
        let stat = fstatvfs(&self.out).ok().filter(|stat| stat.blocks() > 0)?;
        Some(stat.blocks_available().saturating_mul(stat.fragment_size()))
    }
}

/// Receives the output of a CLI that prints to a terminal.
impl io::Write for Spools {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&self.out).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scanned {
    Found,
    Nothing,
    /// More is left to scan; call again.
    NotDone,
}

fn watch_both() -> nix::Result<Inotify> {
    let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
    inotify.add_watch("out", AddWatchFlags::IN_MODIFY)?;
    inotify.add_watch("err", AddWatchFlags::IN_MODIFY)?;
    Ok(inotify)
}
