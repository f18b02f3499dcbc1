//! A run of a CLI, from its start to the end of its turn: it is followed, then either settled and
//! committed, or found to count for nothing. New, recovered and continued runs all pass through
//! here.

use std::path::PathBuf;

use rejoin_agents::Adapter;
use rejoin_core::{Class, Failure, Outcome};
use rejoin_hub::{AttemptPlan, Claimed, fault};
use rejoin_store::{Attempt, TurnRecord};
use tokio::sync::watch;

use crate::cost_limit::CostWatch;
use crate::error::Result;
use crate::process::ShimChild;
use crate::pump::{Pump, RunEnd, idle_limit};
use crate::settle::{kill_strays, refused_cleanly, settle};
use crate::turn::{Runner, TurnState};
use crate::warm::{end_if_not_idle, idle_host, prompt_never_delivered};

/// Run of a CLI as it was written ahead.
pub(crate) struct Run<'a> {
    pub(crate) claimed: &'a Claimed,
    pub(crate) adapter: &'static dyn Adapter,
    pub(crate) attempt: Attempt,
    pub(crate) plan: AttemptPlan,
    pub(crate) record: TurnRecord,
    /// Folder of the run, with the copies that were saved for it.
    pub(crate) folder: PathBuf,
    /// Identity of the program; None if another process started the run.
    pub(crate) program: Option<String>,
}

/// Reason why nothing of a run counts, so that its turn runs once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// The process that was to take the prompt ended first.
    NotDelivered,
    /// The CLI refused the session, and no tool ran (promise 4).
    Refused,
}

impl Run<'_> {
    /// Returns the reason to run the turn once more; None if this run is to be settled.
    pub(crate) async fn repeat(&self, end: &RunEnd) -> Option<Repeat> {
        if prompt_never_delivered(self, end).await {
            return Some(Repeat::NotDelivered);
        }
        // A continued run is never repeated: the runs before it count.
        let resumes = self.plan.continues() && self.plan.so_far.is_none();
        let refused = resumes && refused_cleanly(self, &end.ran).await;
        refused.then_some(Repeat::Refused)
    }

    /// Returns true if the CLI reported another version than the one that was detected.
    fn changed_program(&self, end: &RunEnd) -> bool {
        let detected = &self.plan.runtime.version.0;
        end.ran.version.as_ref().is_some_and(|ran| ran != detected)
    }
}

impl Runner {
    /// Follows a run to its end. Afterwards no process of the run is left, except one that waits for
    /// the next prompt and those that the turn may keep.
    pub(crate) async fn follow(
        &self,
        run: &Run<'_>,
        shim: Option<ShimChild>,
        cancel: watch::Receiver<bool>,
    ) -> Result<RunEnd> {
        let follow = self.pump(run, shim, cancel).follow();
        let captured = self.with_periodic_capture(run, follow);
        let mut end = self.with_checkpoint(captured).await?;
        kill_strays(run.claimed, &mut end)?;
        end_if_not_idle(&run.folder, &end).await;
        Ok(end)
    }

    /// Builds the reader of a run. `shim` is its process, if this process started it.
    pub(crate) fn pump<'p>(
        &'p self,
        run: &'p Run<'_>,
        shim: Option<ShimChild>,
        cancel: watch::Receiver<bool>,
    ) -> Pump<'p> {
        Pump {
            hub: &self.hub,
            run,
            committed: run.attempt.spool as u64,
            child: shim,
            cancel,
            idle: idle_limit(&self.config, run.claimed),
            cost: CostWatch::new(
                run.claimed.request.max_cost,
                &run.plan,
                &self.config.models,
                &run.folder,
            ),
            forbidden: None,
            wake: &self.wake,
        }
    }

    /// Retires the session that the CLI refused.
    pub(crate) async fn retire_refused(&self, run: &Run<'_>) -> Result<()> {
        let (claimed, pin) = (run.claimed, run.attempt.pin);
        self.hub.retire(claimed, pin, "refused by the CLI").await?;
        fault::point("after_refusal");
        Ok(())
    }

    /// Settles a run and ends its turn, or defers the turn if the run ended with a question.
    pub(crate) async fn conclude(&self, run: Run<'_>, mut end: RunEnd) -> Result<TurnState> {
        fault::point("before_settle");
        if let Some(program) = run.program.as_ref().filter(|_| run.changed_program(&end)) {
            // The program is a wrapper whose own file did not change while the program that it
            // starts did. Detect the version again next time.
            self.hub.forget_binary(program).await?;
        }
        if let Some(call) = end.deferred.take() {
            match self.defer(&run, &end, &call).await? {
                Ok(()) => return Ok(TurnState::Released),
                Err(why) => end.ran.outcome = cannot_continue(&why),
            }
        }
        if let Some(so_far) = &run.plan.so_far
            && end.ran.session.is_none()
            && let Outcome::Failed(failure) = &end.ran.outcome
        {
            let why = cannot_continue(&failure.message);
            self.hub.unheard(run.claimed, &so_far.call).await?;
            end.ran.outcome = why;
        }
        let total = end.ran.total;
        let host = idle_host(&run.folder, &end);
        let (machine, models) = (&self.hub.machine, &self.config.models);
        let mut settled = settle(&run, end, machine, models, host.as_ref()).await;
        let before = run.plan.confirmed.as_ref().map(|c| &c.file);
        self.capture(run.adapter, before, &mut settled).await;
        if let Some(host) = &host {
            self.keep_warm(host, &run, &settled, total).await;
        }
        self.finish(run.claimed, &settled).await?;
        if host.is_some() {
            self.make_room().await;
        }
        Ok(TurnState::Ended)
    }
}

/// Returns the outcome of a turn that could not continue after its question.
pub(crate) fn cannot_continue(why: &str) -> Outcome {
    Outcome::Lost(Failure {
        class: Class::Lost,
        message: format!("the agent's process had ended, and could not go on: {why}"),
    })
}
