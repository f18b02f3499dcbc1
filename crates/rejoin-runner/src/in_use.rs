//! Is somebody else writing to a session? By what its CLI notes, or by the lock it holds.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rejoin_agents::{Adapter, OPEN_MARKER};
use rejoin_core::SessionId;

use crate::foreign_file;
use crate::holder::Holder;
use crate::process::tree;

/// At most so many notes of a CLI are read, of at most so many bytes each.
const NOTES: usize = 10_000;
const NOTE: u64 = 1 << 20;

/// A process that has this session open. None of ours is running: the turn before this one has
/// ended, and at most one runs at a time.
pub(crate) fn in_use(
    adapter: &'static dyn Adapter,
    home: &Path,
    session: &SessionId,
    place: Option<&str>,
) -> Option<u32> {
    if !writers_visible(adapter, session, place) {
        // What cannot be opened was not: nobody need be looked for.
        let opened = adapter.has_terminal().then(|| opened(session));
        return opened.flatten();
    }
    noted(adapter, home, session).or_else(|| {
        let held = |file: String| locked(&home.join(file));
        locks(adapter, session, place)
            .into_iter()
            .flatten()
            .find_map(held)
    })
}

/// Returns whether the CLI leaves a trace of a process that has the session open: a note or a lock.
pub(crate) fn writers_visible(
    adapter: &'static dyn Adapter,
    session: &SessionId,
    place: Option<&str>,
) -> bool {
    let locked = locks(adapter, session, place).iter().any(Option::is_some);
    adapter.live_marks().is_some() || locked
}

fn locks(
    adapter: &'static dyn Adapter,
    session: &SessionId,
    place: Option<&str>,
) -> [Option<String>; 2] {
    [
        adapter.lock_file(session),
        place.and_then(|place| adapter.lock_at(place)),
    ]
}

/// A terminal interface that we opened, where the CLI itself leaves no trace. By its marker, and by
/// its arguments: what it started has the marker as well. Zombies have neither.
fn opened(session: &SessionId) -> Option<u32> {
    let marker = format!("{OPEN_MARKER}={session}");
    let mut bytes = Vec::new();
    let mut has = |pid: i32, file: &str, text: &str| {
        tree::read_into(pid, file, &mut bytes);
        bytes.split(|b| *b == 0).any(|part| part == text.as_bytes())
    };
    // Arguments first: they are short, and next to nobody has these.
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

fn noted(adapter: &'static dyn Adapter, home: &Path, session: &SessionId) -> Option<u32> {
    let notes = fs_err::read_dir(home.join(adapter.live_marks()?)).ok()?;
    notes
        .flatten()
        .take(NOTES)
        .filter_map(|note| {
            let bytes = foreign_file::read_regular(note.path(), NOTE).ok()?;
            adapter.live_mark(&bytes)
        })
        .find(|mark| mark.session == *session && alive(mark.pid))
        .map(|mark| mark.pid)
}

/// Lines such as `2: FLOCK  ADVISORY  WRITE 4711 fe:00:263 0 EOF`.
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

/// Alive, not a zombie, and not left over from one of our own turns.
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
