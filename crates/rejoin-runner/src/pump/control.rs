//! Control of a run through its shim: notifications from the shim, and orders to it.

use std::path::Path;
use std::time::Duration;

use rejoin_hub::Claimed;

use super::watchdog::FirstStop;
use crate::holder::Holder;
use crate::process::ShimChild;
use crate::shim::{Begun, KNOWS_LEASES, Order, StopReason, begun};
use crate::shim_link::{News, ShimLink};
use crate::stray_processes;

/// First pause before a shim that does not listen (yet, or any more) is tried again. The pause
/// doubles up to `LATER`.
const SOON: Duration = Duration::from_millis(1);
const LATER: Duration = Duration::from_millis(40);
/// Longest delay if a notification gets lost.
const SAFETY: Duration = Duration::from_secs(1);

/// Connection to the shim, and what the run was told so far.
pub(super) struct Control {
    pub(super) shim: Option<ShimLink>,
    pub(super) cancelled: bool,
    /// True if the run exceeded its idle limit.
    pub(super) too_long: bool,
    /// True if the run reached its cost limit.
    pub(super) too_dear: bool,
    /// True if the run must be stopped at once: the CLI continues another session than it was asked
    /// to, or would never end.
    pub(super) wrong: bool,
    interrupted: bool,
    stopped: bool,
    /// Deadline of the lease that the shim knows.
    leased: Option<u64>,
    pause: Duration,
}

impl Default for Control {
    fn default() -> Self {
        Self {
            shim: None,
            cancelled: false,
            too_long: false,
            too_dear: false,
            wrong: false,
            interrupted: false,
            stopped: false,
            leased: None,
            pause: SOON,
        }
    }
}

impl Control {
    /// Connects to the shim of the run in `folder`, unless that is done: through the connection to
    /// our child, or its socket.
    pub(super) async fn connect(&mut self, child: &mut Option<ShimChild>, folder: &Path) {
        if self.shim.is_some() {
            return;
        }
        let line = child.as_mut().and_then(ShimChild::line);
        let link = match line {
            Some(line) => ShimLink::adopt(line).await,
            None => ShimLink::connect(folder).await,
        };
        self.shim = link.unwrap_or(None);
    }

    /// Tells the shim until when the turn's lease lasts, if that changed.
    pub(super) async fn renew_lease(&mut self, claimed: &Claimed) {
        let deadline = claimed.lease.deadline();
        let knows = |link: &ShimLink| link.hello().shim >= KNOWS_LEASES;
        if let Some(until_ms) = deadline.filter(|_| deadline != self.leased)
            && self.shim.as_ref().is_some_and(knows)
            && self.tell(Order::Lease { until_ms }).await
        {
            self.leased = deadline;
        }
    }

    /// Stops or interrupts the run in `folder` if it must end. Repeated until it is delivered,
    /// because the shim may not listen yet.
    pub(super) async fn enforce(&mut self, folder: &Path, ending: &FirstStop) {
        let interrupt = self.cancelled || self.too_long || self.too_dear;
        if self.wrong {
            ending.begin(StopReason::Stopped);
        } else if interrupt {
            ending.begin(StopReason::Interrupted);
        }
        if self.wrong && !self.stopped {
            self.stopped = self.order_or_signal(Order::Stop, folder).await;
        }
        if interrupt && !self.interrupted {
            self.interrupted = self.order_or_signal(Order::Interrupt, folder).await;
        }
    }

    async fn order_or_signal(&mut self, order: Order, folder: &Path) -> bool {
        match self.shim {
            Some(_) => self.tell(order).await,
            None => interrupt_by_signal(folder),
        }
    }

    /// Waits until there may be new output. The shim sends notifications itself, because the kernel
    /// takes ten milliseconds to remove a watch on a folder, at the end of every turn.
    pub(super) async fn news(&mut self) {
        let Self { shim, pause, .. } = self;
        match shim {
            Some(link) => {
                if matches!(
                    tokio::time::timeout(SAFETY, link.news()).await,
                    Ok(News::HungUp)
                ) {
                    *shim = None;
                }
                *pause = SOON;
            }
            None => {
                tokio::time::sleep(*pause).await;
                *pause = (*pause * 2).min(LATER);
            }
        }
    }

    /// Sends an order. Returns true if the shim received it. A shim that does not listen any more is
    /// about to end.
    async fn tell(&mut self, order: Order) -> bool {
        let Some(link) = &mut self.shim else {
            return false;
        };
        let heard = link.order(order).await.is_ok();
        if !heard {
            self.shim = None;
        }
        heard
    }
}

/// Sends SIGINT to the shim of the run in `folder`, or to the CLI if the shim is gone. Returns true
/// if one of them received it.
fn interrupt_by_signal(folder: &Path) -> bool {
    let shim = begun(folder).ok().and_then(|b| match b {
        Begun::By(holder) => Some(holder),
        Begun::No | Begun::Void | Begun::Unclear => None,
    });
    let target = shim
        .filter(Holder::is_alive)
        .or_else(|| stray_processes::live_cli(folder));
    target.is_some_and(|holder| {
        let pid = nix::unistd::Pid::from_raw(holder.pid);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).is_ok()
    })
}
