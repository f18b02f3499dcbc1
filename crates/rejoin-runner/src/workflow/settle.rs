//! End of a step: what its turn came to, and what follows.

use rejoin_core::{Choice, EventBody, TurnId};
use rejoin_hub::{RunStep, StepStatus, TurnView};
use rejoin_workflow::{AnswerSchema, Work};
use serde_json::json;

use super::Turns;
use super::engine::{Begun, Engine, Slot};
use crate::error::{Error, Result};

/// Causes of a retry if the step names none.
const USUAL: [&str; 2] = ["transient", "quota"];
/// Class of a turn whose process is gone.
const LOST: &str = "lost";
/// Number of newest events that contain the result of a command.
const NEWEST: i64 = 20;
/// Most characters of an answer in an error.
const SHOWN: usize = 2000;

impl<T: Turns> Engine<'_, T> {
    /// Settles a slot whose turn was run. Returns the turn that continues it, if it climbed.
    pub(super) async fn turn_ended(
        &mut self,
        slot: Slot,
        ran: Result<()>,
    ) -> Result<Option<Begun>> {
        let error = match ran {
            Err(Error::Hub(error)) if error.is_store() => return Err(error.into()),
            Err(error) => Some(error),
            Ok(()) => None,
        };
        let Some(turn) = self.get(slot).stored.turn else {
            return Ok(None);
        };
        let Some(stored) = self.hub.stored_turn(turn).await? else {
            // Nothing ran, and the message was withdrawn.
            let class = error.as_ref().map_or("not_started", class_of);
            let why = error.map_or_else(|| "the turn was withdrawn".into(), |e| e.to_string());
            let first = self.get(slot).state.round == 0 && self.get(slot).state.attempt == 0;
            let step = self.get_mut(slot);
            step.stored.turn = None;
            if first {
                step.stored.conversation = None;
            }
            self.failed(slot, class, why, false).await?;
            return Ok(None);
        };
        if !stored.status.ended() {
            self.get_mut(slot).status = StepStatus::Waiting;
            self.save(&[slot]).await?;
            return Ok(None);
        }
        let view = self.hub.turn_view(turn).await?;
        self.take_over(slot, &view);
        if let Some(next) = next_turn(&view) {
            let accepted = self.follow(slot, next);
            self.save(&[slot]).await?;
            self.running.insert(slot);
            return Ok(accepted.map(|accepted| Begun { slot, accepted }));
        }
        match view.status.as_str() {
            "succeeded" => self.answered(slot, &view).await?,
            "cancelled" => self.cancelled(slot).await?,
            LOST => self.lost(slot, &view).await?,
            _ => {
                let error = view.error.as_ref();
                let class = error.map_or("unknown", |e| e.class.as_str()).to_owned();
                let why = error.map_or_else(String::new, |e| e.message.clone());
                self.failed(slot, &class, why, true).await?;
            }
        }
        Ok(None)
    }

    /// Copies the facts of a turn into its step.
    fn take_over(&mut self, slot: Slot, view: &TurnView) {
        // Only models cost money.
        let free = !matches!(self.step(slot.n).work, Work::Agent(_));
        let step = self.get_mut(slot);
        let state = &mut step.state;
        state.session_id.clone_from(&view.session_id);
        state.verdict.clone_from(&view.verdict);
        state.reason.clone_from(&view.reason);
        if !state.counted.contains(&view.turn_id) {
            state.counted.push(view.turn_id);
            match view.cost_usd {
                Some(cost) => {
                    #[expect(clippy::cast_possible_truncation, reason = "a sum of dollars")]
                    let micros = (cost * 1e6).round() as i64;
                    state.cost = Some(state.cost.unwrap_or(0) + micros);
                }
                None if free => {}
                None => state.cost_unknown = true,
            }
        }
    }

    /// Settles a slot whose turn has an answer.
    async fn answered(&mut self, slot: Slot, view: &TurnView) -> Result<()> {
        let text = view.text.clone().unwrap_or_default();
        let work = self.step(slot.n).work.clone();
        match &work {
            Work::Agent(work) => match &work.output {
                None => self.finish(slot, StepStatus::Succeeded).await,
                Some(schema) if self.options.rehearsal => {
                    self.get_mut(slot).state.output = super::rehearsal::sample(schema);
                    self.finish(slot, StepStatus::Succeeded).await
                }
                Some(schema) => {
                    let checked = AnswerSchema::new(schema).and_then(|schema| schema.check(&text));
                    self.checked(slot, text, checked).await
                }
            },
            Work::Run(_) | Work::Shell(_) => {
                let code = self.exit_code(view.turn_id).await?;
                self.get_mut(slot).state.exit_code = Some(code);
                if code == 0 {
                    return self.finish(slot, StepStatus::Succeeded).await;
                }
                let why = format!("the command ended with exit code {code}");
                self.failed(slot, "exit_code", why, true).await
            }
            Work::Approve(_) => {
                let id = self.get(slot).stored.id.clone();
                self.hub
                    .ask_about_step(view.turn_id, (self.run.id, &id), &text)
                    .await?;
                self.get_mut(slot).status = StepStatus::Waiting;
                self.save(&[slot]).await
            }
        }
    }

    /// Settles an answer that must match a schema. The first one that does not is asked for again.
    async fn checked(
        &mut self,
        slot: Slot,
        text: String,
        checked: Result<serde_json::Value, String>,
    ) -> Result<()> {
        let step = self.get_mut(slot);
        let why = match checked {
            Ok(value) => {
                step.state.output = value;
                return self.finish(slot, StepStatus::Succeeded).await;
            }
            Err(why) => why,
        };
        step.state.invalid.push(shortened(&text));
        if let [_first] = step.state.invalid.as_slice() {
            step.state.follow_up = Some(format!(
                "The answer does not match the JSON Schema of the request: {why}\nAnswer again: end with one \
                 JSON value in a ```json block that matches it."
            ));
            step.state.attempt += 1;
            step.status = StepStatus::Pending;
            return self.save(&[slot]).await;
        }
        let answers: Vec<String> = step.state.invalid.iter().enumerate().map(said).collect();
        let text = format!(
            "two answers do not match `output`: {why}\n{}",
            answers.join("\n")
        );
        self.fail(slot, "invalid_output", text).await
    }

    async fn exit_code(&self, turn: TurnId) -> Result<i64> {
        let mut read = self
            .hub
            .store
            .read()
            .await
            .map_err(rejoin_hub::Error::from)?;
        let events = read.events().newest_of_turn(turn, NEWEST).await;
        let events = events.map_err(rejoin_hub::Error::from)?;
        let code = events.into_iter().find_map(|row| {
            if let EventBody::ToolResult { exit_code, .. } = row.body {
                exit_code
            } else {
                None
            }
        });
        Ok(code.unwrap_or(-1))
    }

    /// Settles a slot whose turn failed: tries again if the step says so. `told` is true if the
    /// agent knows the prompt.
    async fn failed(&mut self, slot: Slot, class: &str, why: String, told: bool) -> Result<()> {
        let retry = &self.step(slot.n).retry;
        let (max, wait) = (retry.max, retry.wait_ms);
        let causes = if retry.on.is_empty() {
            &USUAL.map(str::to_owned)
        } else {
            retry.on.as_slice()
        };
        let wanted = causes.iter().any(|cause| covers(cause, class));
        let tries = self.get(slot).state.attempt;
        // An answer that had to be given again is no retry.
        let asked_again = u32::try_from(self.get(slot).state.invalid.len()).unwrap_or(0);
        if !wanted || tries.saturating_sub(asked_again) >= max || self.stopped.is_some() {
            return self.fail(slot, class, why).await;
        }
        let follow_up = self.again(slot).filter(|_| told);
        let wake = self.hub.clock.now() + i64::try_from(wait * 1000).unwrap_or(i64::MAX / 2);
        let step = self.get_mut(slot);
        step.status = StepStatus::Pending;
        step.state.attempt += 1;
        step.state.wake_at = (wait > 0).then_some(wake);
        if told {
            step.state.follow_up = follow_up;
        }
        self.save(&[slot]).await
    }

    /// Settles a slot whose turn was lost. A turn in which something ran is run again only if a
    /// person or the step says so.
    async fn lost(&mut self, slot: Slot, view: &TurnView) -> Result<()> {
        let wanted = self
            .step(slot.n)
            .retry
            .on
            .iter()
            .any(|cause| covers(cause, LOST));
        let why = view
            .error
            .as_ref()
            .map_or_else(String::new, |e| e.message.clone());
        if wanted {
            return self.failed(slot, LOST, why, true).await;
        }
        if !self.ran_a_tool(view.turn_id).await? {
            return self.once_more(slot).await;
        }
        let id = self.get(slot).stored.id.clone();
        let text = format!("The turn of {id} was lost after it had run a tool. Run it again?");
        self.hub
            .ask_about_step(view.turn_id, (self.run.id, &id), &text)
            .await?;
        self.get_mut(slot).status = StepStatus::Waiting;
        self.save(&[slot]).await
    }

    async fn ran_a_tool(&self, turn: TurnId) -> Result<bool> {
        let mut read = self
            .hub
            .store
            .read()
            .await
            .map_err(rejoin_hub::Error::from)?;
        let mut seen = 0;
        loop {
            let rows = read.events().of_turn(turn, seen, 256).await;
            let rows = rows.map_err(rejoin_hub::Error::from)?;
            let Some(last) = rows.last() else {
                return Ok(false);
            };
            seen = last.seq;
            if rows
                .iter()
                .any(|row| matches!(row.body, EventBody::ToolCall { .. }))
            {
                return Ok(true);
            }
        }
    }

    async fn once_more(&mut self, slot: Slot) -> Result<()> {
        let follow_up = self.again(slot);
        let step = self.get_mut(slot);
        step.status = StepStatus::Pending;
        step.state.attempt += 1;
        step.state.follow_up = follow_up;
        self.save(&[slot]).await
    }

    async fn cancelled(&mut self, slot: Slot) -> Result<()> {
        self.finish(slot, StepStatus::Cancelled).await
    }

    /// Settles a slot that waited for a person, if there is an answer now.
    pub(super) async fn take_answer(&mut self, slot: Slot) -> Result<()> {
        let Some(turn) = self.get(slot).stored.turn else {
            return Ok(());
        };
        let Some((given, by)) = self.hub.answer_about_step(turn).await? else {
            return Ok(());
        };
        let approves = matches!(self.step(slot.n).work, Work::Approve(_));
        match given.decision {
            Choice::Allow | Choice::Always if approves => {
                let answer = json!({"decision": "allow", "by": by, "message": given.message});
                self.get_mut(slot).state.output = answer;
                self.finish(slot, StepStatus::Succeeded).await
            }
            Choice::Allow | Choice::Always => self.once_more(slot).await,
            Choice::Deny if approves => {
                let why = match &given.message {
                    Some(message) => format!("denied by {by}: {message}"),
                    None => format!("denied by {by}"),
                };
                let answer = json!({"decision": "deny", "by": by, "message": given.message});
                self.get_mut(slot).state.output = answer;
                self.fail(slot, "denied", why).await
            }
            Choice::Deny => {
                let why = format!("its turn was lost, and {by} did not want it to run again");
                self.fail(slot, LOST, why).await
            }
        }
    }

    /// Ends a slot as failed.
    pub(super) async fn fail(
        &mut self,
        slot: Slot,
        class: &str,
        message: impl Into<String>,
    ) -> Result<()> {
        let error = rejoin_hub::ErrorView {
            class: class.into(),
            message: message.into(),
            next: None,
        };
        self.get_mut(slot).state.error = Some(error);
        self.finish(slot, StepStatus::Failed).await
    }

    /// Ends a slot. The end of the last item ends the step; the end of the last step of a loop may
    /// begin it again.
    pub(super) async fn finish(&mut self, slot: Slot, status: StepStatus) -> Result<()> {
        let now = self.hub.clock.now();
        end(self.get_mut(slot), status, now);
        let mut changed = vec![slot];
        let whole = Slot {
            n: slot.n,
            item: None,
        };
        if slot.item.is_some() {
            let items = self
                .items
                .get(&slot.n)
                .map(Vec::as_slice)
                .unwrap_or_default();
            if !items.iter().all(|item| item.status.has_ended()) {
                return self.save(&changed).await;
            }
            let good = [StepStatus::Succeeded, StepStatus::Skipped];
            let bad = items.iter().find(|item| !good.contains(&item.status));
            let error = bad.and_then(|item| item.state.error.clone());
            let status = match bad.map(|item| item.status) {
                None => StepStatus::Succeeded,
                Some(StepStatus::Cancelled) => StepStatus::Cancelled,
                Some(_) => StepStatus::Failed,
            };
            let step = self.get_mut(whole);
            step.state.error = error;
            end(step, status, now);
            changed.push(whole);
        }
        self.publish(slot.n).await?;
        let status = self.get(whole).status;
        if matches!(status, StepStatus::Succeeded | StepStatus::Failed) && self.stopped.is_none() {
            match self.loop_back(slot.n) {
                Ok(again) if again.is_empty() => {}
                Ok(again) => {
                    self.forget_items(&again).await?;
                    changed = again;
                }
                Err(why) => {
                    let step = self.get_mut(whole);
                    step.status = StepStatus::Failed;
                    step.state.error = Some(rejoin_hub::ErrorView {
                        class: "invalid_value".into(),
                        message: why,
                        next: None,
                    });
                }
            }
        }
        self.save(&changed).await
    }

    /// Removes the items of steps that run again.
    async fn forget_items(&mut self, slots: &[Slot]) -> Result<()> {
        for slot in slots {
            if self.step(slot.n).for_each.is_some() {
                let step = self.get(*slot);
                self.hub
                    .replace_items(self.run.id, &self.holder, step, &[])
                    .await?;
            }
        }
        Ok(())
    }
}

/// Returns the class of an error that let nothing run.
fn class_of(error: &Error) -> &'static str {
    if matches!(error, Error::WouldReseed { .. }) {
        "would_reseed"
    } else if matches!(error, Error::Permissions(_)) {
        "permissions"
    } else if matches!(error, Error::InUse { .. }) {
        "in_use"
    } else {
        "not_started"
    }
}

fn end(step: &mut RunStep, status: StepStatus, now: i64) {
    step.status = status;
    step.stored.ended_at = Some(now);
    if status == StepStatus::Succeeded {
        step.state.error = None;
    }
}

/// Returns the turn that the climb from a turn began.
fn next_turn(view: &TurnView) -> Option<TurnId> {
    view.escalation
        .as_ref()?
        .get("turn_id")?
        .as_str()?
        .parse()
        .ok()
}

/// Returns true if a cause of `retry.on` covers a class of failure.
fn covers(cause: &str, class: &str) -> bool {
    match cause {
        "any" => true,
        "overflow" => class == "context_overflow",
        "timeout" => class == "time_limit" || class == "idle_limit",
        "invalid" => class == "invalid_request" || class == "invalid_output",
        "crash" => ["crashed", "interrupted", "exit_code", "unknown"].contains(&class),
        cause => cause == class,
    }
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= SHOWN {
        return text.to_owned();
    }
    text.chars().take(SHOWN).chain("…".chars()).collect()
}

fn said((n, answer): (usize, &String)) -> String {
    format!("answer {}: {answer}", n + 1)
}
