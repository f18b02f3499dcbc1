//! What is done while a run goes on: the log of the store is emptied, and the session of the turn is kept, where
//! what is kept outlives the machine. Of such a snapshot only what was confirmed before the turn is ever
//! used: it serves where that could not be saved at its time. What goes wrong here is tried again, and
//! never spoils the turn.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use rejoin_agents::{Adapter, Records};
use rejoin_core::{FileMark, Pin, PinId};
use rejoin_hub::{AttemptPlan, Claimed, fault};

use crate::capture::{Capture, Lying};
use crate::marks;
use crate::session::{Sessions, saved};
use crate::turn::Runner;

/// A run that has gone on for so long will for a while.
const TAKES_ITS_TIME: Duration = Duration::from_millis(150);

/// How often it is captured.
const EVERY: Duration = Duration::from_secs(10);

/// A run that goes on.
pub(crate) struct Running<'a> {
    pub(crate) adapter: &'static dyn Adapter,
    pub(crate) claimed: &'a Claimed,
    pub(crate) plan: &'a AttemptPlan,
    pub(crate) pin: PinId,
    /// Of the run, with what was saved for it.
    pub(crate) folder: &'a Path,
}

impl Running<'_> {
    /// What it began with; none: nothing that could be used again.
    fn confirmed(&self) -> Option<&FileMark> {
        let own = self.plan.confirmed.as_ref();
        own.filter(|_| self.plan.forked.is_none()).map(|c| &c.file)
    }

    /// The session as it lies. What cannot be cut back is taken as it was copied before the run.
    async fn lying(&self, confirmed: &FileMark) -> std::io::Result<Lying> {
        let home = Path::new(&self.plan.home);
        let (file, mark) = match self.adapter.records() {
            Records::Lines => {
                let adapter = self.adapter;
                let before = confirmed.clone();
                let mark = move |s: Sessions<'_>| {
                    marks::read_on(s.home, &before.path, Some(&before), |_| {})
                };
                let sessions = Sessions { adapter, home };
                let mark = sessions.apart(&confirmed.path, mark).await?;
                (home.join(&confirmed.path), mark)
            }
            Records::Database { .. } => (saved(self.folder), confirmed.clone()),
        };
        // Written when everything was in its place, before the CLI was started.
        let begun = fs_err::metadata(self.folder.join("spec.json"))?.modified()?;
        let begun = Some(begun);
        Ok(Lying { file, mark, begun })
    }
}

impl Runner {
    /// Does what can be done while nobody waits for it.
    pub(crate) async fn unhurried<T>(&self, run: impl Future<Output = T>) -> T {
        let work = async {
            tokio::time::sleep(TAKES_ITS_TIME).await;
            self.hub.store.write_back();
            std::future::pending().await
        };
        tokio::select! {
            biased;
            done = run => done,
            never = work => never,
        }
    }

    /// Sees to it that a run that goes on is captured now and then.
    pub(crate) async fn keeping<T>(
        &self,
        running: &Running<'_>,
        run: impl Future<Output = T>,
    ) -> T {
        let Some(confirmed) = running.confirmed().filter(|_| self.hub.keeps_elsewhere()) else {
            return run.await;
        };
        let every = fault::every().unwrap_or(EVERY);
        let capturing = async {
            let mut last = None;
            loop {
                tokio::time::sleep(every).await;
                if let Some(length) = self.capture_open(running, confirmed, last).await {
                    last = Some(length);
                }
            }
        };
        tokio::select! {
            biased;
            done = run => done,
            () = capturing => std::future::pending().await,
        }
    }

    /// Gives the length of what is kept; none: it could not be. `last`: what is kept already.
    async fn capture_open(
        &self,
        running: &Running<'_>,
        confirmed: &FileMark,
        last: Option<u64>,
    ) -> Option<u64> {
        let lying = running.lying(confirmed).await.ok()?;
        let length = lying.mark.length;
        if last == Some(length) {
            return last;
        }
        let stored = {
            let mut read = self.hub.store.read().await.ok()?;
            read.pin(running.pin).await.ok()??
        };
        let pin = Pin {
            machine: self.hub.machine.clone(),
            home: running.plan.home.clone(),
            folder: running.plan.folder.clone(),
            files: vec![confirmed.clone()],
            ..stored.pin?
        };
        let capture = Capture {
            vault: self.hub.vault.as_ref()?,
            adapter: running.adapter,
            pin: &pin,
            before: Some(confirmed),
            now: self.hub.clock.now(),
            lying: Some(lying),
        };
        let captured = capture.bounded().await.ok()?;
        let added = self
            .hub
            .add_open_snapshot(running.claimed, &pin, &captured)
            .await;
        added.ok()?.then_some(length)
    }
}
