//! Processes that stay up between turns.
//!
//! A CLI that takes one prompt after the other runs under a shim of its own, in a folder of its own
//! (`warm/CONVERSATION/ID`), beside the turns. A turn reaches it through a small process, [`stay`],
//! which the turn's own shim runs in place of the CLI: it passes on the prompt and the answers, copies
//! the output, and ends with the turn. A turn is therefore followed, stopped and settled like any
//! other.
//!
//! When a turn has succeeded and its session is confirmed, the process rests, for a bounded time. The
//! next turn gathers facts and decides as always. It uses the resting process only if it would resume
//! that session in place, with the same command in the same environment; otherwise the process is
//! ended first. Losing the process costs nothing but time.

mod launch;
mod pool;
mod run_link;
pub mod stay;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rejoin_core::{AgentName, ConversationId, FileMark, Micros, PinId};
use serde::{Deserialize, Serialize};

use crate::shim::{Begun, Order, ShimEnd, Spec, begun};
use crate::shim_link::ShimLink;
use crate::stray_processes;

pub(crate) use launch::is_live;
pub(crate) use run_link::{
    end_if_not_idle, end_of_cli, idle_host, printed_nothing, prompt_never_delivered,
};

/// File that describes a resting process, and its names while a turn has the process and when the
/// process is to end.
const REST: &str = "rest.json";
const TAKEN: &str = "taken.json";
const ENDING: &str = "ending.json";
/// File that requests a new process for the next turn.
const RELOAD: &str = "reload";
/// File with the fingerprint of the process's launch.
const ALIKE: &str = "alike";
/// Time that the process may take to end after its stdin is closed, and after it is told to stop.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
const STOPS_WITHIN: Duration = Duration::from_secs(4);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// Minimum time for which a process stays up after a turn has taken it.
const BEGINS_WITHIN: Duration = Duration::from_mins(1);
/// Number of bytes of output beyond which a process is not kept, because all its output is in one
/// file.
pub(crate) const MOST_SAID: u64 = 32 << 20;

/// Limits for resting processes: how many, for how long, and how large each may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Warm {
    pub most: usize,
    pub rest: Duration,
    pub bytes: u64,
}

/// State of a resting process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct IdleState {
    pub(crate) agent: AgentName,
    pub(crate) pin: PinId,
    /// Session file as the process knows it.
    pub(crate) file: Option<FileMark>,
    pub(crate) cursor: Option<String>,
    /// Fingerprint of its command and environment.
    pub(crate) alike: String,
    /// Number of bytes that it had printed.
    pub(crate) from: u64,
    /// Total cost by its own count.
    pub(crate) total: Option<Micros>,
    /// Time at which it began to rest, in microseconds since 1970.
    pub(crate) since: i64,
}

/// Folder of a process that stays up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WarmProcess {
    pub(crate) folder: PathBuf,
}

impl WarmProcess {
    /// Returns the folder for a new process.
    pub(crate) fn new(home: &Path, conversation: ConversationId, id: &str) -> Self {
        Self::at(&home.join("warm").join(conversation.to_string()).join(id))
    }

    pub(crate) fn at(folder: &Path) -> Self {
        let folder = folder.to_owned();
        Self { folder }
    }

    /// Returns the process that the run in `folder` goes through, if there is one.
    pub(crate) fn of_run(folder: &Path) -> Option<Self> {
        Spec::load(folder).ok()?.warm.as_deref().map(Self::at)
    }

    /// Returns all processes of a conversation.
    pub(crate) fn of(home: &Path, conversation: ConversationId) -> Vec<Self> {
        inside(&home.join("warm").join(conversation.to_string()))
    }

    pub(crate) fn all(home: &Path) -> Vec<Self> {
        let conversations = fs_err::read_dir(home.join("warm"));
        let conversations = conversations.into_iter().flatten().flatten();
        conversations.flat_map(|it| inside(&it.path())).collect()
    }

    /// Returns the state of the process, or None if it is not resting.
    pub(crate) fn kept(&self) -> Option<IdleState> {
        let rest = fs_err::read(self.folder.join(REST)).ok()?;
        serde_json::from_slice(&rest).ok()
    }

    /// Returns the state of the process if it can be used. Returns None if it is busy, has ended,
    /// or has printed more since.
    pub(crate) fn resting(&self) -> Option<IdleState> {
        self.kept()
            .filter(|rest| !self.has_ended() && self.said() == rest.from)
    }

    /// Returns the offset at which the output of the current turn begins.
    pub(crate) fn turn_from(&self) -> u64 {
        let taken = fs_err::read(self.folder.join(TAKEN)).ok();
        let rest = taken.and_then(|bytes| serde_json::from_slice::<IdleState>(&bytes).ok());
        rest.map_or(0, |rest| rest.from)
    }

    /// Asks that the process ends after the current turn instead of resting.
    pub(crate) fn ask_to_end(&self) {
        drop(fs_err::write(self.folder.join(RELOAD), ""));
    }

    pub(crate) fn is_asked_to_end(&self) -> bool {
        self.folder.join(RELOAD).exists()
    }

    /// Returns the number of bytes that the process has printed.
    pub(crate) fn said(&self) -> u64 {
        fs_err::metadata(self.folder.join("out")).map_or(0, |meta| meta.len())
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(ShimEnd::load(&self.folder), Ok(Some(_)) | Err(_))
    }

    /// Marks the process as resting, so that a turn can take it.
    pub(crate) fn keep(&self, rest: &IdleState) -> std::io::Result<()> {
        let temp = self.folder.join("rest.tmp");
        fs_err::write(&temp, serde_json::to_vec(rest)?)?;
        fs_err::rename(temp, self.folder.join(REST))
    }

    /// Marks the process as ending, so that no turn takes it. Returns false if a turn has it.
    pub(crate) fn is_to_end(&self) -> bool {
        let ending = self.folder.join(ENDING);
        ending.exists() || fs_err::rename(self.folder.join(REST), ending).is_ok()
    }

    /// Takes the process for a turn. Returns false if another turn took it, or if it is about to
    /// end.
    pub(crate) async fn take(&self) -> bool {
        let taken = fs_err::rename(self.folder.join(REST), self.folder.join(TAKEN));
        if taken.is_err() {
            return false;
        }
        // Calls that its hook reported in earlier turns must not be read again.
        crate::hook::forget(&self.folder);
        let ms = BEGINS_WITHIN.as_millis().try_into().unwrap_or(u64::MAX);
        match ShimLink::connect(&self.folder).await {
            Ok(Some(mut shim)) => shim.order(Order::Rest { ms }).await.is_ok(),
            Ok(None) | Err(_) => false,
        }
    }

    /// Ends the process. Returns when nothing of it runs any more and its folder is removed.
    pub(crate) async fn end(&self) {
        for (order, within) in [
            (Order::CloseStdin, ENDS_WITHIN),
            (Order::Stop, STOPS_WITHIN),
        ] {
            if self.is_gone() {
                break;
            }
            if let Ok(Some(mut shim)) = ShimLink::connect(&self.folder).await {
                drop(shim.order(order).await);
            }
            let since = Instant::now();
            while !self.is_gone() && since.elapsed() < within {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
        if let Some(mark) = self.mark().map(str::to_owned)
            && !self.has_ended()
        {
            let ended = tokio::task::spawn_blocking(move || stray_processes::end_marked(&mark));
            drop(ended.await);
        }
        drop(fs_err::remove_dir_all(&self.folder));
        if let Some(conversation) = self.folder.parent() {
            // Fails while there are other processes of the conversation.
            drop(fs_err::remove_dir(conversation));
        }
    }

    /// Returns the value of the marker in the process's environment.
    pub(crate) fn mark(&self) -> Option<&str> {
        self.folder.file_name()?.to_str()
    }

    /// Returns true if the folder was made so long ago that its process must have been started by
    /// now.
    pub(crate) fn is_old(&self) -> bool {
        let made = fs_err::metadata(&self.folder).and_then(|meta| meta.modified());
        let age = made.ok().and_then(|at| at.elapsed().ok());
        age.is_some_and(|age| age > BEGINS_WITHIN)
    }

    pub(crate) fn is_gone(&self) -> bool {
        let shim = match begun(&self.folder) {
            Ok(Begun::By(holder)) => holder.is_alive(),
            Ok(Begun::No | Begun::Void | Begun::Unclear) | Err(_) => false,
        };
        self.has_ended() || (!shim && stray_processes::live_cli(&self.folder).is_none())
    }
}

fn inside(folder: &Path) -> Vec<WarmProcess> {
    let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| WarmProcess::at(&entry.path()))
        .collect()
}

/// Returns the resting processes of this home, the one that has rested longest first.
pub(crate) fn all_resting(home: &Path) -> Vec<WarmProcess> {
    let hosts = WarmProcess::all(home).into_iter();
    let mut found: Vec<_> = hosts
        .filter_map(|host| Some((host.kept()?.since, host)))
        .collect();
    found.sort_by_key(|(since, _)| *since);
    found.into_iter().map(|(_, host)| host).collect()
}
