//! Runs one claimed turn: look, decide, run, settle; once more if the CLI refused its session.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rejoin_core::{
    AgentName, Class, Cost, Failure, Hold, Reason, TurnId, TurnPlan, TurnStatus, decide,
};
use rejoin_hub::{Claimed, FreshWish, Hub, HubLink, LOCAL_ONLY, PinEnd, Settled, fault};
use rejoin_store::{Attempt, TurnRecord};
use tokio::sync::watch;

use crate::attempt::{Prepared, Preparing, early_shim, run_folder, turn_folder};
use crate::config::{RunnerConfig, Unrun};
use crate::deferred::Stands;
use crate::error::{Error, Result};
use crate::look::{Looked, look};
use crate::meanwhile::Running;
use crate::outside::Taken;
use crate::place::Place;
use crate::process::ShimChild;
use crate::pump::{Pump, Pumped, idle_limit, reader_of};
use crate::settle::{Written, clear_away, refused_cleanly};
use crate::shim::void;
use crate::warm::{Host, Rest, is_live, see_off, unheard, was_silent};

/// How often a session that somebody else is using is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Runs agents for one hub on this machine.
pub struct Runner {
    pub hub: Hub,
    pub config: RunnerConfig,
    /// Goes up when something was committed.
    pub wake: watch::Sender<u64>,
    pub(crate) place: OnceLock<Place>,
    /// Started before its turn was accepted.
    early: Mutex<Option<Early>>,
}

/// A shim for a turn that is to be accepted.
struct Early {
    turn: TurnId,
    /// Whose environment it has.
    agent: AgentName,
    shim: ShimChild,
}

/// What to do about a session that a process which is not ours is writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfBusy {
    Wait,
    Fail,
}

impl Runner {
    pub fn new(hub: Hub, config: RunnerConfig) -> Self {
        Self {
            hub,
            config,
            wake: watch::Sender::new(0),
            place: OnceLock::new(),
            early: Mutex::default(),
        }
    }

    /// Starts what a turn needs that will be run at once if it is accepted. Should it not be, nothing was
    /// done: see [`Self::expect_none`].
    pub fn expect(&self, turn: TurnId, agent: AgentName) {
        if let Some(shim) = early_shim(&self.config, turn, agent.as_str()) {
            self.expected().replace(Early { turn, agent, shim });
        }
    }

    /// Nobody knows when it will be run: nothing waits for it.
    pub fn expect_none(&self) {
        self.expected().take();
    }

    fn expected(&self) -> MutexGuard<'_, Option<Early>> {
        self.early.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a turn from claim to end. After an error of the hub the turn may be anywhere in between: it is
    /// not held any more, and the next task that finds it takes it up. After any other error nothing was
    /// run: the message was taken back, or its turn ended `failed`.
    pub(crate) async fn run(
        &self,
        claimed: &Claimed,
        if_busy: IfBusy,
        cancel: watch::Receiver<bool>,
    ) -> Result<Stands> {
        let ran = self.run_held(claimed, if_busy, cancel).await;
        claimed.hold.release();
        ran
    }

    async fn run_held(
        &self,
        claimed: &Claimed,
        if_busy: IfBusy,
        cancel: watch::Receiver<bool>,
    ) -> Result<Stands> {
        let attempts = Box::pin(self.attempts(claimed, if_busy, cancel));
        match self.holding(claimed, attempts).await {
            Ok(stands) => Ok(stands),
            Err(
                error @ (Error::WouldReseed { .. }
                | Error::Envelope(_)
                | Error::InUse { .. }
                | Error::Cancelled),
            ) => {
                self.not_run(claimed, &error).await?;
                self.end_processes(claimed.conversation.id).await;
                self.clean_up(claimed);
                Err(error)
            }
            Err(error @ Error::Hub(_)) => Err(error),
            // The turn says so itself.
            Err(error) => self.not_started(claimed, &error).await,
        }
    }

    async fn attempts(
        &self,
        claimed: &Claimed,
        if_busy: IfBusy,
        cancel: watch::Receiver<bool>,
    ) -> Result<Stands> {
        let (turn, agent) = (claimed.turn.id, &claimed.turn.agent);
        let expected = self.expected().take();
        let mut early = match expected.filter(|it| (it.turn, &it.agent) == (turn, agent)) {
            Some(Early { shim, .. }) => Some(shim),
            None => early_shim(&self.config, turn, agent.as_str()),
        };
        let mut claimed = claimed.clone();
        let (mut looked, taken, live) = self
            .look_until_free(&mut claimed, if_busy, &cancel, &mut early)
            .await?;
        let claimed = &claimed;
        let folder = turn_folder(&self.config, claimed);
        let (agent, request) = (&claimed.turn.agent, &claimed.request);
        looked.set_aside(agent, request, &folder).await?;
        let vault = self.hub.vault.as_ref();
        looked
            .check_snapshot(agent, request, vault, Some(&folder))
            .await?;
        let situation = looked.situation(&claimed.turn.agent, &claimed.request);
        let decision = decide(&situation);
        let mut plan = decision.plan.clone().map_err(|hold| held(&hold, &looked))?;
        if let Some((host, _)) = &live {
            plan = plan.live();
            if !is_live(&plan) {
                host.end().await;
            }
        }
        let preparing = Preparing {
            link: &self.hub,
            config: &self.config,
            claimed,
            looked: &looked,
            live: live.as_ref(),
        };
        let (mut n, mut refused) = (1, None);
        loop {
            if n == 1 && *cancel.borrow() {
                return Err(Error::Cancelled);
            }
            let mut prepared = preparing.prepare(n, &plan, &decision).await?;
            prepared.record.notes.extend(taken.note());
            let (folder, child) = preparing
                .start(&prepared, &plan, refused, early.take())
                .await?;
            self.hub.store.expect_end().await;
            let pump = Pump {
                link: &self.hub,
                claimed,
                n,
                folder: &folder,
                committed: 0,
                asks: prepared.plan.asks,
                asked: prepared.plan.asked_session(),
                resumed: prepared.plan.continues(),
                child: Some(child),
                cancel: cancel.clone(),
                idle: idle_limit(&self.config, claimed),
                wake: &self.wake,
            };
            let attempt = attempt_of(&prepared, &plan);
            let running = Running {
                adapter: looked.adapter,
                claimed,
                plan: &prepared.plan,
                pin: attempt.pin,
                folder: &folder,
            };
            let follow = pump.follow(reader_of(looked.adapter, &folder));
            let pumped = self.unhurried(self.keeping(&running, follow)).await?;
            let silent = was_silent(&folder);
            see_off(&folder, &pumped).await;
            let adapter = looked.adapter;
            let unheard = unheard(adapter, &prepared.plan, &folder, silent, &pumped).await;
            if unheard && !*cancel.borrow() {
                (plan, refused, n) = (plan.without_process(), Some(n), n + 1);
                continue;
            }
            let ran = &pumped.ran;
            let clean = refused_cleanly(adapter, &attempt, &prepared.plan, &folder, ran).await;
            let Some(retold) = plan.after_refusal().filter(|_| clean) else {
                let written = Written {
                    adapter,
                    attempt: &attempt,
                    plan: &prepared.plan,
                    record: prepared.record,
                    folder: &folder,
                    models: &self.config.models,
                };
                return self.end(claimed, &looked, written, pumped).await;
            };
            self.hub
                .retire(claimed, prepared.pin.id(), "refused by the CLI")
                .await?;
            fault::point("after_refusal");
            if claimed.request.no_reseed {
                let why = Reason::Rejected;
                return Err(Error::WouldReseed { why });
            }
            (plan, refused, n) = (retold, Some(n), n + 1);
        }
    }

    /// Waits for whoever else is using the session, if that was asked for.
    async fn look_until_free(
        &self,
        claimed: &mut Claimed,
        if_busy: IfBusy,
        cancel: &watch::Receiver<bool>,
        early: &mut Option<ShimChild>,
    ) -> Result<(Looked, Taken, Option<(Host, Rest)>)> {
        let mut taken = Taken::default();
        let mut again = 2;
        loop {
            // What a retry was to come after was settled when it was asked for.
            if claimed.request.fresh != Some(FreshWish::Retry) {
                let more = self
                    .take_in(claimed.conversation.id, Some(&mut *claimed))
                    .await?;
                taken.messages += more.messages;
                taken.agents.extend(more.agents);
            }
            let outlook = HubLink::outlook(&self.hub, claimed).await?;
            let looked = look(
                &self.hub,
                &self.config,
                claimed.turn.agent.as_str(),
                &claimed.request,
                outlook,
            )
            .await?;
            fault::point("after_look");
            let held = decide(&looked.situation(&claimed.turn.agent, &claimed.request)).plan;
            let (live, ended) = self
                .take_resting(claimed, &looked, held.as_ref().ok())
                .await;
            if ended && live.is_none() {
                continue;
            }
            // Whoever used it is done since it was asked what was said there.
            if again > 0 && looked.went_on() && !matches!(held, Err(Hold::InUse { .. })) {
                again -= 1;
                continue;
            }
            if if_busy == IfBusy::Fail || !matches!(held, Err(Hold::InUse { .. })) {
                return Ok((looked, taken, live));
            }
            if *cancel.borrow() || self.hub.cancel_asked(claimed.turn.id).await? {
                return Err(Error::Cancelled);
            }
            // Nobody knows how long: it does not wait along.
            drop(early.take());
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    async fn end(
        &self,
        claimed: &Claimed,
        looked: &Looked,
        written: Written<'_>,
        mut pumped: Pumped,
    ) -> Result<Stands> {
        fault::point("before_settle");
        clear_away(claimed, &mut pumped)?;
        if pumped
            .ran
            .version
            .as_ref()
            .is_some_and(|v| *v != written.plan.runtime.version.0)
        {
            // A wrapper whose file stays while what it starts does not: found out anew next time.
            self.hub.forget_binary(&looked.binary.identity).await?;
        }
        self.conclude(claimed, written, pumped).await
    }

    pub(crate) async fn finish(&self, claimed: &Claimed, settled: &Settled) -> Result<()> {
        fault::point("before_finish");
        if let Err(error) = self.hub.finish(claimed, settled).await {
            // The turn ends also where its session cannot be saved.
            let without = settled.snapshot.is_some() && !error.is_conflict();
            let without = without.then(|| settled.without_snapshot(&error.to_string()));
            match without {
                Some(settled) => self.hub.finish(claimed, &settled).await?,
                None => return Err(error.into()),
            }
        }
        fault::point("after_finish");
        self.wake.send_modify(|n| *n += 1);
        self.clean_up(claimed);
        fault::point("after_cleanup");
        match (&settled.pin, &settled.snapshot) {
            (PinEnd::Confirm(pin), Some(_)) => self.save_the_others(pin.id).await,
            (PinEnd::PutBack { id, .. }, _) => self.save_again(*id).await,
            (
                PinEnd::None
                | PinEnd::Untouched(_)
                | PinEnd::Confirm(_)
                | PinEnd::Retire { .. }
                | PinEnd::Lost { .. },
                _,
            ) => {}
        }
        Ok(())
    }

    /// Removes the folder of a turn. What cannot be removed now is swept by the next command.
    pub(crate) fn clean_up(&self, claimed: &Claimed) {
        let turns = self.config.home.join("turns");
        drop(fs_err::remove_dir_all(
            turns.join(claimed.turn.id.to_string()),
        ));
    }

    /// What becomes of a turn for which nothing was run.
    async fn not_run(&self, claimed: &Claimed, error: &Error) -> Result<()> {
        if self.config.unrun == Unrun::TakenBack {
            return Ok(self.hub.withdraw(claimed).await?);
        }
        #[expect(clippy::wildcard_enum_match_arm, reason = "a wish is all that is left")]
        let class = match error {
            Error::WouldReseed { .. } => Class::WouldReseed,
            Error::Envelope(_) => Class::Envelope,
            Error::InUse { .. } => Class::InUse,
            _ => return Ok(self.hub.cancel_unrun(claimed).await?),
        };
        let why = error.to_string();
        Ok(self.hub.hold_back(claimed, class, why).await?)
    }

    /// It could not even be tried: said so in the turn, and the message stays. If a CLI was started for it
    /// all the same, the turn is taken up like one that somebody else left.
    async fn not_started(&self, claimed: &Claimed, error: &Error) -> Result<Stands> {
        let written_ahead = self.hub.running_attempt(claimed.turn.id).await?;
        let mut pin = PinEnd::None;
        if let Some(attempt) = &written_ahead {
            let folder = run_folder(&self.config, claimed, &attempt.prompt_id);
            if folder.exists() && !void(&folder).map_err(Error::io("calling off a run"))? {
                let turn = claimed.turn.id;
                tracing::warn!(%turn, %error, "A turn went wrong and is taken up again");
                self.hub.let_go(claimed).await?;
                return Ok(Stands::Rests);
            }
            pin = PinEnd::Untouched(attempt.pin);
        }
        let full = |source: &std::io::Error| source.kind() == std::io::ErrorKind::StorageFull;
        let failure = Failure {
            class: if matches!(error, Error::Io { source, .. } if full(source)) {
                Class::DiskFull
            } else {
                Class::NotStarted
            },
            message: error.to_string(),
        };
        let attempt = written_ahead.map(|a| a.n);
        let settled = without_a_run(TurnStatus::Failed, failure, attempt, pin);
        self.finish(claimed, &settled).await?;
        Ok(Stands::Over)
    }

    /// Nobody can say any more whether it ran, so it is not tried again.
    pub(crate) async fn lose(&self, claimed: &Claimed) -> Result<()> {
        let failure = Failure {
            class: Class::Lost,
            message: "the machine was restarted while it was being started".into(),
        };
        let mut settled = without_a_run(TurnStatus::Lost, failure, None, PinEnd::None);
        settled.cost = Cost::Unknown;
        self.finish(claimed, &settled).await
    }
}

pub(crate) fn without_a_run(
    status: TurnStatus,
    failure: Failure,
    attempt: Option<i64>,
    pin: PinEnd,
) -> Settled {
    Settled {
        status,
        answer: None,
        error: Some(failure),
        trail: vec![],
        record: TurnRecord::default(),
        model: None,
        usage: None,
        cost: Cost::Known(rejoin_core::Micros(0)),
        context: None,
        denied: serde_json::json!([]),
        saved: LOCAL_ONLY.into(),
        snapshot: None,
        unsaved: None,
        attempt,
        ended_at: None,
        ran_ms: None,
        pin,
        outside: vec![],
    }
}

fn attempt_of(prepared: &Prepared, plan: &TurnPlan) -> Attempt {
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

pub(crate) fn held(hold: &Hold, looked: &Looked) -> Error {
    match *hold {
        Hold::InUse { pid } => Error::InUse { pid },
        Hold::WouldReseed { why } => Error::WouldReseed { why },
        Hold::Envelope => Error::Envelope(looked.cannot.clone().unwrap_or_default()),
    }
}
