//! The wall: keeps the processes of a run from rejoin's own folders, by means of the kernel.
//!
//! The runner plans a wall before a turn ([`plan`]), and the shim builds it in a thread of its own, in
//! which it starts the CLI. Both mechanisms belong to a thread and pass on to everything that it starts,
//! so the shim stays outside, and a process of the run cannot leave.

mod aliases;
mod calls;
mod namespace;
mod plan;
mod rules;

use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use fs_err::os::unix::fs::OpenOptionsExt;
use serde::{Deserialize, Serialize};

pub(crate) use plan::{Site, plan};
pub use plan::{WallPlan, here};

/// Stack of the thread that builds the wall and starts the CLI.
const STACK: usize = 256 * 1024;

/// `[wall]` of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WallConfig {
    pub mode: WallMode,
    /// Folders to protect; a missing one is protected against being made.
    pub folders: Vec<PathBuf>,
}

/// Condition under which a wall is built.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WallMode {
    /// Build a wall if the machine can.
    Auto,
    #[default]
    Off,
    /// Refuse a turn without a wall.
    Required,
}

/// Kernel mechanism that keeps processes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    /// Empty folders are mounted over the protected ones; Landlock and the loss of three
    /// capabilities prevent undoing that.
    Namespace,
    /// Mounts without that lock, for a CLI that mounts folders itself to build a sandbox.
    BareNamespace,
    /// Landlock grants access to everything but the protected folders.
    Landlock,
}

/// Wall around one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wall {
    pub mechanism: Mechanism,
    /// Folders that no process of the run can read or change.
    pub closed: Vec<PathBuf>,
    /// Files and folders below those that the run needs nevertheless.
    pub gaps: Vec<Gap>,
}

/// Opening in the wall.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Gap {
    pub path: PathBuf,
    /// True for a file that may be written, which is created if it is missing. False for a file or
    /// folder to read.
    pub write: bool,
}

impl Gap {
    pub(crate) fn to_read(path: PathBuf) -> Self {
        Self { path, write: false }
    }

    pub(crate) fn to_write(path: PathBuf) -> Self {
        Self { path, write: true }
    }

    /// Returns the gap with its real path. Creates a missing file that may be written.
    fn resolve(&self) -> io::Result<Self> {
        if self.write {
            let mut options = fs_err::OpenOptions::new();
            options.append(true).create(true).mode(0o600);
            drop(options.open(&self.path)?);
        }
        let path = fs_err::canonicalize(&self.path)?;
        Ok(Self { path, ..*self })
    }
}

impl Wall {
    /// Runs `start` behind the wall. Starts nothing if the wall cannot be built.
    pub(crate) fn behind<T: Send>(
        &self,
        start: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        let failed =
            |error: io::Error| io::Error::new(error.kind(), format!("building the wall: {error}"));
        in_thread(|| {
            self.build().map_err(failed)?;
            start()
        })
    }

    /// Builds the wall around the calling thread, permanently.
    fn build(&self) -> io::Result<()> {
        let mut gaps: Vec<Gap> = self
            .gaps
            .iter()
            .map(Gap::resolve)
            .collect::<Result<_, _>>()?;
        // A folder comes before the files in it.
        gaps.sort_unstable();
        match self.mechanism {
            Mechanism::Namespace => {
                namespace::cover(&self.closed, &gaps)?;
                namespace::lock()?;
            }
            Mechanism::BareNamespace => {
                namespace::cover(&self.closed, &gaps)?;
                rules::isolate()?;
            }
            Mechanism::Landlock => rules::allow_all_but(&self.closed, &gaps)?,
        }
        calls::refuse()
    }
}

/// Runs `act` in a thread of its own and returns its result.
fn in_thread<T: Send>(act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK);
        let thread = thread.spawn_scoped(scope, act)?;
        let panicked = |_| Err(io::Error::other("the thread panicked"));
        thread.join().unwrap_or_else(panicked)
    })
}

/// Returns the real path of a folder whose last parts may be missing.
fn real(path: &Path) -> PathBuf {
    let found = path
        .ancestors()
        .find_map(|existing| Some((fs_err::canonicalize(existing).ok()?, existing)));
    match found {
        Some((real, existing)) => {
            let missing = path.strip_prefix(existing).unwrap_or(Path::new(""));
            // Joining an empty path would add a slash at the end.
            if missing.as_os_str().is_empty() {
                real
            } else {
                real.join(missing)
            }
        }
        None => path.to_owned(),
    }
}
