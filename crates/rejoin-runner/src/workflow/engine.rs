//! Loop of a run: begins steps, waits for their turns, and stores what came of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use rejoin_core::{ConversationId, TurnId};
use rejoin_hub::{Accepted, Hub, RunOptions, RunStep, StepStatus};
use rejoin_store::StoredWorkflow;
use rejoin_workflow::{Scope, Step, Workflow};
use tokio::sync::watch;

use super::{RunEnd, Turns, WorkflowFile, values};
use crate::error::{Error, Result};
use crate::send::Defaults;
use crate::turn::Runner;

/// Interval between two looks at the store: for answers, and for the wish to cancel.
const LOOK: Duration = Duration::from_millis(250);

/// A step, or one item of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot {
    pub(super) n: usize,
    pub(super) item: Option<usize>,
}

/// A run in the hands of this process.
pub(super) struct Engine<'a, T> {
    pub(super) runner: &'a Runner,
    /// Hub of the run's namespace and ceiling.
    pub(super) hub: Hub,
    pub(super) defaults: &'a Defaults,
    pub(super) turns: &'a T,
    pub(super) run: StoredWorkflow,
    pub(super) file: Workflow,
    /// Steps in an order in which each follows its needs.
    pub(super) order: Vec<usize>,
    pub(super) options: RunOptions,
    pub(super) holder: String,
    pub(super) steps: Vec<RunStep>,
    pub(super) items: BTreeMap<usize, Vec<RunStep>>,
    pub(super) scope: Scope,
    /// Slots whose turn runs.
    pub(super) running: BTreeSet<Slot>,
    /// Reason why no more steps begin.
    pub(super) stopped: Option<String>,
    renewed: Instant,
}

/// State of a run after everything that could begin has begun.
enum State {
    Runs,
    /// A person has to answer.
    Waits,
    Ended(StepStatus),
}

/// Turn of a slot that has to be run.
pub(super) struct Begun {
    pub(super) slot: Slot,
    pub(super) accepted: Accepted,
}

impl<'a, T: Turns> Engine<'a, T> {
    /// Reads a run that this process has taken.
    pub(super) async fn load(
        runner: &'a Runner,
        run: StoredWorkflow,
        defaults: &'a Defaults,
        turns: &'a T,
        holder: String,
    ) -> Result<Self> {
        let file = WorkflowFile::of_run(&run)?.workflow;
        let unreadable =
            |e: serde_json::Error| Error::Internal(format!("a run cannot be read: {e}"));
        let options: RunOptions = serde_json::from_str(&run.options).map_err(unreadable)?;
        let inputs = serde_json::from_str(&run.inputs).map_err(unreadable)?;
        let ids: Vec<String> = file.steps.iter().map(|step| step.id.clone()).collect();
        let mut hub = runner.hub.clone();
        hub.namespace = run.namespace.as_str().into();
        hub.ceiling = options.ceiling;
        let (mut steps, mut items) = (vec![], BTreeMap::<usize, Vec<RunStep>>::new());
        for step in hub.workflow_steps(run.id).await? {
            match step.stored.item {
                None => steps.push(step),
                Some(_) => items
                    .entry(usize::try_from(step.stored.n).unwrap_or(0))
                    .or_default()
                    .push(step),
            }
        }
        if steps.len() != file.steps.len() {
            let text = "the steps of the run are not those of its file";
            return Err(Error::Internal(text.into()));
        }
        let scope = values::scope(run.id.to_string(), inputs, &ids);
        let mut engine = Self {
            runner,
            hub,
            defaults,
            turns,
            run,
            order: file.order(),
            file,
            options,
            holder,
            steps,
            items,
            scope,
            running: BTreeSet::new(),
            stopped: None,
            renewed: Instant::now(),
        };
        for n in 0..engine.steps.len() {
            if engine
                .steps
                .get(n)
                .is_some_and(|step| step.status.has_ended())
            {
                engine.publish(n).await?;
            }
        }
        Ok(engine)
    }

    /// Runs until the run ends, waits for a person, or `stop` says so.
    pub(super) async fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<RunEnd> {
        let turns = self.turns;
        let (mut tasks, mut done) = (FuturesUnordered::new(), VecDeque::new());
        for begun in self.left().await? {
            tasks.push(task(turns, begun));
        }
        loop {
            if *stop.borrow() {
                return Ok(RunEnd::Interrupted);
            }
            let begun = meanwhile(self.go_on(&mut done), &mut tasks).await;
            let ((begun, state), ended) = (begun.0?, begun.1);
            done.extend(ended);
            tasks.extend(begun.into_iter().map(|begun| task(turns, begun)));
            if done.is_empty() && tasks.is_empty() {
                match state {
                    State::Ended(status) => return Ok(RunEnd::Ended(status)),
                    State::Waits if !self.turns_go_on() => return Ok(RunEnd::Waits),
                    State::Waits | State::Runs => {}
                }
            }
            if !done.is_empty() {
                continue;
            }
            tokio::select! {
                biased;
                Some(ended) = tasks.next(), if !tasks.is_empty() => done.push_back(ended),
                changed = stop.changed() => {
                    if changed.is_err() {
                        return Ok(RunEnd::Interrupted);
                    }
                }
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// Settles the turns that were run, and begins what can begin. Returns the turns to run.
    async fn go_on(
        &mut self,
        done: &mut VecDeque<(Slot, Result<()>)>,
    ) -> Result<(Vec<Begun>, State)> {
        let mut begun = vec![];
        while let Some((slot, ran)) = done.pop_front() {
            self.running.remove(&slot);
            begun.extend(self.turn_ended(slot, ran).await?);
        }
        begun.extend(self.look().await?);
        begun.extend(self.advance().await?);
        if !begun.is_empty() || !self.running.is_empty() || self.next_wake().is_some() {
            return Ok((begun, State::Runs));
        }
        let Some(status) = self.end() else {
            self.set_status(StepStatus::Waiting).await?;
            return Ok((begun, State::Waits));
        };
        let error = self.stopped.clone();
        self.hub
            .set_workflow_status(self.run.id, &self.holder, status, error.as_deref())
            .await?;
        self.runner.wake.send_modify(|count| *count += 1);
        Ok((begun, State::Ended(status)))
    }

    /// Returns true if this process stays until a person answers: a daemon does.
    fn turns_go_on(&self) -> bool {
        self.turns.holder().is_none()
    }

    /// Returns the turns that an earlier process left.
    async fn left(&mut self) -> Result<Vec<Begun>> {
        let mut found = vec![];
        for slot in self.slots() {
            let step = self.get(slot);
            let runs = matches!(step.status, StepStatus::Running | StepStatus::Waiting);
            let (Some(turn), Some(c)) = (step.stored.turn, step.stored.conversation) else {
                continue;
            };
            let stored = self.hub.stored_turn(turn).await?;
            let ended = stored.is_some_and(|turn| turn.status.ended());
            let asked = step.status == StepStatus::Waiting && ended;
            if runs && !asked {
                self.running.insert(slot);
                found.push(Begun {
                    slot,
                    accepted: known(c, turn),
                });
            }
        }
        Ok(found)
    }

    /// Returns all slots: steps, and the items of those that have some.
    pub(super) fn slots(&self) -> Vec<Slot> {
        let mut all = vec![];
        for n in 0..self.steps.len() {
            match self.items.get(&n) {
                Some(items) => all.extend((0..items.len()).map(|item| Slot {
                    n,
                    item: Some(item),
                })),
                None => all.push(Slot { n, item: None }),
            }
        }
        all
    }

    #[expect(clippy::indexing_slicing, reason = "a slot names a row of this run")]
    pub(super) fn get(&self, slot: Slot) -> &RunStep {
        match slot.item {
            Some(item) => &self.items[&slot.n][item],
            None => &self.steps[slot.n],
        }
    }

    #[expect(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        reason = "a slot names a row of this run"
    )]
    pub(super) fn get_mut(&mut self, slot: Slot) -> &mut RunStep {
        match slot.item {
            Some(item) => &mut self.items.get_mut(&slot.n).unwrap()[item],
            None => &mut self.steps[slot.n],
        }
    }

    #[expect(clippy::indexing_slicing, reason = "a slot names a step of the file")]
    pub(super) fn step(&self, n: usize) -> &Step {
        &self.file.steps[n]
    }

    /// Makes the values of a step visible to templates.
    pub(super) async fn publish(&mut self, n: usize) -> Result<()> {
        let items = self.items.get(&n).map(Vec::as_slice).unwrap_or_default();
        let Some(step) = self.steps.get(n) else {
            return Ok(());
        };
        let values = values::of_step(&self.hub, step, items).await?;
        let id = self.step(n).id.clone();
        self.scope.steps.insert(id, values);
        Ok(())
    }

    /// Stores the state of slots, all or none.
    pub(super) async fn save(&self, slots: &[Slot]) -> Result<()> {
        let steps: Vec<&RunStep> = slots.iter().map(|slot| self.get(*slot)).collect();
        self.hub
            .save_steps(self.run.id, &self.holder, &steps)
            .await?;
        self.runner.wake.send_modify(|count| *count += 1);
        Ok(())
    }

    pub(super) async fn set_status(&mut self, status: StepStatus) -> Result<()> {
        if StepStatus::of(&self.run.status) == status {
            return Ok(());
        }
        self.hub
            .set_workflow_status(self.run.id, &self.holder, status, None)
            .await?;
        self.run.status = status.as_str().into();
        self.runner.wake.send_modify(|count| *count += 1);
        Ok(())
    }

    /// Extends the hold on the run, and fails if another process has taken it.
    pub(super) async fn keep_hold(&mut self) -> Result<()> {
        let Some(every) = self.hub.renews_every() else {
            return Ok(());
        };
        if self.renewed.elapsed() < every {
            return Ok(());
        }
        if !self.hub.renew_workflow(self.run.id, &self.holder).await? {
            let text = "another process has taken the workflow over";
            return Err(rejoin_hub::Error::Conflict(text.into()).into());
        }
        self.renewed = Instant::now();
        Ok(())
    }

    /// Returns the status of the run, once all steps have ended.
    fn end(&self) -> Option<StepStatus> {
        if !self.steps.iter().all(|step| step.status.has_ended()) {
            return None;
        }
        let any = |status| self.steps.iter().any(|step| step.status == status);
        Some(if self.run.cancel {
            StepStatus::Cancelled
        } else if self.stopped.is_some() || any(StepStatus::Failed) || any(StepStatus::Cancelled) {
            StepStatus::Failed
        } else {
            StepStatus::Succeeded
        })
    }
}

/// Returns a turn that was accepted before.
pub(super) fn known(conversation: ConversationId, turn: TurnId) -> Accepted {
    Accepted {
        conversation,
        turn,
        replayed: true,
        created: false,
        claimed: None,
    }
}

/// Completes `work` while turns run: they hold the store too, and must not stand still in the middle of a
/// transaction. Returns also the turns that ended meanwhile.
async fn meanwhile<W: Future, F: Future>(
    work: W,
    tasks: &mut FuturesUnordered<F>,
) -> (W::Output, Vec<F::Output>) {
    let mut ended = vec![];
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return (done, ended),
            Some(one) = tasks.next(), if !tasks.is_empty() => ended.push(one),
        }
    }
}

fn task<T: Turns>(turns: &T, begun: Begun) -> impl Future<Output = (Slot, Result<()>)> + '_ {
    let Begun { slot, accepted } = begun;
    async move { (slot, turns.run(accepted).await) }
}
