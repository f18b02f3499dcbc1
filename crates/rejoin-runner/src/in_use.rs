//! Detects if another process is writing to a session, by the notes of its CLI or by the lock it
//! holds.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rejoin_agents::{Adapter, LiveMark, OPEN_MARKER, Trace};
use rejoin_core::SessionId;

use crate::foreign_file;
use crate::holder::Holder;
use crate::process::tree;

/// Largest number of notes of a CLI that are read, and largest size of each in bytes.
const NOTES: usize = 10_000;
const NOTE: u64 = 1 << 20;

/// Returns a process that has this session open. It cannot be one of ours: the previous turn has
/// ended, and at most one runs at a time.
pub(crate) fn in_use(
    adapter: &'static dyn Adapter,
    home: &Path,
    session: &SessionId,
    place: Option<&str>,
) -> Option<u32> {
    match trace(adapter, session, place) {
        Some(Trace::Notes { folder, parse }) => noted(&home.join(folder), parse, session),
        Some(Trace::Lock(file)) => locked(&home.join(file)),
        // A CLI without a terminal interface cannot have been opened by us.
        None => adapter
            .capabilities()
            .terminal
            .and_then(|_| opened(session)),
    }
}

/// Returns true if the CLI leaves a trace of a process that has the session open: a note or a lock.
pub(crate) fn writers_visible(
    adapter: &'static dyn Adapter,
    session: &SessionId,
    place: Option<&str>,
) -> bool {
    trace(adapter, session, place).is_some()
}

fn trace(adapter: &dyn Adapter, session: &SessionId, place: Option<&str>) -> Option<Trace> {
    adapter.capabilities().in_use?.trace(session, place)
}

/// Finds a terminal interface that we opened, for CLIs that leave no trace themselves. It is found
/// by its marker and its arguments, because processes that it started have the marker too. Zombies
/// have neither.
fn opened(session: &SessionId) -> Option<u32> {
    let marker = format!("{OPEN_MARKER}={session}");
    let mut bytes = Vec::new();
    let mut has = |pid: i32, file: &str, text: &str| {
        tree::read_into(pid, file, &mut bytes);
        bytes.split(|b| *b == 0).any(|part| part == text.as_bytes())
    };
    // Arguments first: they are short, and hardly any process has these.
    let found = tree::pids()
        .find(|pid| has(*pid, "cmdline", session.as_str()) && has(*pid, "environ", &marker));
    found.and_then(|pid| pid.try_into().ok())
}

fn locked(file: &Path) -> Option<u32> {
    let meta = fs_err::metadata(file).ok()?;
    let locks = fs_err::read_to_string("/proc/locks").ok()?;
    let holder = locked_by(&locks, meta.dev(), meta.ino())?;
    alive(holder).then_some(holder)
}

fn noted(folder: &Path, parse: fn(&[u8]) -> Option<LiveMark>, session: &SessionId) -> Option<u32> {
    let notes = fs_err::read_dir(folder).ok()?;
    notes
        .flatten()
        .take(NOTES)
        .filter_map(|note| {
            let bytes = foreign_file::read_regular(note.path(), NOTE).ok()?;
            parse(&bytes)
        })
        .find(|mark| mark.session == *session && alive(mark.pid))
        .map(|mark| mark.pid)
}

/// Parses lines like `2: FLOCK  ADVISORY  WRITE 4711 fe:00:263 0 EOF`.
fn locked_by(locks: &str, device: u64, inode: u64) -> Option<u32> {
    let (major, minor) = (nix::sys::stat::major(device), nix::sys::stat::minor(device));
    let file = format!("{major:02x}:{minor:02x}:{inode}");
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().filter(|w| *w != "->").collect();
        let [_, _, _, _, pid, place, ..] = words[..] else {
            return None;
        };
        (place == file).then(|| pid.parse().ok()).flatten()
    })
}

/// Returns true if the process is alive, not a zombie, and not left over from one of our own turns.
fn alive(pid: u32) -> bool {
    let Ok(holder) = Holder::of(pid as i32) else {
        return false;
    };
    let ours = fs_err::read(format!("/proc/{pid}/environ")).is_ok_and(|env| {
        env.split(|b| *b == 0)
            .any(|v| v.starts_with(b"REJOIN_TURN="))
    });
    holder.is_alive() && !ours
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_names_its_holder() {
        let locks = "1: POSIX  ADVISORY  READ 12 fe:00:263 128 128\n\
                     2: FLOCK  ADVISORY  WRITE 4711 fe:01:264 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 99 fe:01:265 0 EOF\n";
        let device = nix::sys::stat::makedev(0xfe, 1);
        assert_eq!(locked_by(locks, device, 264), Some(4711));
        assert_eq!(locked_by(locks, device, 263), None);
        assert_eq!(locked_by("what\n", device, 264), None);
    }
}
