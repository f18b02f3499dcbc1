//! Processes that stay up between turns.
//!
//! A CLI that takes one prompt after the other runs under a shim of its own, in a folder of its own
//! (`warm/CONVERSATION/ID`), beside the turns. A turn goes through it by a small process, [`stay`], which
//! the turn's own shim runs in the place of the CLI: it passes on the prompt and the answers, copies what
//! is printed, and ends with the turn. So a turn is followed, stopped and settled as every other.
//!
//! When a turn has succeeded and its session is confirmed, the process rests, for a bounded time. The
//! next turn looks and decides as ever; only if it would resume that session in its place, by the same
//! call in the same environment, it is told to the process that rests. In every other case that is ended
//! first. Losing it costs nothing but time.

mod alike;
mod launch;
mod rest;
pub mod stay;
mod through;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rejoin_core::{AgentName, ConversationId, FileMark, Micros, PinId};
use serde::{Deserialize, Serialize};

use crate::leftovers;
use crate::shim::{Begun, End, Order, Spec, begun};
use crate::shim_link::ShimLink;

pub(crate) use alike::alike;
pub(crate) use launch::is_live;
pub(crate) use through::{rests, see_off, seen, unheard, was_silent};

/// What is kept of a process that rests, and its name while a turn has it, or when it is to end.
const REST: &str = "rest.json";
const TAKEN: &str = "taken.json";
const ENDING: &str = "ending.json";
/// Somebody wants a new one.
const RELOAD: &str = "reload";
/// What it was started with.
const ALIKE: &str = "alike";
/// What it may take to end when its stdin is closed, and when it is told to stop.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
const STOPS_WITHIN: Duration = Duration::from_secs(4);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// One that was taken for a turn stays at least so long.
const BEGINS_WITHIN: Duration = Duration::from_mins(1);
/// Whoever has said more than this is not kept: it is all in one file.
pub(crate) const MOST_SAID: u64 = 32 << 20;

/// How many processes may rest, for how long, and how large each may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Warm {
    pub most: usize,
    pub rest: Duration,
    pub bytes: u64,
}

/// A process that rests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rest {
    pub(crate) agent: AgentName,
    pub(crate) pin: PinId,
    /// Its session, of which it knows no more than this.
    pub(crate) file: Option<FileMark>,
    pub(crate) cursor: Option<String>,
    /// What its call and its environment were.
    pub(crate) alike: String,
    /// What it had printed.
    pub(crate) from: u64,
    /// What it had cost, as it counts itself.
    pub(crate) total: Option<Micros>,
    /// When it began to rest, in seconds of the clock.
    pub(crate) since: i64,
}

/// The folder of a process that stays up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) folder: PathBuf,
}

impl Host {
    /// For a new one.
    pub(crate) fn new(home: &Path, conversation: ConversationId, id: &str) -> Self {
        Self::at(&home.join("warm").join(conversation.to_string()).join(id))
    }

    pub(crate) fn at(folder: &Path) -> Self {
        let folder = folder.to_owned();
        Self { folder }
    }

    /// Through which the run in `folder` goes.
    pub(crate) fn of_run(folder: &Path) -> Option<Self> {
        Spec::load(folder).ok()?.warm.as_deref().map(Self::at)
    }

    /// All of a conversation.
    pub(crate) fn of(home: &Path, conversation: ConversationId) -> Vec<Self> {
        inside(&home.join("warm").join(conversation.to_string()))
    }

    pub(crate) fn all(home: &Path) -> Vec<Self> {
        let conversations = fs_err::read_dir(home.join("warm"));
        let conversations = conversations.into_iter().flatten().flatten();
        conversations.flat_map(|it| inside(&it.path())).collect()
    }

    /// None: it is busy.
    pub(crate) fn kept(&self) -> Option<Rest> {
        let rest = fs_err::read(self.folder.join(REST)).ok()?;
        serde_json::from_slice(&rest).ok()
    }

    /// None: it is busy, has ended, or has said something since.
    pub(crate) fn resting(&self) -> Option<Rest> {
        self.kept()
            .filter(|rest| !self.has_ended() && self.said() == rest.from)
    }

    /// Where what it prints in this turn begins.
    pub(crate) fn turn_from(&self) -> u64 {
        let taken = fs_err::read(self.folder.join(TAKEN)).ok();
        let rest = taken.and_then(|bytes| serde_json::from_slice::<Rest>(&bytes).ok());
        rest.map_or(0, |rest| rest.from)
    }

    /// It is not to rest after the turn that runs.
    pub(crate) fn ask_to_end(&self) {
        drop(fs_err::write(self.folder.join(RELOAD), ""));
    }

    pub(crate) fn is_asked_to_end(&self) -> bool {
        self.folder.join(RELOAD).exists()
    }

    /// Bytes that it has printed.
    pub(crate) fn said(&self) -> u64 {
        fs_err::metadata(self.folder.join("out")).map_or(0, |meta| meta.len())
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(End::load(&self.folder), Ok(Some(_)) | Err(_))
    }

    /// It rests from now on, until somebody takes it.
    pub(crate) fn keep(&self, rest: &Rest) -> std::io::Result<()> {
        let temp = self.folder.join("rest.tmp");
        fs_err::write(&temp, serde_json::to_vec(rest)?)?;
        fs_err::rename(temp, self.folder.join(REST))
    }

    /// No turn gets it any more. False: one has it.
    pub(crate) fn is_to_end(&self) -> bool {
        let ending = self.folder.join(ENDING);
        ending.exists() || fs_err::rename(self.folder.join(REST), ending).is_ok()
    }

    /// Takes it for a turn. False: somebody else did, or it is about to end.
    pub(crate) async fn take(&self) -> bool {
        let taken = fs_err::rename(self.folder.join(REST), self.folder.join(TAKEN));
        if taken.is_err() {
            return false;
        }
        // What its hook told in earlier turns is not said again.
        crate::hook::forget(&self.folder);
        let ms = BEGINS_WITHIN.as_millis().try_into().unwrap_or(u64::MAX);
        match ShimLink::connect(&self.folder).await {
            Ok(Some(mut shim)) => shim.order(Order::Rest { ms }).await.is_ok(),
            Ok(None) | Err(_) => false,
        }
    }

    /// Ends it, and comes back when nothing of it runs any more; its folder goes as well.
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
            let ended = tokio::task::spawn_blocking(move || leftovers::end_marked(&mark));
            drop(ended.await);
        }
        drop(fs_err::remove_dir_all(&self.folder));
        if let Some(conversation) = self.folder.parent() {
            // Fails while there are others.
            drop(fs_err::remove_dir(conversation));
        }
    }

    /// The value of the marker in its environment.
    pub(crate) fn mark(&self) -> Option<&str> {
        self.folder.file_name()?.to_str()
    }

    /// It was made some time ago: whoever made it has started it by now.
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
        self.has_ended() || (!shim && leftovers::live_cli(&self.folder).is_none())
    }
}

fn inside(folder: &Path) -> Vec<Host> {
    let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| Host::at(&entry.path())).collect()
}

/// The processes that rest here, the one that has rested longest first.
pub(crate) fn all_resting(home: &Path) -> Vec<Host> {
    let hosts = Host::all(home).into_iter();
    let mut found: Vec<_> = hosts
        .filter_map(|host| Some((host.kept()?.since, host)))
        .collect();
    found.sort_by_key(|(since, _)| *since);
    found.into_iter().map(|(_, host)| host).collect()
}
