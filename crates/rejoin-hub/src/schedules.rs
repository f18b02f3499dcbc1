//! Schedules: prompts that are sent at their times. Each occurrence is recorded once, by whichever
//! daemon is first: as started, in the transaction that accepts its turn, as missed or as skipped.

mod rhythm;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod view;

use rejoin_core::{ConversationId, TurnId};
use rejoin_store::{NewOccurrence, ScheduleKey, StoredOccurrence, Tx};
use serde::Deserialize;

use crate::Hub;
use crate::climb::{BY_SCHEDULE, waits_for_approval};
use crate::error::{Error, Result};
use crate::message_request::MessageRequest;
use crate::metrics;
use crate::request::IfBusy;

pub use rhythm::Rhythm;
pub use view::{OccurrenceView, ScheduleView, SchedulesView};

/// Status of an occurrence that began a turn.
const STARTED: &str = "started";
/// No daemon was up at its time. It may have begun a turn later.
const MISSED: &str = "missed";
/// No turn began, for the reason that is recorded.
const SKIPPED: &str = "skipped";
/// Time for which occurrences are kept, in microseconds.
const KEPT: i64 = 90 * 86_400 * 1_000_000;

/// Behaviour while the turns of an earlier occurrence run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Overlap {
    #[default]
    Skip,
    Queue,
}

/// A prompt that is sent at its times.
#[derive(Debug, Clone)]
pub struct Schedule {
    pub name: String,
    pub rhythm: Rhythm,
    /// Time zone of dates in the key.
    pub timezone: String,
    pub tier: Option<String>,
    pub climb: bool,
    pub prompt: String,
    pub workdir: Option<String>,
    /// Key of the conversation; `{date}` is replaced. `None`: a new conversation each time.
    pub key: Option<String>,
    pub overlap: Overlap,
}

/// An occurrence that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueOccurrence {
    pub schedule: String,
    pub at: i64,
    /// True if no daemon was up at its time.
    pub late: bool,
}

/// Reason why a due occurrence begins no turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipReason {
    Paused,
    /// The turns of the occurrence before still run, or wait for a person.
    Overlap,
    /// The message was refused.
    Refused(String),
}

impl SkipReason {
    fn text(&self) -> &str {
        match self {
            Self::Paused => "the schedule is paused",
            Self::Overlap => "the occurrence before has not ended",
            Self::Refused(why) => why,
        }
    }
}

impl Schedule {
    /// Checks the time zone.
    pub fn check_timezone(&self) -> Result<(), String> {
        if rhythm::is_zone(&self.timezone) {
            return Ok(());
        }
        Err(format!(
            "this machine knows no time zone `{}`",
            self.timezone
        ))
    }

    /// Returns the message of an occurrence.
    pub fn message(&self, at: i64) -> MessageRequest {
        let date = || rhythm::date(at, &self.timezone);
        MessageRequest {
            key: (self.key.as_ref()).map(|key| key.replace("{date}", &date())),
            title: self.key.is_none().then(|| self.name.clone()),
            text: self.prompt.clone(),
            tier: self.tier.clone(),
            climb: self.climb,
            workdir: self.workdir.clone(),
            confirm: true,
            if_busy: self.if_busy(),
            ..MessageRequest::default()
        }
    }

    /// Returns the behaviour of a message while another turn of its conversation runs.
    pub fn if_busy(&self) -> IfBusy {
        match self.overlap {
            Overlap::Skip => IfBusy::Fail,
            Overlap::Queue => IfBusy::Wait,
        }
    }
}

impl Hub {
    /// Begins a schedule, so that its occurrences count from now on.
    pub async fn begin_schedule(&self, schedule: &Schedule) -> Result<()> {
        let mut tx = self.store.begin().await?;
        let (key, now) = (self.schedule_key(&schedule.name), self.clock.now());
        tx.schedules()
            .begin(key, &schedule.rhythm.rule(), now)
            .await?;
        Ok(tx.commit().await?)
    }

    /// Returns an occurrence of this moment, for a run by hand.
    pub async fn occurrence_now(&self, schedule: &Schedule) -> Result<DueOccurrence> {
        self.begin_schedule(schedule).await?;
        Ok(DueOccurrence {
            schedule: schedule.name.clone(),
            at: self.clock.now(),
            late: false,
        })
    }

    /// Records the occurrences that were missed, and returns the newest one if it is due.
    /// `up_since` is the time at which this daemon started, `now` that of its clock.
    pub async fn due_occurrence(
        &self,
        schedule: &Schedule,
        (up_since, now): (i64, i64),
    ) -> Result<Option<DueOccurrence>> {
        let key = self.schedule_key(&schedule.name);
        let mut tx = self.store.begin().await?;
        let Some(state) = tx.schedules().state(key).await? else {
            return Ok(None);
        };
        tx.schedules().tidy(key, now - KEPT, now).await?;
        // A clock that was set back leaves a gap behind what ran in its future.
        let mut settled = state.settled_until.min(now);
        let mut due = schedule.rhythm.due(settled, now);
        let newest = due.pop();
        let (status, reason) = if state.paused_at.is_some() {
            (SKIPPED, Some(SkipReason::Paused.text()))
        } else {
            (MISSED, None)
        };
        for at in due {
            let new = self.occurrence(at, (status, reason), None, now);
            if tx.schedules().record(key, &new).await? {
                metrics::occurrence(&schedule.name, status);
            }
            settled = at;
        }
        tx.schedules().settle(key, settled).await?;
        let last = tx.schedules().occurrences(key, now, 1).await?;
        tx.commit().await?;
        let is_new = |at: &i64| last.first().is_none_or(|last| last.at != *at);
        let Some(at) = newest.filter(is_new) else {
            return Ok(None);
        };
        let due = DueOccurrence {
            schedule: schedule.name.clone(),
            at,
            late: at < up_since,
        };
        if state.paused_at.is_some() {
            self.skip_occurrence(&due, &SkipReason::Paused).await?;
            return Ok(None);
        }
        if schedule.overlap == Overlap::Skip && self.last_run_goes_on(&schedule.name).await? {
            self.skip_occurrence(&due, &SkipReason::Overlap).await?;
            return Ok(None);
        }
        Ok(Some(due))
    }

    /// Records that a due occurrence begins no turn.
    pub async fn skip_occurrence(&self, due: &DueOccurrence, why: &SkipReason) -> Result<()> {
        let now = self.clock.now();
        let mut tx = self.store.begin().await?;
        let new = self.occurrence(due.at, (SKIPPED, Some(why.text())), None, now);
        let key = self.schedule_key(&due.schedule);
        let recorded = tx.schedules().record(key, &new).await?;
        tx.commit().await?;
        if recorded {
            metrics::occurrence(&due.schedule, SKIPPED);
            tracing::info!(
                schedule = due.schedule,
                reason = why.text(),
                "An occurrence is skipped"
            );
        }
        Ok(())
    }

    /// Records an occurrence with its turn, in the transaction that accepts it.
    pub(crate) async fn record_run(
        &self,
        tx: &mut Tx,
        due: &DueOccurrence,
        run: (ConversationId, TurnId),
        now: i64,
    ) -> Result<()> {
        let status = if due.late { MISSED } else { STARTED };
        let new = self.occurrence(due.at, (status, None), Some(run), now);
        let key = self.schedule_key(&due.schedule);
        if !tx.schedules().record(key, &new).await? {
            return Err(Error::OccurrenceRecorded(due.schedule.clone()));
        }
        tx.chains().set_trigger(run.1, BY_SCHEDULE).await?;
        metrics::occurrence(&due.schedule, status);
        Ok(())
    }

    /// Pauses a schedule, or resumes it. Occurrences of a paused one are skipped.
    pub async fn pause_schedule(&self, schedule: &Schedule, paused: bool) -> Result<()> {
        let (key, now) = (self.schedule_key(&schedule.name), self.clock.now());
        let mut tx = self.store.begin().await?;
        tx.schedules()
            .begin(key, &schedule.rhythm.rule(), now)
            .await?;
        tx.schedules().pause(key, paused.then_some(now)).await?;
        Ok(tx.commit().await?)
    }

    /// Returns true if the turns of the newest run have not ended, or wait for a person to approve a
    /// climb.
    async fn last_run_goes_on(&self, name: &str) -> Result<bool> {
        let mut read = self.store.read().await?;
        let last = read.schedules().last_run(self.schedule_key(name)).await?;
        let Some(c) = last.and_then(|run: StoredOccurrence| run.conversation) else {
            return Ok(false);
        };
        if read.turns().is_busy(c).await? {
            return Ok(true);
        }
        let last = read.turns().last(c).await?;
        Ok(last.is_some_and(|turn| waits_for_approval(&turn)))
    }

    fn schedule_key<'a>(&'a self, name: &'a str) -> ScheduleKey<'a> {
        let namespace = &self.namespace;
        ScheduleKey { namespace, name }
    }

    fn occurrence<'a>(
        &'a self,
        at: i64,
        (status, reason): (&'a str, Option<&'a str>),
        run: Option<(ConversationId, TurnId)>,
        now: i64,
    ) -> NewOccurrence<'a> {
        NewOccurrence {
            at,
            status,
            conversation: run.map(|(conversation, _)| conversation),
            turn: run.map(|(_, turn)| turn),
            reason,
            machine: &self.machine,
            now,
        }
    }
}
