//! Identity of a process that cannot be confused with a later process.
//!
//! A pid alone is reused. Boot id, pid and start time together are not, so a reader of this
//! identity can tell if the process is still alive.

use std::fmt;
use std::io;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::process::tree;

/// Process of one boot of one machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Holder {
    pub boot: String,
    pub pid: i32,
    /// Start time in clock ticks since boot, field 22 of `/proc/PID/stat`.
    pub start: u64,
}

impl Holder {
    /// Returns the identity of the calling process.
    pub fn me() -> io::Result<Self> {
        Self::of(nix::unistd::getpid().as_raw())
    }

    /// Returns the identity of the process that has this pid now (a zombie counts).
    pub fn of(pid: i32) -> io::Result<Self> {
        let boot = fs_err::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let entry = tree::read(pid)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no process {pid}")))?;
        Ok(Self {
            boot: boot.trim().to_owned(),
            pid,
            start: entry.start,
        })
    }

    /// Returns true if this is the calling process.
    pub fn is_me(&self) -> bool {
        let pid = nix::unistd::getpid().as_raw();
        self.pid == pid && Self::me().is_ok_and(|me| me == *self)
    }

    /// Returns true if this very process still runs (a zombie does not).
    pub fn is_alive(&self) -> bool {
        let alive = tree::read(self.pid).is_some_and(|it| it.start == self.start && !it.zombie);
        alive && Self::of(self.pid).is_ok_and(|now| now == *self)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.boot, self.pid, self.start)
    }
}

impl FromStr for Holder {
    type Err = ParseHolderError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.rsplitn(3, ':');
        let start = parts.next().and_then(|part| part.parse().ok());
        let pid = parts.next().and_then(|part| part.parse().ok());
        match (parts.next(), pid, start) {
            (Some(boot), Some(pid), Some(start)) if !boot.is_empty() && pid > 0 => Ok(Self {
                boot: boot.to_owned(),
                pid,
                start,
            }),
            _ => Err(ParseHolderError),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a process name of the form boot:pid:start")]
pub struct ParseHolderError;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn says_and_reads_itself() {
        let me = Holder::me().unwrap();
        assert!(me.is_alive() && me.is_me());
        assert!(!Holder::of(1).is_ok_and(|other| other.is_me()));
        assert_eq!(me.to_string().parse(), Ok(me.clone()));
        let json = serde_json::to_string(&me).unwrap();
        assert_eq!(serde_json::from_str::<Holder>(&json).unwrap(), me);
    }

    #[test]
    fn another_start_or_boot_is_another_process() {
        let me = Holder::me().unwrap();
        assert!(
            !Holder {
                start: me.start + 1,
                ..me.clone()
            }
            .is_alive()
        );
        assert!(
            !Holder {
                boot: "other".to_owned(),
                ..me
            }
            .is_alive()
        );
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "::", "b:1", "b:x:1", "b:1:x", ":1:1", "b:-1:1", "b:0:1"] {
            assert_eq!(text.parse::<Holder>(), Err(ParseHolderError), "{text}");
        }
    }
}
