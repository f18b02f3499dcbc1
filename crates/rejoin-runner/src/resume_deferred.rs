//! Continues a deferred turn once its question is answered: in a new process, with the session as it
//! was when the question was asked. Ends the turn if it is cancelled or cannot continue.

use std::time::Duration;

use rejoin_agents::{GoOnOrder, RunReport, SessionAt, SessionPath};
use rejoin_core::{FileMark, Micros, Outcome, TotalsScope, TurnStatus, Usage, Verdict};
use rejoin_hub::{AttemptPlan, BeginAgain, Claimed, Confirmed, EarlierRuns, PinStart, fault};
use rejoin_store::Attempt;
use tokio::sync::watch;

use crate::attempt::{AttemptContext, PreparedRun, boot, run_folder, text, turn_folder};
use crate::error::{Error, Result};
use crate::hook;
use crate::in_use::in_use;
use crate::inspect::{Inspection, inspect};
use crate::limits::with_limits;
use crate::run::{Run, cannot_continue};
use crate::settle::settle_unfinished;
use crate::shim::void;
use crate::turn::{Runner, TurnState};

/// Interval between two checks of a session that another process is using.
const POLL_IN_USE: Duration = Duration::from_millis(500);

/// Facts for continuing a turn.
struct Continuation {
    inspection: Inspection,
    /// Path of the session below the present home.
    path: String,
    verdict: Verdict,
    told: String,
    note: Option<String>,
}

impl Runner {
    /// Continues a turn whose latest attempt ended with a question that is now answered. Ends the
    /// turn if it is cancelled or cannot continue.
    pub(crate) async fn resume_deferred(
        &self,
        claimed: &Claimed,
        cancel: watch::Receiver<bool>,
    ) -> Result<TurnState> {
        let last = claimed.attempts.last();
        let last = last.ok_or_else(|| Error::Internal("a turn without an attempt".into()))?;
        let plan = AttemptPlan::read(last)?;
        let so_far = plan.so_far.clone();
        let so_far = so_far.ok_or_else(|| Error::Internal("nothing to go on from".into()))?;
        let asked_to_stop = *cancel.borrow() || self.hub.cancel_asked(claimed.turn.id).await?;
        if asked_to_stop {
            let outcome = Outcome::Cancelled;
            return self.give_up(claimed, last, &plan, &so_far, outcome).await;
        }
        let n = last.n + 1;
        let went = self
            .run_continuation(claimed, last, &plan, &so_far, cancel)
            .await;
        let error = match went {
            Err(Error::Cancelled) => {
                let outcome = Outcome::Cancelled;
                return self.give_up(claimed, last, &plan, &so_far, outcome).await;
            }
            Ok(_) | Err(Error::Hub(_)) => return went,
            Err(error) => error,
        };
        if let Some(begun) = self.hub.running_attempt(claimed.turn.id).await? {
            let folder = run_folder(&self.config, claimed, &begun.prompt_id);
            if folder.exists() && !void(&folder).map_err(Error::io("calling off a run"))? {
                // The attempt runs all the same, so it is left for the next process to recover.
                return Ok(TurnState::Released);
            }
            self.hub.take_back_attempt(claimed, n).await?;
        }
        self.hub.unheard(claimed, &so_far.call).await?;
        let outcome = cannot_continue(&error.to_string());
        self.give_up(claimed, last, &plan, &so_far, outcome).await
    }

    /// Runs the continuation in a new attempt.
    async fn run_continuation(
        &self,
        claimed: &Claimed,
        last: &Attempt,
        plan: &AttemptPlan,
        so_far: &EarlierRuns,
        cancel: watch::Receiver<bool>,
    ) -> Result<TurnState> {
        let ready = self.ready(claimed, last, plan, so_far, &cancel).await?;
        let mut prepared = self.prepare_continuation(claimed, last, plan, so_far, &ready)?;
        let run = run_folder(&self.config, claimed, &prepared.prompt_id);
        let limits = self.hub.limits_of(claimed).await?;
        let adapter = ready.inspection.adapter;
        prepared.command = with_limits(adapter, prepared.command, &run, &limits)?;
        self.begin_continuation(claimed, last, &prepared, &ready)
            .await?;
        let context = AttemptContext {
            hub: &self.hub,
            config: &self.config,
            claimed,
            inspection: &ready.inspection,
            live: None,
        };
        let folder = run_folder(&self.config, claimed, &prepared.prompt_id);
        crate::folder::make_private(&folder).map_err(Error::io("making the folder of the turn"))?;
        // The answer is known, so the hook must not wait for it.
        hook::let_go(&folder, &so_far.call).map_err(Error::io("making the folder of the turn"))?;
        let child = context.launch(&prepared, &folder, None).await?;
        let run = Run {
            claimed,
            adapter: ready.inspection.adapter,
            attempt: Attempt {
                n: prepared.n,
                verdict: ready.verdict,
                prompt_id: prepared.prompt_id,
                spool: 0,
                ..last.clone()
            },
            plan: prepared.plan,
            record: prepared.record,
            folder,
            program: Some(ready.inspection.binary.identity.clone()),
        };
        let end = self.follow(&run, Some(child), cancel).await?;
        self.conclude(run, end).await
    }

    /// Writes the continuing attempt ahead.
    async fn begin_continuation(
        &self,
        claimed: &Claimed,
        last: &Attempt,
        prepared: &PreparedRun,
        ready: &Continuation,
    ) -> Result<()> {
        let again = BeginAgain {
            n: prepared.n,
            verdict: ready.verdict,
            prompt_id: &prepared.prompt_id,
            pin: last.pin,
            plan: &prepared.plan,
            told: ready.told.clone(),
        };
        fault::point("before_again");
        self.hub.begin_again(claimed, &again).await?;
        tracing::info!(
            turn = %claimed.turn.id,
            conversation = %claimed.conversation.id,
            agent = %claimed.turn.agent,
            attempt = prepared.n,
            verdict = %ready.verdict,
            session = %prepared.plan.session,
            "Starting execution"
        );
        fault::point("after_again");
        Ok(())
    }

    /// Finds the session, or restores it, and checks that the turn may continue with it.
    async fn ready(
        &self,
        claimed: &Claimed,
        last: &Attempt,
        plan: &AttemptPlan,
        so_far: &EarlierRuns,
        cancel: &watch::Receiver<bool>,
    ) -> Result<Continuation> {
        let outlook = self.hub.outlook_of(claimed).await?;
        let agent = claimed.turn.agent.as_str();
        let request = &claimed.request;
        let inspection = inspect(&self.hub, &self.config, agent, request, outlook).await?;
        if let Some(cannot) = &inspection.cannot {
            return Err(Error::Permissions(cannot.clone()));
        }
        let (wrote, now) = (&plan.runtime, &inspection.binary.facts.runtime);
        if wrote.product != now.product || now.version.older_than(&wrote.version) {
            let text = format!("it was asked by {wrote}, and this is {now}");
            return Err(Error::CannotGoOn(text));
        }
        let pin = last.pin.to_string();
        let at = SessionAt {
            folder: &inspection.folder.path,
            session: &plan.session,
            pin: &pin,
        };
        let SessionPath::At(path) = inspection.adapter.place(&at) else {
            return Err(Error::CannotGoOn("its session has no place".into()));
        };
        while in_use(
            inspection.adapter,
            &inspection.home,
            &plan.session,
            Some(&path),
        )
        .is_some()
        {
            if *cancel.borrow() || self.hub.cancel_asked(claimed.turn.id).await? {
                return Err(Error::Cancelled);
            }
            tokio::time::sleep(POLL_IN_USE).await;
        }
        let mark = FileMark {
            path: path.clone(),
            ..so_far.file.clone()
        };
        if inspection.sessions().compare_async(&mark).await.usable() {
            return Ok(Continuation {
                inspection,
                path,
                verdict: Verdict::Resumed,
                told: "goes on with the answer in a new process".into(),
                note: None,
            });
        }
        let folder = turn_folder(&self.config, claimed);
        let vault = self.hub.vault.as_ref();
        let from = inspection
            .put_back_whole(last.pin, &mark, vault, &folder)
            .await?;
        let Some(from) = from else {
            let text = "its session is not what it was, and there is no snapshot of it";
            return Err(Error::CannotGoOn(text.into()));
        };
        Ok(Continuation {
            inspection,
            path,
            verdict: Verdict::Restored,
            told: format!("goes on with the answer in a new process, restored {from}"),
            note: Some(format!("went on, restored {from}")),
        })
    }

    fn prepare_continuation(
        &self,
        claimed: &Claimed,
        last: &Attempt,
        plan: &AttemptPlan,
        so_far: &EarlierRuns,
        ready: &Continuation,
    ) -> Result<PreparedRun> {
        let inspection = &ready.inspection;
        let request = &claimed.request;
        let spent = so_far.cost.map_or(0, |cost| cost.0);
        let left = |most: Micros| Micros(most.0.saturating_sub(spent).max(1));
        let order = GoOnOrder {
            session: &plan.session,
            model: request.model.as_deref(),
            permissions: &request.permissions,
            folder: &inspection.folder.path,
            repository: inspection.repository,
            memory: &inspection.memory,
            extra_args: &inspection.settings.args,
            max_cost: request.max_cost.map(left),
        };
        let defer = inspection.adapter.capabilities().defer;
        let command = defer.map(|defer| defer.resume_deferred(&order));
        let cannot = || Error::CannotGoOn("its agent cannot go on from there".into());
        let mut command = command.ok_or_else(cannot)?;
        let prompt_id = self.hub.clock.foreign_id()?.to_string();
        let folder = run_folder(&self.config, claimed, &prompt_id);
        if let Some(after) = self.config.defer_after {
            command = hook::with_hook(inspection.adapter, command, &folder, after)?;
        }
        let confirmed = plan.confirmed.clone().map(|confirmed| Confirmed {
            file: FileMark {
                path: ready.path.clone(),
                ..confirmed.file
            },
            ..confirmed
        });
        let mut today = inspection.folder.clone();
        if today.path == plan.folder.path {
            today.checkout.clone_from(&plan.folder.checkout);
        }
        let facts = &inspection.binary.facts;
        let plan = AttemptPlan {
            session_file: Some(ready.path.clone()),
            home: text(&inspection.home)?,
            folder: today,
            runtime: facts.runtime.clone(),
            totals: facts.totals,
            usage: facts.usage.unwrap_or(TotalsScope::Unproven),
            boot: boot()?,
            confirmed,
            ..plan.clone()
        };
        let mut record = claimed.turn.record.clone();
        record.notes.extend(ready.note.clone());
        Ok(PreparedRun {
            n: last.n + 1,
            plan,
            record,
            command,
            prompt_id,
            pin: PinStart::Existing(last.pin),
            context: None,
            host: None,
        })
    }

    /// Ends the turn as it is and cuts its session back to the state before the turn.
    async fn give_up(
        &self,
        claimed: &Claimed,
        last: &Attempt,
        plan: &AttemptPlan,
        so_far: &EarlierRuns,
        outcome: Outcome,
    ) -> Result<TurnState> {
        let status = match &outcome {
            Outcome::Cancelled => TurnStatus::Cancelled,
            Outcome::Succeeded | Outcome::Failed(_) | Outcome::Lost(_) => TurnStatus::Lost,
        };
        let run = Run {
            claimed,
            adapter: self.config.adapter_of(claimed)?,
            attempt: last.clone(),
            plan: plan.clone(),
            record: claimed.turn.record.clone(),
            folder: turn_folder(&self.config, claimed),
            program: None,
        };
        let ran = result_so_far(outcome, so_far);
        let models = &self.config.models;
        let settled = settle_unfinished(&run, &ran, so_far, status, models).await;
        self.finish(claimed, &settled).await?;
        Ok(TurnState::Ended)
    }
}

/// Builds the result of the earlier runs.
fn result_so_far(outcome: Outcome, so_far: &EarlierRuns) -> RunReport {
    RunReport {
        outcome,
        refused: false,
        text: so_far.text.clone(),
        session: None,
        model: None,
        version: None,
        usage: Usage::default(),
        total: None,
        context: None,
        used: None,
        denied: vec![],
        tools_run: so_far.tools_run,
        trail: so_far.trail.clone(),
        withheld: so_far.withheld.clone(),
        compacted: so_far.compacted,
        unknown_lines: 0,
    }
}
