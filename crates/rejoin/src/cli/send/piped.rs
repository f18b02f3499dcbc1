//! Text on stdin beside a message on the command line, as in `git diff | rejoin send "review this"`.
//!
//! Only a pipe that was made for this command, or a file from its beginning, is read. A stdin that the calling process
//! has as well belongs to that process: the lines of a `while read` loop, the input of a script, of
//! ssh, cron or a CI job. Nothing else is read, so nothing blocks and nothing is taken from others.

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{Whence, getppid, lseek};
use rejoin_errors::{CommandError, Result};
use rejoin_hub::Attachment;

use crate::output::Output;

/// Milliseconds in which a pipe must deliver its first bytes, or end.
const FIRST_BYTES: u16 = 5_000;

/// Name of the text, as `--file` would give it.
const NAME: &str = "stdin";

/// Kind of stdin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stdin {
    /// A pipe of this command alone, or a file that was not read yet.
    Own,
    /// A pipe of the calling process.
    Inherited,
    /// A terminal, a device, a socket or a file that another process reads, or nothing.
    Other,
}

/// Returns the text on stdin that belongs to a message which is given as `argument`.
pub(super) fn piped(out: Output, argument: Option<&str>) -> Result<Option<Attachment>> {
    if argument.is_none_or(|argument| argument == "-") {
        return Ok(None);
    }
    match kind() {
        Stdin::Own if readable(FIRST_BYTES) => read(),
        Stdin::Own => {
            let seconds = FIRST_BYTES / 1000;
            out.note(&format!(
                "rejoin: nothing came on stdin in {seconds} s; the message is sent without it (to wait: --file /dev/stdin)"
            ));
            Ok(None)
        }
        Stdin::Inherited if readable(0) && !at_end() => {
            out.note("rejoin: stdin belongs to the calling process and was not read (to add it: --file /dev/stdin)");
            Ok(None)
        }
        Stdin::Inherited | Stdin::Other => Ok(None),
    }
}

fn kind() -> Stdin {
    let Ok(stdin) = fs_err::metadata("/proc/self/fd/0") else {
        return Stdin::Other;
    };
    // An unreadable caller, such as sudo, may use it.
    let callers = fs_err::metadata(format!("/proc/{}/fd/0", getppid()));
    let same = callers.is_ok_and(|its| (its.dev(), its.ino()) == (stdin.dev(), stdin.ino()));
    let unknown = fs_err::read_dir(format!("/proc/{}/fd", getppid())).is_err();
    // A file that was read in part is read by another process. One at its beginning is read without
    // moving the position of others; `dash` redirects in the shell itself.
    let at_start = || lseek(std::io::stdin(), 0, Whence::SeekCur).is_ok_and(|at| at == 0);
    if stdin.is_file() {
        return if at_start() { Stdin::Own } else { Stdin::Other };
    }
    match (stdin.file_type().is_fifo(), same || unknown) {
        (false, _) => Stdin::Other,
        (true, true) => Stdin::Inherited,
        (true, false) => Stdin::Own,
    }
}

/// Waits until stdin has bytes or has ended. Returns false if that takes longer than `most`
/// milliseconds.
fn readable(most: u16) -> bool {
    let stdin = std::io::stdin();
    let mut stdin = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    poll(&mut stdin, PollTimeout::from(most)).is_ok_and(|ready| ready > 0)
}

/// Returns true if a pipe has ended without bytes.
fn at_end() -> bool {
    let stdin = std::io::stdin();
    let mut stdin = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    let polled = poll(&mut stdin, PollTimeout::ZERO);
    let events = stdin[0].revents().unwrap_or(PollFlags::empty());
    polled.is_err() || !events.contains(PollFlags::POLLIN)
}

fn read() -> Result<Option<Attachment>> {
    let mut bytes = vec![];
    fs_err::File::open("/proc/self/fd/0")
        .and_then(|mut stdin| stdin.read_to_end(&mut bytes))
        .map_err(|e| CommandError::usage(format!("stdin: {e}")))?;
    let text = String::from_utf8(bytes).ok();
    let text = text.filter(|text| !text.contains('\0'));
    let text = text.ok_or_else(|| {
        CommandError::usage("stdin is not text; nothing was sent")
            .try_this("rejoin send \"…\" </dev/null")
    })?;
    let some = !text.trim().is_empty();
    Ok(some.then(|| Attachment {
        name: NAME.to_owned(),
        text,
    }))
}
