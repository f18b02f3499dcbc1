//! Process table from `/proc`: parents, start times, zombies, command lines.
//!
//! Reading never fails: a process that ends while it is read is simply not in the result.

use std::collections::HashMap;
use std::io::Read as _;
use std::path::PathBuf;
use std::time::Duration;

use nix::unistd::{SysconfVar, sysconf};

/// Number of bytes to read at once: most files are shorter.
const AT_ONCE: usize = 4096;

/// Process at the time at which it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) start: u64,
    pub(crate) zombie: bool,
    /// True if a signal or a debugger stopped it.
    pub(crate) stopped: bool,
}

impl Entry {
    /// Returns the time since the process started, by a clock that cannot be set.
    pub(crate) fn age(&self) -> Duration {
        let ticks = sysconf(SysconfVar::CLK_TCK).ok().flatten();
        let ticks = ticks.and_then(|it| u64::try_from(it).ok()).unwrap_or(100);
        let started = Duration::from_millis(self.start.saturating_mul(1000) / ticks.max(1));
        rejoin_hub::Clock.since_boot().saturating_sub(started)
    }
}

/// Reads the process with this pid, if there is one.
pub(crate) fn read(pid: i32) -> Option<Entry> {
    let mut stat = Vec::new();
    read_into(pid, "stat", &mut stat);
    parse(pid, &stat)
}

/// Reads a file of the process; empty if the process is gone. Files in `/proc` have no size, so the
/// usual way of reading takes three times as many calls, and before a turn there may be hundreds of
/// files.
pub(crate) fn read_into(pid: i32, name: &str, bytes: &mut Vec<u8>) {
    bytes.clear();
    let Ok(mut file) = fs_err::File::open(file(pid, name)) else {
        return;
    };
    let mut len = 0;
    loop {
        bytes.resize(len + AT_ONCE, 0);
        match file.read(&mut bytes[len..]) {
            Ok(more) if more > 0 => len += more,
            Ok(_) | Err(_) => break,
        }
    }
    bytes.truncate(len);
}

/// Returns the pids of all visible processes.
pub(crate) fn pids() -> impl Iterator<Item = i32> {
    let entries = fs_err::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Returns all visible processes.
pub(crate) fn all() -> Vec<Entry> {
    pids().filter_map(read).collect()
}

/// Returns all descendants of `roots` in `table`, without the roots, and without following `stops`.
pub(crate) fn below(table: &[Entry], roots: &[i32], stops: &[i32]) -> Vec<Entry> {
    let mut children: HashMap<i32, Vec<&Entry>> = HashMap::new();
    for entry in table {
        children.entry(entry.parent).or_default().push(entry);
    }
    let mut found = Vec::new();
    let mut todo = roots.to_vec();
    while let Some(parent) = todo.pop() {
        // Removed, so that a table in which pids were reused cannot form a circle.
        for child in children.remove(&parent).unwrap_or_default() {
            if stops.contains(&child.pid) || roots.contains(&child.pid) {
                continue;
            }
            found.push(*child);
            todo.push(child.pid);
        }
    }
    found
}

/// Returns all live descendants of the calling process (zombies left out).
pub(crate) fn mine() -> Vec<Entry> {
    let me = nix::unistd::getpid().as_raw();
    let mut found = below(&all(), &[me], &[]);
    found.retain(|entry| !entry.zombie);
    found
}

/// Returns the children of a process with one thread, zombies included, from the kernel's own list: a process that
/// starts another one and ends cannot slip through it, as it can through the process table. None
/// without `CONFIG_PROC_CHILDREN`.
pub(crate) fn children(pid: i32) -> Option<Vec<i32>> {
    let listed = fs_err::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    let pids = listed.split_ascii_whitespace();
    Some(pids.filter_map(|pid| pid.parse().ok()).collect())
}

/// Returns the command line for display, at most 200 characters.
pub(crate) fn command(pid: i32) -> String {
    let raw = fs_err::read(file(pid, "cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&raw).replace('\0', " ");
    let text = if text.trim().is_empty() {
        fs_err::read_to_string(file(pid, "comm")).unwrap_or_default()
    } else {
        text
    };
    text.trim().chars().take(200).collect()
}

pub(crate) fn file(pid: i32, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{name}"))
}

/// Parses `/proc/PID/stat`. Fields are counted from the last `)`, because the name before it may
/// hold any characters.
fn parse(pid: i32, stat: &[u8]) -> Option<Entry> {
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(close + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let start = fields.nth(17)?.parse().ok()?;
    Some(Entry {
        pid,
        parent,
        start,
        zombie: matches!(state, "Z" | "X" | "x"),
        stopped: matches!(state, "T" | "t"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(pid: i32, parent: i32) -> Entry {
        Entry {
            pid,
            parent,
            start: 1,
            zombie: false,
            stopped: false,
        }
    }

    #[test]
    fn names_may_hold_anything() {
        let stat = b"7 (a) Z 1 (\n) S 3 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 1";
        assert_eq!(
            parse(7, stat),
            Some(Entry {
                start: 4242,
                ..entry(7, 3)
            })
        );
        let stopped = parse(
            7,
            b"7 (a) T 3 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 1",
        );
        assert!(stopped.is_some_and(|it| it.stopped && !it.zombie));
        assert_eq!(parse(7, b"7 (a"), None);
        assert_eq!(parse(7, b"7 (a) S 1"), None);
    }

    #[test]
    fn a_process_has_an_age() {
        let me = read(nix::unistd::getpid().as_raw());
        assert!(me.is_some_and(|it| it.age() < Duration::from_hours(24)));
    }

    #[test]
    fn descendants_without_roots_and_stops() {
        let table = [
            entry(2, 1),
            entry(3, 2),
            entry(4, 3),
            entry(5, 2),
            entry(6, 5),
            entry(9, 1),
        ];
        let mut pids: Vec<i32> = below(&table, &[2], &[5]).iter().map(|it| it.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [3, 4]);
        assert_eq!(below(&[entry(2, 3), entry(3, 2)], &[2], &[]), [entry(3, 2)]);
    }
}
