//! Processes that outlive even the shim: found by the marker in their environment, and ended.
//!
//! As long as the shim lives, it is the parent of all of a turn's processes and ends them itself.
//! If it was killed, they become children of pid 1, and only `REJOIN_TURN` in their environment tells
//! their turn; a tool started with `env -i` is found as the child of a marked process.

use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpid};

use crate::holder::Holder;
use crate::process::tree::{self, Entry};

/// Names of the marker. The second one passes Gemini's strict allow-list (0.61.0, `agents/risks.md`
/// 1).
pub const MARKERS: [&str; 2] = ["REJOIN_TURN", "GEMINI_CLI_REJOIN_TURN"];

/// Live process of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marked {
    pub pid: i32,
    pub start: u64,
    pub command: String,
}

/// Returns all live processes of `turn`: the marked ones and their descendants.
///
/// A live shim of the turn is among them. The caller and its ancestors never are, nor are processes
/// that the caller started, unless they carry the marker themselves.
pub fn marked(turn: &str) -> Vec<Marked> {
    let table = tree::all();
    let kin = self_and_ancestors(&table);
    let ours = |entry: &&Entry| !kin.contains(&entry.pid);
    let roots: Vec<Entry> = table
        .iter()
        .filter(ours)
        .filter(|it| is_marked(it.pid, turn))
        .copied()
        .collect();
    // A caller inside the turn is not included, but other children of its marked ancestors are.
    let mut starts: Vec<i32> = roots.iter().map(|entry| entry.pid).collect();
    starts.extend(kin.iter().skip(1).filter(|pid| is_marked(**pid, turn)));
    let mut found = roots;
    found.extend(tree::below(&table, &starts, &kin));
    found.retain(|entry| !entry.zombie);
    found.sort_unstable_by_key(|entry| entry.pid);
    found.dedup_by_key(|entry| entry.pid);
    found
        .into_iter()
        .map(|Entry { pid, start, .. }| Marked {
            pid,
            start,
            command: tree::command(pid),
        })
        .collect()
}

/// Kills these processes and all their descendants and waits until they are gone.
///
/// Returns the number of processes that were killed. They are stopped first: a stopped tree can be
/// listed completely, which matters here because orphans do not become our children.
pub fn end(processes: &[Marked]) -> io::Result<usize> {
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut targets: Vec<(i32, u64)> = processes.iter().map(|it| (it.pid, it.start)).collect();
    loop {
        let table = tree::all();
        let kin = self_and_ancestors(&table);
        targets.retain(|(pid, start)| {
            let alive = |it: &Entry| it.pid == *pid && it.start == *start && !it.zombie;
            table.iter().any(alive) && !kin.contains(pid)
        });
        let roots: Vec<i32> = targets.iter().map(|(pid, _)| *pid).collect();
        let mut more = tree::below(&table, &roots, &kin);
        more.retain(|entry| !entry.zombie);
        signal_all(&targets, Signal::SIGSTOP);
        if more.is_empty() || Instant::now() > deadline {
            break;
        }
        targets.extend(more.iter().map(|entry| (entry.pid, entry.start)));
    }
    signal_all(&targets, Signal::SIGKILL);
    let killed = targets.len();
    loop {
        targets.retain(|(pid, start)| {
            tree::read(*pid).is_some_and(|entry| entry.start == *start && !entry.zombie)
        });
        if targets.is_empty() {
            return Ok(killed);
        }
        if Instant::now() > deadline {
            let text = format!("{} processes do not end after SIGKILL", targets.len());
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Ends all processes of `turn`, and repeats until none is found. Returns their number.
pub fn end_marked(turn: &str) -> io::Result<usize> {
    let mut killed = 0;
    for _ in 0..20 {
        let found = marked(turn);
        if found.is_empty() {
            return Ok(killed);
        }
        killed += end(&found)?;
    }
    Err(io::Error::new(
        io::ErrorKind::TimedOut,
        "processes of the turn keep coming back",
    ))
}

/// Returns the CLI of the turn in `folder`, if `cli.json` names one and it still runs.
pub fn live_cli(folder: &Path) -> Option<Holder> {
    let text = fs_err::read(folder.join("cli.json")).ok()?;
    serde_json::from_slice::<Holder>(&text)
        .ok()
        .filter(Holder::is_alive)
}

fn signal_all(targets: &[(i32, u64)], signal: Signal) {
    for (pid, start) in targets {
        if tree::read(*pid).is_some_and(|entry| entry.start == *start) {
            kill(Pid::from_raw(*pid), signal).ok();
        }
    }
}

fn is_marked(pid: i32, turn: &str) -> bool {
    let Ok(environment) = fs_err::read(tree::file(pid, "environ")) else {
        return false;
    };
    environment.split(|byte| *byte == 0).any(|variable| {
        MARKERS.iter().any(|name| {
            variable
                .strip_prefix(name.as_bytes())
                .and_then(|rest| rest.strip_prefix(b"="))
                .is_some_and(|value| value == turn.as_bytes())
        })
    })
}

/// Returns the caller, its parent, and so on up to pid 1 (always included).
fn self_and_ancestors(table: &[Entry]) -> Vec<i32> {
    let mut kin = vec![getpid().as_raw()];
    while let Some(entry) = kin
        .last()
        .and_then(|pid| table.iter().find(|it| it.pid == *pid))
    {
        if entry.parent <= 0 || kin.contains(&entry.parent) {
            break;
        }
        kin.push(entry.parent);
    }
    if !kin.contains(&1) {
        kin.push(1);
    }
    kin
}
