//! Finds out if a process belongs to a turn: by the marker in its environment, or in that of one of
//! its ancestors. The shim carries the marker and is the subreaper of its turn, so a process that
//! cleared its environment or left its parent is still found below it. Behind a wall the
//! environment of the shim cannot be read; its command line can.

use crate::process::tree::{self, Entry};
use crate::stray_processes::MARKERS;

/// Origin of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Descent {
    /// Belongs to the turn, or to the warm process, with this marker.
    Turn(String),
    /// Neither the process nor an ancestor carries a marker.
    Free,
    /// The process has ended, so its origin is unknown.
    Gone,
}

/// Number of attempts to read a line of ancestors that changes meanwhile.
const ATTEMPTS: usize = 100;

/// Determines the origin of a process from itself and its ancestors.
///
/// The answer is `Free` only if no ancestor ended or changed its parent before all of them were
/// looked at: the child of an ancestor that ends moves up to the shim, and the line that was read
/// before would not lead there. A process whose ancestors keep ending counts as gone.
pub fn of(pid: i32) -> Descent {
    for _ in 0..ATTEMPTS {
        match lineage(pid, tree::read) {
            Lineage::Gone => return Descent::Gone,
            Lineage::Changed => {}
            Lineage::Whole(line) => {
                let found = line
                    .iter()
                    .find_map(|it| marker(it.pid).or_else(|| shim(it.pid)));
                if let Some(turn) = found {
                    return Descent::Turn(turn);
                }
                if is_current(&line, tree::read) {
                    return Descent::Free;
                }
            }
        }
    }
    Descent::Gone
}

/// Ancestors of a process, as they were read.
#[derive(Debug, PartialEq, Eq)]
enum Lineage {
    /// The process and all its ancestors that can be seen, the nearest first.
    Whole(Vec<Entry>),
    /// An ancestor ended meanwhile.
    Changed,
    /// The process has ended.
    Gone,
}

fn lineage(pid: i32, read: impl Fn(i32) -> Option<Entry>) -> Lineage {
    let Some(first) = read(pid).filter(|entry| !entry.zombie) else {
        return Lineage::Gone;
    };
    let mut line = vec![first];
    let mut last = first;
    // Bounded, because pids that are reused while they are read could form a circle.
    while last.parent > 0 && line.len() < 1024 {
        let Some(parent) = read(last.parent) else {
            // A living child has a living parent: one that cannot be read ended meanwhile, or is
            // hidden (another container, `hidepid`).
            let hidden = read(last.pid) == Some(last);
            return if hidden {
                Lineage::Whole(line)
            } else {
                Lineage::Changed
            };
        };
        line.push(parent);
        last = parent;
    }
    Lineage::Whole(line)
}

/// Returns true if every process of the line still has the same parent.
fn is_current(line: &[Entry], read: impl Fn(i32) -> Option<Entry>) -> bool {
    let same = |was: &Entry| {
        read(was.pid).is_some_and(|now| (now.parent, now.start) == (was.parent, was.start))
    };
    line.iter().all(same)
}

/// Returns the turn that this process belongs to, if any.
pub fn own_turn() -> Option<String> {
    match of(nix::unistd::getpid().as_raw()) {
        Descent::Turn(turn) => Some(turn),
        Descent::Free | Descent::Gone => None,
    }
}

/// Returns the parent of a process that runs.
pub(crate) fn parent(pid: i32) -> Option<i32> {
    let alive = tree::read(pid).filter(|entry| !entry.zombie);
    alive.map(|entry| entry.parent)
}

fn marker(pid: i32) -> Option<String> {
    let mut environment = Vec::new();
    tree::read_into(pid, "environ", &mut environment);
    environment.split(|byte| *byte == 0).find_map(|variable| {
        let variable = String::from_utf8_lossy(variable);
        let (name, value) = variable.split_once('=')?;
        MARKERS.contains(&name).then(|| value.to_owned())
    })
}

/// Returns the command line of the process if it is a shim.
fn shim(pid: i32) -> Option<String> {
    let mut line = Vec::new();
    tree::read_into(pid, "cmdline", &mut line);
    let ours = line.starts_with(b"rejoin\0shim\0");
    ours.then(|| String::from_utf8_lossy(&line).replace('\0', " "))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    use nix::sys::signal::Signal;

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

    /// 40 is the child of 30, 30 of 20, 20 of the shim 10. 20 ends after 30 was read.
    #[test]
    fn an_ancestor_that_ends_meanwhile_does_not_end_the_line() {
        let ended = std::cell::Cell::new(false);
        let read = |pid: i32| match pid {
            40 => Some(entry(40, 30)),
            30 if ended.get() => Some(entry(30, 10)),
            30 => {
                ended.set(true);
                Some(entry(30, 20))
            }
            10 => Some(entry(10, 1)),
            1 => Some(entry(1, 0)),
            _ => None,
        };
        assert_eq!(lineage(40, read), Lineage::Changed);
        let Lineage::Whole(line) = lineage(40, read) else {
            panic!("the line does not change any more");
        };
        assert_eq!(
            line.iter().map(|it| it.pid).collect::<Vec<_>>(),
            [40, 30, 10, 1]
        );
        assert!(is_current(&line, read));
        let moved = |pid: i32| {
            if pid == 40 {
                Some(entry(40, 10))
            } else {
                read(pid)
            }
        };
        assert!(!is_current(&line, moved));
    }

    #[test]
    fn a_parent_that_is_hidden_ends_the_line() {
        let read = |pid: i32| (pid == 40).then(|| entry(40, 30));
        assert_eq!(lineage(40, read), Lineage::Whole(vec![entry(40, 30)]));
        assert_eq!(lineage(50, read), Lineage::Gone);
    }

    /// A grandchild without any environment, below a process with the marker.
    #[test]
    #[allow(clippy::disallowed_methods)]
    fn a_cleared_environment_does_not_hide_a_process() {
        let mut marked = Command::new("sh")
            .args(["-c", "env -i sh -c 'echo $$; exec sleep 600' & wait"])
            .env("REJOIN_TURN", "a-turn")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = marked.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let pid: i32 = line.trim().parse().unwrap();
        assert_eq!(of(pid), Descent::Turn("a-turn".into()));
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGKILL).unwrap();
        marked.wait().unwrap();
        assert_eq!(of(i32::MAX), Descent::Gone);
    }
}
