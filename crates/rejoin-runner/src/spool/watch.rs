//! Waits until something in a turn's folder may have changed, without polling it.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use tokio::net::unix::pipe::Receiver;
use tokio::time;

/// Watches a turn's folder: growth of the spools, and the appearance of `end.json`.
///
/// Made before the first look at the files, it misses nothing that comes after.
#[derive(Debug)]
pub struct Watch {
    /// None if the system has no inotify instance left for us: then we look often.
    ///
    /// `Receiver` is meant for pipes; all that is used of it is readiness and `read`, which are
    /// the same for inotify. `AsyncFd` would say it better, but tokio 1.54 has deprecated all its
    /// safe constructors and `unsafe` is forbidden here.
    inotify: Option<Receiver>,
}

/// Should a wake-up ever get lost, it is late by no more than this.
const SAFETY: Duration = Duration::from_secs(1);
const WITHOUT_INOTIFY: Duration = Duration::from_millis(50);

impl Watch {
    /// Needs a tokio runtime around it.
    pub fn new(folder: &Path) -> Self {
        Self {
            inotify: start(folder).ok(),
        }
    }

    /// Resolves when something may have changed, after a second at the latest.
    ///
    /// Can be dropped and called again without missing a change.
    pub async fn changed(&self) {
        match &self.inotify {
            Some(inotify) => drop(time::timeout(SAFETY, drain(inotify)).await),
            None => time::sleep(WITHOUT_INOTIFY).await,
        }
    }
}

fn start(folder: &Path) -> io::Result<Receiver> {
    let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
    let changes = AddWatchFlags::IN_MODIFY
        | AddWatchFlags::IN_CREATE
        | AddWatchFlags::IN_MOVED_TO
        | AddWatchFlags::IN_DELETE_SELF;
    inotify.add_watch(folder, changes)?;
    Receiver::from_owned_fd_unchecked(OwnedFd::from(inotify))
}

/// Takes all events that wait: only that there were some matters.
async fn drain(inotify: &Receiver) -> io::Result<()> {
    let mut block = [0; 4096];
    let mut heard = false;
    while !heard {
        inotify.readable().await?;
        while inotify.try_read(&mut block).is_ok_and(|count| count > 0) {
            heard = true;
        }
    }
    Ok(())
}
