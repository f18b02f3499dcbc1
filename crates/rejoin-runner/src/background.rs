//! Background work during a run: checkpoints the store's log, and captures the session of the turn
//! if snapshots outlive the machine. Of a snapshot from the middle of a turn, only the part that
//! was confirmed before the turn is ever used: it helps if that part could not be saved at its
//! time. Failures here are tried again and never fail the turn.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use rejoin_agents::Records;
use rejoin_core::{FileMark, Pin};
use rejoin_hub::fault;

use crate::capture::{Capture, OpenSession};
use crate::marks;
use crate::run::Run;
use crate::session::{Sessions, saved};
use crate::turn::Runner;

/// Time after which a run is expected to continue for a while.
const CHECKPOINT_AFTER: Duration = Duration::from_millis(150);

/// Interval between captures.
const CAPTURE_EVERY: Duration = Duration::from_secs(10);

impl Run<'_> {
    /// Returns the mark that the session had before the turn, or None if the turn began without a
    /// session of its own.
    fn confirmed_file(&self) -> Option<&FileMark> {
        let own = self.plan.confirmed.as_ref();
        own.filter(|_| self.plan.forked.is_none()).map(|c| &c.file)
    }

    /// Returns the session as it is now. A database, which cannot be cut back, is taken from the
    /// copy that was made before the run.
    async fn open_session(&self, confirmed: &FileMark) -> std::io::Result<OpenSession> {
        let home = Path::new(&self.plan.home);
        let (file, mark) = match self.adapter.profile().records {
            Records::Lines => {
                let adapter = self.adapter;
                let before = confirmed.clone();
                let mark = move |s: Sessions<'_>| {
                    marks::read_on(s.home, &before.path, Some(&before), |_| {})
                };
                let sessions = Sessions { adapter, home };
                let mark = sessions.on_worker(&confirmed.path, mark).await?;
                (home.join(&confirmed.path), mark)
            }
            Records::Database { .. } => (saved(&self.folder), confirmed.clone()),
        };
        // Written when everything was in place, before the CLI was started.
        let begun = fs_err::metadata(self.folder.join("spec.json"))?.modified()?;
        let begun = Some(begun);
        Ok(OpenSession { file, mark, begun })
    }
}

impl Runner {
    /// Awaits `following` and checkpoints the store meanwhile, 150 ms after the start, when no task waits for it.
    pub(crate) async fn with_checkpoint<T>(&self, following: impl Future<Output = T>) -> T {
        let work = async {
            tokio::time::sleep(CHECKPOINT_AFTER).await;
            self.hub.checkpoint();
            std::future::pending().await
        };
        tokio::select! {
            biased;
            done = following => done,
            never = work => never,
        }
    }

    /// Awaits `following` and captures its session at intervals, if snapshots outlive the machine.
    pub(crate) async fn with_periodic_capture<T>(
        &self,
        run: &Run<'_>,
        following: impl Future<Output = T>,
    ) -> T {
        let Some(confirmed) = run.confirmed_file().filter(|_| self.hub.keeps_elsewhere()) else {
            return following.await;
        };
        let every = fault::every().unwrap_or(CAPTURE_EVERY);
        let capturing = async {
            let mut last = None;
            loop {
                tokio::time::sleep(every).await;
                if let Some(length) = self.capture_open(run, confirmed, last).await {
                    last = Some(length);
                }
            }
        };
        tokio::select! {
            biased;
            done = following => done,
            () = capturing => std::future::pending().await,
        }
    }

    /// Captures the session of a run. Returns the length of the captured session, or None if the
    /// capture failed. `last` is the length of the previous capture; nothing is done if it is
    /// unchanged.
    async fn capture_open(
        &self,
        run: &Run<'_>,
        confirmed: &FileMark,
        last: Option<u64>,
    ) -> Option<u64> {
        let open = run.open_session(confirmed).await.ok()?;
        let length = open.mark.length;
        if last == Some(length) {
            return last;
        }
        let stored = self.hub.stored_pin(run.attempt.pin).await.ok()??;
        let pin = Pin {
            machine: self.hub.machine.clone(),
            home: run.plan.home.clone(),
            folder: run.plan.folder.clone(),
            files: vec![confirmed.clone()],
            ..stored.pin?
        };
        let capture = Capture {
            vault: self.hub.vault.as_ref()?,
            adapter: run.adapter,
            pin: &pin,
            before: Some(confirmed),
            now: self.hub.clock.now(),
            open: Some(open),
        };
        let captured = capture.bounded().await.ok()?;
        let added = self
            .hub
            .add_open_snapshot(run.claimed, &pin, &captured)
            .await;
        added.ok()?.then_some(length)
    }
}
