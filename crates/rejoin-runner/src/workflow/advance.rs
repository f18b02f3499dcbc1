//! Steps that can begin, and those that never will.

use std::collections::BTreeSet;

use rejoin_hub::{RunStep, StepStatus};
use rejoin_workflow::{Step, Workflow};
use serde_json::Value;

use super::Turns;
use super::engine::{Begun, Engine, Slot};
use crate::error::Result;

/// Most items of one step.
const ITEMS: usize = 1000;

/// Decision about a step whose needs have ended.
enum Next {
    Begin,
    Skip(String),
    Fail(String),
}

/// Returns the steps that wait for one of these, directly or not, and the step itself.
pub(super) fn behind(file: &Workflow, first: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::from([first]);
    for n in file.order() {
        let needs = file.steps.get(n).map(|step| step.needs.as_slice());
        if needs
            .unwrap_or_default()
            .iter()
            .any(|need| found.contains(need))
        {
            found.insert(n);
        }
    }
    found
}

impl<T: Turns> Engine<'_, T> {
    /// Begins the steps that can begin now, and ends those that never will.
    pub(super) async fn advance(&mut self) -> Result<Vec<Begun>> {
        let mut begun = vec![];
        // A step that is skipped, or ends at once, may decide about others.
        loop {
            let mut changed = false;
            for n in self.order.clone() {
                let Some(step) = self.steps.get(n) else {
                    continue;
                };
                let ready = step.status == StepStatus::Pending && self.needs_have_ended(n);
                if ready && self.items.contains_key(&n) {
                    changed |= self.begin_items(n, &mut begun).await?;
                } else if ready {
                    changed |= self.decide(n, &mut begun).await?;
                } else if step.status == StepStatus::Running && self.items.contains_key(&n) {
                    changed |= self.begin_items(n, &mut begun).await?;
                }
            }
            if !changed {
                return Ok(begun);
            }
        }
    }

    fn needs_have_ended(&self, n: usize) -> bool {
        let needs = &self.step(n).needs;
        let ended = |need: &usize| self.steps.get(*need).is_some_and(|s| s.status.has_ended());
        needs.iter().all(ended)
    }

    /// Begins, skips or fails a step whose needs have ended. Returns true if it did.
    async fn decide(&mut self, n: usize, begun: &mut Vec<Begun>) -> Result<bool> {
        let slot = Slot { n, item: None };
        if self
            .get(slot)
            .state
            .wake_at
            .is_some_and(|at| at > self.hub.clock.now())
        {
            return Ok(false);
        }
        let next = match &self.stopped {
            Some(why) => Next::Skip(why.clone()),
            None => self.next(n),
        };
        match next {
            Next::Skip(why) => self.skip(slot, why).await?,
            Next::Fail(why) => self.fail(slot, "invalid_value", why).await?,
            Next::Begin if self.step(n).for_each.is_some() => match self.items_of(n) {
                Ok(items) => self.expand(n, items).await?,
                Err(why) => self.fail(slot, "invalid_value", why).await?,
            },
            Next::Begin => return self.begin_if_room(slot, begun).await,
        }
        Ok(true)
    }

    /// Begins a slot unless as many steps run as may. Returns true if something changed.
    async fn begin_if_room(&mut self, slot: Slot, begun: &mut Vec<Begun>) -> Result<bool> {
        if self.running.len() >= self.file.max_parallel {
            return Ok(false);
        }
        if let Some(accepted) = self.begin(slot).await? {
            self.running.insert(slot);
            begun.push(Begun { slot, accepted });
        }
        Ok(true)
    }

    /// Begins items of a step for which there is room. Returns true if something changed.
    async fn begin_items(&mut self, n: usize, begun: &mut Vec<Begun>) -> Result<bool> {
        let mut changed = false;
        let count = self.items.get(&n).map_or(0, Vec::len);
        for item in 0..count {
            let slot = Slot {
                n,
                item: Some(item),
            };
            let step = self.get(slot);
            if step.status != StepStatus::Pending
                || step
                    .state
                    .wake_at
                    .is_some_and(|at| at > self.hub.clock.now())
            {
                continue;
            }
            let when = self.step(n).when.as_ref();
            let holds = when.map(|when| when.is_true(&self.scope_of(slot)));
            changed |= match (self.stopped.clone(), holds) {
                (Some(why), _) => self.skip(slot, why).await.map(|()| true)?,
                (None, None | Some(Ok(true))) => self.begin_if_room(slot, begun).await?,
                (None, Some(Ok(false))) => {
                    let why = "its condition is false".to_owned();
                    self.skip(slot, why).await.map(|()| true)?
                }
                (None, Some(Err(why))) => {
                    let why = format!("`when` cannot be evaluated: {why}");
                    self.fail(slot, "invalid_value", why).await.map(|()| true)?
                }
            };
        }
        Ok(changed)
    }

    /// Decides about a step whose needs have ended. A need that did not succeed skips it, unless its
    /// condition looks at failures.
    fn next(&self, n: usize) -> Next {
        let step = self.step(n);
        let looks =
            (step.when.as_ref()).is_some_and(rejoin_workflow::Expression::looks_at_failures);
        let failed = step.needs.iter().find_map(|need| {
            let (need, its) = (self.steps.get(*need)?, self.step(*need));
            (need.status != StepStatus::Succeeded)
                .then(|| format!("{} {}", its.id, past(need.status)))
        });
        if let Some(why) = failed.filter(|_| !looks) {
            return Next::Skip(why);
        }
        if step.for_each.is_some() {
            // The condition is checked for each item.
            return Next::Begin;
        }
        match step.when.as_ref().map(|when| when.is_true(&self.scope)) {
            None | Some(Ok(true)) => Next::Begin,
            Some(Ok(false)) => Next::Skip("its condition is false".into()),
            Some(Err(why)) => Next::Fail(format!("`when` cannot be evaluated: {why}")),
        }
    }

    fn items_of(&self, n: usize) -> Result<Vec<Value>, String> {
        let Some(each) = &self.step(n).for_each else {
            return Ok(vec![]);
        };
        let value = each
            .evaluate(&self.scope)
            .map_err(|why| format!("`for_each` cannot be evaluated: {why}"))?;
        let Value::Array(items) = value else {
            return Err("`for_each` is not a list".into());
        };
        if items.len() > ITEMS {
            let count = items.len();
            return Err(format!("`for_each` has {count} items; {ITEMS} are allowed"));
        }
        Ok(items)
    }

    /// Creates the items of a step. A step without items has succeeded.
    async fn expand(&mut self, n: usize, values: Vec<Value>) -> Result<()> {
        let (id, kind) = (self.step(n).id.clone(), self.step(n).work.kind());
        let now = self.hub.clock.now();
        let round = self.get(Slot { n, item: None }).state.round;
        let mut items = vec![];
        for (item, value) in values.into_iter().enumerate() {
            let mut row = RunStep::pending(n, Some(item), &format!("{id}[{item}]"), kind);
            row.state.item = Some(value);
            row.state.round = round;
            items.push(row);
        }
        let whole = self.get_mut(Slot { n, item: None });
        whole.stored.started_at = whole.stored.started_at.or(Some(now));
        whole.status = StepStatus::Running;
        if items.is_empty() {
            return self
                .finish(Slot { n, item: None }, StepStatus::Succeeded)
                .await;
        }
        let whole = self.get(Slot { n, item: None });
        self.hub
            .replace_items(self.run.id, &self.holder, whole, &items)
            .await?;
        self.items.insert(n, items);
        Ok(())
    }

    /// Ends a step that never began.
    pub(super) async fn skip(&mut self, slot: Slot, why: String) -> Result<()> {
        let step = self.get_mut(slot);
        step.state.error = None;
        step.state.reason = Some(why);
        self.finish(slot, StepStatus::Skipped).await
    }

    /// Returns the earliest time at which a retry begins.
    pub(super) fn next_wake(&self) -> Option<i64> {
        let slots = self.slots();
        let wakes = slots.iter().filter_map(|slot| {
            let step = self.get(*slot);
            (step.status == StepStatus::Pending)
                .then_some(step.state.wake_at)
                .flatten()
        });
        wakes.min()
    }

    /// Begins a loop again after its last step, if its condition says so. Returns the steps that run
    /// again.
    pub(super) fn loop_back(&mut self, n: usize) -> Result<Vec<Slot>, String> {
        let step: &Step = self.step(n);
        let Some(repeat) = &step.repeat else {
            return Ok(vec![]);
        };
        let more = repeat
            .condition
            .is_true(&self.scope)
            .map_err(|why| format!("`loop.while` cannot be evaluated: {why}"))?;
        let (max, last) = (repeat.max, Slot { n, item: None });
        if !more || self.get(last).state.loops + 1 >= max {
            return Ok(vec![]);
        }
        let body = self.file.loop_body(n);
        let mut again = vec![];
        for n in body {
            self.items.remove(&n);
            let slot = Slot { n, item: None };
            let row = self.get_mut(slot);
            row.status = StepStatus::Pending;
            row.stored.ended_at = None;
            row.stored.turn = None;
            let state = &mut row.state;
            state.round += 1;
            state.attempt = 0;
            (state.error, state.follow_up, state.wake_at) = (None, None, None);
            state.invalid.clear();
            again.push(slot);
        }
        self.get_mut(last).state.loops += 1;
        Ok(again)
    }
}

/// Returns the words for a status in "x failed".
fn past(status: StepStatus) -> &'static str {
    match status {
        StepStatus::Failed => "failed",
        StepStatus::Skipped => "was skipped",
        StepStatus::Cancelled => "was cancelled",
        StepStatus::Pending | StepStatus::Running | StepStatus::Waiting | StepStatus::Succeeded => {
            "has not ended"
        }
    }
}
