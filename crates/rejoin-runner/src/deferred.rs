//! A turn whose agent has put a question off and ended: kept so that it can go on anywhere, and gone on
//! with once somebody has answered. Its session is the turn's all the while.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rejoin_agents::{GoOnOrder, Place, Ran, SessionAt};
use rejoin_core::{Class, Failure, FileMark, Micros, Outcome, Pin, TurnStatus, Usage, Verdict};
use rejoin_hub::{
    AttemptPlan, BeginAgain, Claimed, Confirmed, HubLink, PinStart, Settled, SoFar, fault,
};
use rejoin_store::{Attempt, TurnRecord};
use tokio::sync::watch;

use crate::attempt::{Prepared, Preparing, boot, run_folder, text, turn_folder};
use crate::capture::{Capture, Lying};
use crate::error::{Error, Result};
use crate::hook;
use crate::in_use::in_use;
use crate::look::{Looked, look};
use crate::meanwhile::Running;
use crate::pump::{Pump, Pumped, idle_limit, reader_of};
use crate::settle::{self, PutOff, Written, clear_away, settle};
use crate::shim::void;
use crate::turn::Runner;
use crate::warm::rests;

/// How often one question is put off although it was answered: then something else does that.
const MOST: u32 = 4;
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// How a turn stands after a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stands {
    Over,
    /// In nobody's hands, until its question is answered or somebody takes it up.
    Rests,
}

/// Where a turn goes on.
struct Ready {
    looked: Looked,
    /// The session, beneath the home of today.
    path: String,
    verdict: Verdict,
    told: String,
    note: Option<String>,
}

impl Runner {
    /// Settles a run; or, if it ended with a question, lets its turn rest.
    pub(crate) async fn conclude(
        &self,
        claimed: &Claimed,
        written: Written<'_>,
        mut pumped: Pumped,
    ) -> Result<Stands> {
        if let Some(call) = pumped.deferred.take() {
            match self.put_off(claimed, &written, &pumped, &call).await? {
                Ok(()) => return Ok(Stands::Rests),
                Err(why) => pumped.ran.outcome = gone(&why),
            }
        }
        let (adapter, plan) = (written.adapter, written.plan);
        if let Some(so_far) = &plan.so_far
            && pumped.ran.session.is_none()
            && let Outcome::Failed(failure) = &pumped.ran.outcome
        {
            let why = gone(&failure.message);
            self.hub.unheard(claimed, &so_far.call).await?;
            pumped.ran.outcome = why;
        }
        let (run, total) = (written.folder, pumped.ran.total);
        let host = rests(run, &pumped);
        let mut settled = settle(claimed, written, pumped, &self.hub.machine, host.as_ref()).await;
        let before = plan.confirmed.as_ref().map(|c| &c.file);
        self.capture(adapter, before, &mut settled).await;
        if let Some(host) = &host {
            self.keep_warm(host, run, claimed, &settled, total).await;
        }
        self.finish(claimed, &settled).await?;
        if host.is_some() {
            self.make_room().await;
        }
        Ok(Stands::Over)
    }

    /// The text says why it cannot be gone on from.
    async fn put_off(
        &self,
        claimed: &Claimed,
        written: &Written<'_>,
        pumped: &Pumped,
        call: &str,
    ) -> Result<std::result::Result<(), String>> {
        let PutOff { so_far, pin } =
            match settle::put_off(written, pumped, call, &self.hub.machine).await {
                Ok(put_off) => put_off,
                Err(why) => return Ok(Err(why)),
            };
        if so_far.times > MOST {
            return Ok(Err("something else keeps putting the question off".into()));
        }
        self.keep_deferred(claimed, written, &so_far, pin).await?;
        let mut plan = written.plan.clone();
        plan.so_far = Some(so_far);
        self.hub.defer(claimed, written.attempt.n, &plan).await?;
        self.wake.send_modify(|n| *n += 1);
        self.clean_up(claimed);
        Ok(Ok(()))
    }

    /// A snapshot, where sessions are kept: without one it can only go on where it lies. `pin`: as the
    /// session is; what was confirmed of it before the turn is said of it, if something was.
    async fn keep_deferred(
        &self,
        claimed: &Claimed,
        written: &Written<'_>,
        so_far: &SoFar,
        pin: Pin,
    ) -> Result<()> {
        let (Some(vault), plan) = (&self.hub.vault, written.plan) else {
            return Ok(());
        };
        let stored = self.hub.store.read().await?.pin(written.attempt.pin).await;
        let confirmed = plan.confirmed.as_ref().map(|c| &c.file);
        let pin = match stored?.and_then(|stored| stored.pin) {
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
            adapter: written.adapter,
            pin: &pin,
            before: confirmed,
            now: self.hub.clock.now(),
            lying: Some(Lying {
                file: Path::new(&plan.home).join(&so_far.file.path),
                mark: so_far.file.clone(),
                begun: None,
            }),
        };
        if let Ok(captured) = capture.bounded().await {
            self.hub.add_open_snapshot(claimed, &pin, &captured).await?;
        }
        Ok(())
    }

    /// Goes on with a turn whose newest attempt ended with a question that was answered since, or ends
    /// it, if that is wished or nothing else can be done.
    pub(crate) async fn go_on(
        &self,
        claimed: &Claimed,
        cancel: watch::Receiver<bool>,
    ) -> Result<Stands> {
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
        let went = self.run_again(claimed, last, &plan, &so_far, cancel).await;
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
                // It runs all the same: left to whoever comes next.
                return Ok(Stands::Rests);
            }
            self.hub.take_back_attempt(claimed, n).await?;
        }
        self.hub.unheard(claimed, &so_far.call).await?;
        let outcome = gone(&error.to_string());
        self.give_up(claimed, last, &plan, &so_far, outcome).await
    }

    async fn run_again(
        &self,
        claimed: &Claimed,
        last: &Attempt,
        plan: &AttemptPlan,
        so_far: &SoFar,
        cancel: watch::Receiver<bool>,
    ) -> Result<Stands> {
        let ready = self.ready(claimed, last, plan, so_far, &cancel).await?;
        let looked = &ready.looked;
        let prepared = self.prepared(claimed, last, plan, so_far, &ready)?;
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
            session = %plan.session,
            "Starting execution"
        );
        fault::point("after_again");
        let preparing = Preparing {
            link: &self.hub,
            config: &self.config,
            claimed,
            looked,
            live: None,
        };
        let folder = run_folder(&self.config, claimed, &prepared.prompt_id);
        crate::folder::make_private(&folder).map_err(Error::io("making the folder of the turn"))?;
        // It need not wait for what is known.
        hook::let_go(&folder, &so_far.call).map_err(Error::io("making the folder of the turn"))?;
        let child = preparing.launch(&prepared, &folder, None).await?;
        let pump = Pump {
            link: &self.hub,
            claimed,
            n: prepared.n,
            folder: &folder,
            committed: 0,
            asks: true,
            asked: prepared.plan.asked_session(),
            resumed: true,
            child: Some(child),
            cancel,
            idle: idle_limit(&self.config, claimed),
            wake: &self.wake,
        };
        let attempt = Attempt {
            n: prepared.n,
            verdict: ready.verdict,
            prompt_id: prepared.prompt_id.clone(),
            ..last.clone()
        };
        let running = Running {
            adapter: looked.adapter,
            claimed,
            plan: &prepared.plan,
            pin: last.pin,
            folder: &folder,
        };
        let follow = pump.follow(reader_of(looked.adapter, &folder));
        let mut pumped = self.keeping(&running, follow).await?;
        fault::point("before_settle");
        clear_away(claimed, &mut pumped)?;
        let written = Written {
            adapter: looked.adapter,
            attempt: &attempt,
            plan: &prepared.plan,
            record: prepared.record,
            folder: &folder,
            models: &self.config.models,
        };
        self.conclude(claimed, written, pumped).await
    }

    /// Finds the session, or puts it back, and sees that it may be gone on with.
    async fn ready(
        &self,
        claimed: &Claimed,
        last: &Attempt,
        plan: &AttemptPlan,
        so_far: &SoFar,
        cancel: &watch::Receiver<bool>,
    ) -> Result<Ready> {
        let outlook = HubLink::outlook(&self.hub, claimed).await?;
        let agent = claimed.turn.agent.as_str();
        let request = &claimed.request;
        let looked = look(&self.hub, &self.config, agent, request, outlook).await?;
        if let Some(cannot) = &looked.cannot {
            return Err(Error::Envelope(cannot.clone()));
        }
        let (wrote, now) = (&plan.runtime, &looked.binary.facts.runtime);
        if wrote.product != now.product || now.version.older_than(&wrote.version) {
            let text = format!("it was asked by {wrote}, and this is {now}");
            return Err(Error::CannotGoOn(text));
        }
        let pin = last.pin.to_string();
        let at = SessionAt {
            folder: &looked.folder.path,
            session: &plan.session,
            pin: &pin,
        };
        let Place::At(path) = looked.adapter.place(&at) else {
            return Err(Error::CannotGoOn("its session has no place".into()));
        };
        while in_use(looked.adapter, &looked.home, &plan.session, Some(&path)).is_some() {
            if *cancel.borrow() || self.hub.cancel_asked(claimed.turn.id).await? {
                return Err(Error::Cancelled);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        let mark = FileMark {
            path: path.clone(),
            ..so_far.file.clone()
        };
        if looked.sessions().compare_apart(&mark).await.usable() {
            return Ok(Ready {
                looked,
                path,
                verdict: Verdict::Resumed,
                told: "goes on with the answer in a new process".into(),
                note: None,
            });
        }
        let folder = turn_folder(&self.config, claimed);
        let vault = self.hub.vault.as_ref();
        let from = looked
            .put_back_whole(last.pin, &mark, vault, &folder)
            .await?;
        let Some(from) = from else {
            let text = "its session is not what it was, and there is no snapshot of it";
            return Err(Error::CannotGoOn(text.into()));
        };
        Ok(Ready {
            looked,
            path,
            verdict: Verdict::Restored,
            told: format!("goes on with the answer in a new process, restored {from}"),
            note: Some(format!("went on, restored {from}")),
        })
    }

    fn prepared(
        &self,
        claimed: &Claimed,
        last: &Attempt,
        plan: &AttemptPlan,
        so_far: &SoFar,
        ready: &Ready,
    ) -> Result<Prepared> {
        let looked = &ready.looked;
        let request = &claimed.request;
        let spent = so_far.cost.map_or(0, |cost| cost.0);
        let left = |most: Micros| Micros(most.0.saturating_sub(spent).max(1));
        let command = looked.adapter.go_on(&GoOnOrder {
            session: &plan.session,
            model: request.model.as_deref(),
            envelope: &request.envelope,
            folder: &looked.folder.path,
            repository: looked.repository,
            memory: &looked.memory,
            extra_args: &looked.settings.args,
            max_cost: request.max_cost.map(left),
        });
        let cannot = || Error::CannotGoOn("its agent cannot go on from there".into());
        let mut command = command.ok_or_else(cannot)?;
        let prompt_id = self.hub.clock.foreign_id()?.to_string();
        let folder = run_folder(&self.config, claimed, &prompt_id);
        if let Some(after) = self.config.defer_after {
            command = hook::with_hook(looked.adapter, command, &folder, after)?;
        }
        let confirmed = plan.confirmed.clone().map(|confirmed| Confirmed {
            file: FileMark {
                path: ready.path.clone(),
                ..confirmed.file
            },
            ..confirmed
        });
        let mut today = looked.folder.clone();
        if today.path == plan.folder.path {
            today.checkout.clone_from(&plan.folder.checkout);
        }
        let facts = &looked.binary.facts;
        let plan = AttemptPlan {
            session_file: Some(ready.path.clone()),
            home: text(&looked.home)?,
            folder: today,
            runtime: facts.runtime.clone(),
            totals: facts.totals,
            usage: facts.usage.unwrap_or(rejoin_core::TotalsScope::Unproven),
            boot: boot()?,
            confirmed,
            ..plan.clone()
        };
        let mut record: TurnRecord = claimed.turn.record.clone();
        record.notes.extend(ready.note.clone());
        Ok(Prepared {
            n: last.n + 1,
            plan,
            record,
            command,
            prompt_id,
            pin: PinStart::Existing(last.pin),
            host: None,
        })
    }

    /// Ends the turn as it stands, and its session is again what it was before it.
    async fn give_up(
        &self,
        claimed: &Claimed,
        last: &Attempt,
        plan: &AttemptPlan,
        so_far: &SoFar,
        outcome: Outcome,
    ) -> Result<Stands> {
        let name = claimed.turn.agent.as_str();
        let adapter = self.config.adapter(name);
        let adapter = adapter.ok_or_else(|| Error::UnknownAgent(name.to_owned()))?;
        let status = match &outcome {
            Outcome::Cancelled => TurnStatus::Cancelled,
            Outcome::Succeeded | Outcome::Failed(_) | Outcome::Lost(_) => TurnStatus::Lost,
        };
        let ran = came_to(outcome, so_far);
        let folder: PathBuf = turn_folder(&self.config, claimed);
        let written = Written {
            adapter,
            attempt: last,
            plan,
            record: claimed.turn.record.clone(),
            folder: &folder,
            models: &self.config.models,
        };
        let settled: Settled = settle::ended(written, &ran, so_far, status).await;
        self.finish(claimed, &settled).await?;
        Ok(Stands::Over)
    }
}

fn gone(why: &str) -> Outcome {
    Outcome::Lost(Failure {
        class: Class::Lost,
        message: format!("the agent's process had ended, and could not go on: {why}"),
    })
}

/// What is known of the runs there were.
fn came_to(outcome: Outcome, so_far: &SoFar) -> Ran {
    Ran {
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
