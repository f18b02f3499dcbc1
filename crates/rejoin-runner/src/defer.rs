//! Defers a turn: its agent put off a question and exited, so the turn is saved to continue later,
//! on any machine. The turn owns its session all the while.

use std::path::Path;

use rejoin_core::Pin;
use rejoin_hub::EarlierRuns;

use crate::capture::{Capture, OpenSession};
use crate::error::Result;
use crate::pump::RunEnd;
use crate::run::Run;
use crate::settle::{Deferral, read_deferral};
use crate::turn::Runner;

/// Limit for deferring one question although it was answered; beyond it, something other than our
/// hook defers it.
const MOST: u32 = 4;

impl Runner {
    /// Defers the turn. The inner error is the reason why the turn could not continue from there.
    pub(crate) async fn defer(
        &self,
        run: &Run<'_>,
        end: &RunEnd,
        call: &str,
    ) -> Result<std::result::Result<(), String>> {
        let (machine, models) = (&self.hub.machine, &self.config.models);
        let deferral = read_deferral(run, end, call, machine, models).await;
        let Deferral { so_far, pin } = match deferral {
            Ok(deferral) => deferral,
            Err(why) => return Ok(Err(why)),
        };
        if so_far.times > MOST {
            return Ok(Err("something else keeps putting the question off".into()));
        }
        self.capture_deferred(run, &so_far, pin).await?;
        let mut plan = run.plan.clone();
        plan.so_far = Some(so_far);
        self.hub.defer(run.claimed, run.attempt.n, &plan).await?;
        self.wake.send_modify(|n| *n += 1);
        self.clean_up(run.claimed);
        Ok(Ok(()))
    }

    /// Saves a snapshot of the session, if the store keeps sessions: without one, the turn can
    /// continue only on this machine. `pin` describes the session as it is; if the session was
    /// confirmed before the turn, the snapshot gets the confirmed pin.
    async fn capture_deferred(&self, run: &Run<'_>, so_far: &EarlierRuns, pin: Pin) -> Result<()> {
        let (Some(vault), plan) = (&self.hub.vault, &run.plan) else {
            return Ok(());
        };
        let stored = self.hub.stored_pin(run.attempt.pin).await?;
        let confirmed = plan.confirmed.as_ref().map(|c| &c.file);
        let pin = match stored.and_then(|stored| stored.pin) {
            Some(known) => Pin {
                machine: pin.machine,
                home: pin.home,
                folder: pin.folder,
                files: confirmed.cloned().into_iter().collect(),
                ..known
            },
            None => pin,
        };
        let capture = Capture {
            vault,
            adapter: run.adapter,
            pin: &pin,
            before: confirmed,
            now: self.hub.clock.now(),
            open: Some(OpenSession {
                file: Path::new(&plan.home).join(&so_far.file.path),
                mark: so_far.file.clone(),
                begun: None,
            }),
        };
        if let Ok(captured) = capture.bounded().await {
            self.hub
                .add_open_snapshot(run.claimed, &pin, &captured)
                .await?;
        }
        Ok(())
    }
}
