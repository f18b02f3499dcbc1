//! Runs one claimed turn: inspect, decide, start, follow, settle. Starts a second attempt if the
//! CLI refused its session.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rejoin_core::{AgentName, Blocker, Fresh, Reason, TurnId, TurnPlan};
use rejoin_hub::{Claimed, Hub, IfBusy, fault};
use rejoin_store::Attempt;
use tokio::sync::watch;

use crate::attempt::{AttemptContext, PreparedRun, prespawn_shim, turn_folder};
use crate::config::RunnerConfig;
use crate::decision::Decided;
use crate::error::{Error, Result};
use crate::external::ExternalMessages;
use crate::inspect::{Inspection, inspect};
use crate::location::HomeLocation;
use crate::process::ShimChild;
use crate::run::{Repeat, Run};
use crate::warm::{IdleState, WarmProcess, is_live};

/// Interval between two checks of a session that another process is using.
const POLL_IN_USE: Duration = Duration::from_millis(500);
/// Number of times that a session is inspected again because another program added to it.
const INSPECT_AGAIN: u32 = 2;

/// Runs agents for one hub on this machine.
pub struct Runner {
    pub hub: Hub,
    pub config: RunnerConfig,
    /// Counter that increases with every commit.
    pub wake: watch::Sender<u64>,
    pub(crate) place: OnceLock<HomeLocation>,
    /// Shim that was started before its turn was accepted.
    prespawned: Mutex<Option<Prespawned>>,
}

/// Shim for a turn that has not been accepted yet.
struct Prespawned {
    turn: TurnId,
    /// Agent whose environment the shim was started with.
    agent: AgentName,
    shim: ShimChild,
}

/// State of a turn when its task returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnState {
    Ended,
    /// Held by no process until its question is answered or a process takes it over.
    Released,
}

/// Facts and decision of a turn whose session no other process uses.
struct Ready {
    inspection: Inspection,
    decided: Decided,
    /// External messages that were taken in first.
    external: ExternalMessages,
    /// Idle process that waits for the prompt.
    live: Option<(WarmProcess, IdleState)>,
}

impl Runner {
    pub fn new(hub: Hub, config: RunnerConfig) -> Self {
        Self {
            hub,
            config,
            wake: watch::Sender::new(0),
            place: OnceLock::new(),
            prespawned: Mutex::default(),
        }
    }

    /// Starts the shim of a turn that will run at once if it is accepted. If it is not accepted,
    /// nothing has to be undone: see [`Self::discard_prespawned`].
    pub fn prespawn(&self, turn: TurnId, agent: AgentName) {
        if let Some(shim) = prespawn_shim(&self.config, turn, agent.as_str()) {
            self.prespawned().replace(Prespawned { turn, agent, shim });
        }
    }

    /// Ends the shim that was started early, because its turn will not run now.
    pub fn discard_prespawned(&self) {
        self.prespawned().take();
    }

    fn prespawned(&self) -> MutexGuard<'_, Option<Prespawned>> {
        self.prespawned
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the shim that was started early for this turn, or starts one.
    fn take_prespawned(&self, claimed: &Claimed) -> Option<ShimChild> {
        let (turn, agent) = (claimed.turn.id, &claimed.turn.agent);
        let prespawned = self.prespawned().take();
        match prespawned.filter(|it| (it.turn, &it.agent) == (turn, agent)) {
            Some(Prespawned { shim, .. }) => Some(shim),
            None => prespawn_shim(&self.config, turn, agent.as_str()),
        }
    }

    /// Runs a turn from claim to end and releases its hold. After an error of the hub the turn may
    /// be at any step; the next task that finds it continues it. After any other error nothing ran:
    /// the message was withdrawn, or the turn ended `failed`.
    pub(crate) async fn run(
        &self,
        claimed: &Claimed,
        if_busy: IfBusy,
        cancel: watch::Receiver<bool>,
    ) -> Result<TurnState> {
        let state = self.run_held(claimed, if_busy, cancel).await;
        claimed.active.release();
        state
    }

    async fn run_held(
        &self,
        claimed: &Claimed,
        if_busy: IfBusy,
        cancel: watch::Receiver<bool>,
    ) -> Result<TurnState> {
        let running = Box::pin(self.run_turn(claimed.clone(), if_busy, cancel));
        match self.holding(claimed, running).await {
            Ok(state) => Ok(state),
            Err(
                error @ (Error::WouldReseed { .. }
                | Error::Permissions(_)
                | Error::InUse { .. }
                | Error::Cancelled),
            ) => {
                self.not_run(claimed, &error).await?;
                self.end_processes(claimed.conversation.id).await;
                self.clean_up(claimed);
                Err(error)
            }
            Err(error @ Error::Hub(_)) => Err(error),
            // The turn itself records the error.
            Err(error) => self.not_started(claimed, &error).await,
        }
    }

    /// Inspects and decides, then runs the plan.
    async fn run_turn(
        &self,
        mut claimed: Claimed,
        if_busy: IfBusy,
        cancel: watch::Receiver<bool>,
    ) -> Result<TurnState> {
        let mut shim = self.take_prespawned(&claimed);
        let mut ready = self
            .decide_when_free(&mut claimed, if_busy, &cancel, &mut shim)
            .await?;
        let folder = turn_folder(&self.config, &claimed);
        let vault = self.hub.vault.as_ref();
        let (agent, request) = (&claimed.turn.agent, &claimed.request);
        ready.decided = ready
            .inspection
            .obtain_session(ready.decided, agent, request, vault, &folder)
            .await?;
        let held = |blocker: &Blocker| not_runnable(blocker, &ready.inspection);
        let mut plan = ready.decided.plan.as_ref().map_err(held)?.clone();
        if let Some((host, _)) = &ready.live {
            plan = plan.live();
            if !is_live(&plan) {
                host.end().await;
            }
        }
        self.run_plan(&claimed, &ready, plan, shim, cancel).await
    }

    /// Runs the plan. Runs another attempt if nothing of the one before counts.
    async fn run_plan(
        &self,
        claimed: &Claimed,
        ready: &Ready,
        mut plan: TurnPlan,
        mut shim: Option<ShimChild>,
        cancel: watch::Receiver<bool>,
    ) -> Result<TurnState> {
        let context = AttemptContext {
            hub: &self.hub,
            config: &self.config,
            claimed,
            inspection: &ready.inspection,
            live: ready.live.as_ref(),
        };
        let (mut n, mut refused) = (1, None);
        loop {
            if n == 1 && *cancel.borrow() {
                return Err(Error::Cancelled);
            }
            let mut prepared = context.prepare(n, &plan, &ready.decided).await?;
            prepared.record.notes.extend(ready.external.note());
            let (folder, child) = context
                .start(&prepared, &plan, refused, shim.take())
                .await?;
            self.hub.expect_end().await;
            let run = Run {
                claimed,
                adapter: ready.inspection.adapter,
                attempt: attempt_of(&prepared, &plan),
                plan: prepared.plan,
                record: prepared.record,
                folder,
                program: Some(ready.inspection.binary.identity.clone()),
            };
            let end = self.follow(&run, Some(child), cancel.clone()).await?;
            plan = match (run.repeat(&end).await, plan.after_refusal()) {
                (Some(Repeat::NotDelivered), _) if !*cancel.borrow() => plan.without_process(),
                (Some(Repeat::Refused), Some(reseed)) => {
                    self.retire_refused(&run).await?;
                    if claimed.request.no_reseed {
                        let why = Reason::Rejected;
                        return Err(Error::WouldReseed { why });
                    }
                    reseed
                }
                (Some(_) | None, _) => return self.conclude(run, end).await,
            };
            (refused, n) = (Some(n), n + 1);
        }
    }

    /// Gathers facts and decides. Does so again until no other process uses the session, if
    /// `if_busy` says to wait.
    async fn decide_when_free(
        &self,
        claimed: &mut Claimed,
        if_busy: IfBusy,
        cancel: &watch::Receiver<bool>,
        shim: &mut Option<ShimChild>,
    ) -> Result<Ready> {
        let mut external = ExternalMessages::default();
        let mut again = INSPECT_AGAIN;
        loop {
            // A retry does not take in external messages: that was done when the retry was
            // requested.
            if claimed.request.fresh != Some(Fresh::Retry) {
                let more = self
                    .take_in(claimed.conversation.id, Some(&mut *claimed))
                    .await?;
                external.messages += more.messages;
                external.agents.extend(more.agents);
            }
            let (agent, request) = (&claimed.turn.agent, &claimed.request);
            let outlook = self.hub.outlook_of(claimed).await?;
            let inspection =
                inspect(&self.hub, &self.config, agent.as_str(), request, outlook).await?;
            fault::point("after_look");
            let decided = inspection.decide(agent, request);
            let (live, ended) = self
                .take_idle(claimed, &inspection, decided.plan.as_ref().ok())
                .await;
            if ended && live.is_none() {
                continue;
            }
            let in_use = matches!(decided.plan, Err(Blocker::InUse { .. }));
            // The other process has finished, but it may have added messages after they were taken
            // in.
            if again > 0 && inspection.went_on() && !in_use {
                again -= 1;
                continue;
            }
            if if_busy == IfBusy::Fail || !in_use {
                return Ok(Ready {
                    inspection,
                    decided,
                    external,
                    live,
                });
            }
            if *cancel.borrow() || self.hub.cancel_asked(claimed.turn.id).await? {
                return Err(Error::Cancelled);
            }
            // The wait may be long, so the shim does not wait too.
            drop(shim.take());
            tokio::time::sleep(POLL_IN_USE).await;
        }
    }
}

fn attempt_of(prepared: &PreparedRun, plan: &TurnPlan) -> Attempt {
    Attempt {
        n: prepared.n,
        verdict: plan.verdict(),
        reason: plan.reason(),
        status: "running".into(),
        session_id: prepared.plan.session.to_string(),
        pin: prepared.pin.id(),
        prompt_id: prepared.prompt_id.clone(),
        plan: serde_json::Value::Null,
        spool: 0,
    }
}

/// Returns the error for a turn that the decision does not let run.
pub(crate) fn not_runnable(blocker: &Blocker, inspection: &Inspection) -> Error {
    match *blocker {
        Blocker::InUse { pid } => Error::InUse { pid },
        Blocker::WouldReseed { why } => Error::WouldReseed { why },
        Blocker::Permissions => Error::Permissions(inspection.cannot.clone().unwrap_or_default()),
    }
}
