//! Regular checks of a run: answers, limits, and the wish to cancel.

use rejoin_core::Micros;
use rejoin_hub::StepStatus;

use super::Turns;
use super::engine::{Begun, Engine, Slot, known};
use crate::error::Result;

impl<T: Turns> Engine<'_, T> {
    /// Takes in answers, checks the limits, and stops a run that is to be cancelled. Returns turns
    /// that go on after an answer.
    pub(super) async fn look(&mut self) -> Result<Vec<Begun>> {
        self.keep_hold().await?;
        let stored = self.hub.stored_workflow(self.run.id).await?;
        let cancel = stored.is_none_or(|run| run.cancel);
        if cancel && self.stopped.is_none() {
            self.run.cancel = true;
            self.stop("the run was cancelled".into()).await?;
        }
        self.check_limits().await?;
        let mut again = vec![];
        for slot in self.slots() {
            if self.get(slot).status != StepStatus::Waiting || self.running.contains(&slot) {
                continue;
            }
            if let Some(begun) = self.look_at(slot).await? {
                again.push(begun);
            }
        }
        let waits = |step: &rejoin_hub::RunStep| step.status == StepStatus::Waiting;
        if !self.steps.iter().any(waits) && !self.items.values().flatten().any(waits) {
            self.set_status(StepStatus::Running).await?;
        }
        Ok(again)
    }

    /// Looks at a slot that waits for a person.
    async fn look_at(&mut self, slot: Slot) -> Result<Option<Begun>> {
        let step = self.get(slot);
        let (Some(turn), Some(c)) = (step.stored.turn, step.stored.conversation) else {
            return Ok(None);
        };
        let stored = self.hub.stored_turn(turn).await?;
        let waits = stored.is_some_and(|turn| !turn.status.ended());
        if waits {
            // The turn itself asked: it goes on once it is answered.
            if self.hub.is_deferred(turn).await? {
                return Ok(None);
            }
            self.get_mut(slot).status = StepStatus::Running;
            self.running.insert(slot);
            self.save(&[slot]).await?;
            return Ok(Some(Begun {
                slot,
                accepted: known(c, turn),
            }));
        }
        self.take_answer(slot).await?;
        let late = self.step(slot.n).timeout_ms.is_some_and(|most| {
            let since = self.get(slot).stored.started_at.unwrap_or(0);
            let most = i64::try_from(most).unwrap_or(i64::MAX / 1000);
            self.hub.clock.now() - since > most * 1000
        });
        if late && self.get(slot).status == StepStatus::Waiting {
            self.hub
                .withdraw_step_question(turn, "the step's timeout")
                .await?;
            let text = "nobody answered within the step's timeout";
            self.fail(slot, "time_limit", text).await?;
        }
        Ok(None)
    }

    async fn check_limits(&mut self) -> Result<()> {
        if self.stopped.is_some() {
            return Ok(());
        }
        if let Some(most) = self.file.timeout_ms {
            let ran = self.hub.clock.now() - self.run.started_at;
            if ran / 1000 > i64::try_from(most).unwrap_or(i64::MAX) {
                let text = format!("the run took longer than {}", rejoin_core::span(most));
                return self.stop(text).await;
            }
        }
        if let Some(most) = self.file.max_cost_usd {
            let all = self.steps.iter().chain(self.items.values().flatten());
            let cost: i64 = all.filter_map(|step| step.state.cost).sum();
            if Micros(cost).dollars() > most {
                let cost = Micros(cost).dollars();
                let text = format!("the run has cost ${cost:.2}; its limit is ${most:.2}");
                return self.stop(text).await;
            }
        }
        Ok(())
    }

    /// Cancels what runs, and lets nothing more begin.
    async fn stop(&mut self, why: String) -> Result<()> {
        self.stopped = Some(why.clone());
        for slot in self.slots() {
            let (status, turn) = (self.get(slot).status, self.get(slot).stored.turn);
            let Some(turn) = turn else { continue };
            if status == StepStatus::Running {
                self.hub.ask_cancel(turn).await?;
                self.turns.cancel(turn);
            } else if status == StepStatus::Waiting {
                self.hub
                    .withdraw_step_question(turn, "the end of the run")
                    .await?;
                let stored = self.hub.stored_turn(turn).await?;
                if stored.is_some_and(|turn| !turn.status.ended()) {
                    self.hub.ask_cancel(turn).await?;
                    self.turns.cancel(turn);
                }
                self.finish(slot, StepStatus::Cancelled).await?;
            }
        }
        for slot in self.slots() {
            if self.get(slot).status == StepStatus::Pending {
                self.skip(slot, why.clone()).await?;
            }
        }
        Ok(())
    }
}
