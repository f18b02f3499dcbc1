//! Finds out whether a process belongs to a turn: by the marker in its environment, or in that of one
//! of its ancestors. The shim carries the marker and is the subreaper of its turn, so a process that
//! cleared its environment or left its parent is still found below it. Behind a wall the environment of
//! the shim cannot be read; its command line can.

use crate::leftovers::MARKERS;
use crate::process::tree;

/// What is known of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Descent {
    /// It belongs to the turn, or to the warm process, with this marker.
    Turn(String),
    /// Neither it nor an ancestor carries a marker.
    Free,
    /// It has ended: nothing can be said of it.
    Gone,
}

/// Looks at a process and its ancestors.
pub fn of(pid: i32) -> Descent {
    let mut chain = ancestors(pid).peekable();
    if chain.peek().is_none() {
        return Descent::Gone;
    }
    let found = chain.find_map(|pid| marker(pid).or_else(|| shim(pid)));
    found.map_or(Descent::Free, Descent::Turn)
}

/// The turn that this process belongs to.
pub fn own_turn() -> Option<String> {
    match of(nix::unistd::getpid().as_raw()) {
        Descent::Turn(turn) => Some(turn),
        Descent::Free | Descent::Gone => None,
    }
}

/// The process, its parent, and so on; empty if it has ended.
pub(crate) fn ancestors(pid: i32) -> impl Iterator<Item = i32> {
    let alive = tree::read(pid).filter(|entry| !entry.zombie);
    // Bounded: pids that move while they are read must not lead round in a circle.
    std::iter::successors(alive, |entry| tree::read(entry.parent))
        .take(1024)
        .map(|entry| entry.pid)
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

/// The command line of a shim.
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
