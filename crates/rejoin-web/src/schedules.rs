//! Runs schedules: looks once a second for occurrences that are due.

use std::time::Duration;

use rejoin_hub::{DueOccurrence, Error as HubError, Schedule, SkipReason};
use rejoin_runner::occurrence::OccurrenceLimits;
use rejoin_runner::{Error, Result};
use tokio::time::MissedTickBehavior;

use crate::folders;
use crate::state::{App, Shared};

const LOOK: Duration = Duration::from_secs(1);
/// Step back of the clock from which it counts as set back, in microseconds.
const SET_BACK: i64 = 1_000_000;

/// A schedule of this daemon.
struct Watched<'a> {
    schedule: &'a Schedule,
    begun: bool,
    /// Next time; none: to be looked up.
    next: Option<i64>,
}

/// Runs the schedules for ever.
pub(crate) async fn go_on(app: App) {
    let clock = app.runner.hub.clock;
    let (mut up_since, mut before) = (clock.now(), clock.now());
    let schedules = app.options.schedules.iter();
    let mut all: Vec<Watched<'_>> = schedules
        .map(|schedule| Watched {
            schedule,
            begun: false,
            next: None,
        })
        .collect();
    if all.is_empty() {
        return;
    }
    let mut look = tokio::time::interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        let now = clock.now();
        if now < before - SET_BACK {
            up_since = up_since.min(now);
            for watched in &mut all {
                watched.next = None;
            }
        }
        before = now;
        for watched in &mut all {
            if watched.next.is_some_and(|next| now < next) {
                continue;
            }
            match watched.run_due(&app, (up_since, now)).await {
                Ok(()) => watched.next = watched.schedule.rhythm.next(now),
                // It is looked for again in a second.
                Err(error) => {
                    let schedule = &watched.schedule.name;
                    tracing::warn!(schedule, %error, "An occurrence could not be recorded yet");
                }
            }
        }
    }
}

impl Watched<'_> {
    async fn run_due(&mut self, app: &Shared, times: (i64, i64)) -> Result<()> {
        let hub = &app.runner.hub;
        if !self.begun {
            hub.begin_schedule(self.schedule).await?;
            self.begun = true;
        }
        let Some(due) = hub.due_occurrence(self.schedule, times).await? else {
            return Ok(());
        };
        match app.run_occurrence(self.schedule, due.clone()).await {
            Ok(_) | Err(Error::Hub(HubError::OccurrenceRecorded(_))) => Ok(()),
            Err(Error::Hub(HubError::Busy)) => {
                Ok(hub.skip_occurrence(&due, &SkipReason::Overlap).await?)
            }
            Err(Error::Hub(HubError::Store(error))) => Err(error.into()),
            Err(error) => {
                let why = SkipReason::Refused(error.to_string());
                Ok(hub.skip_occurrence(&due, &why).await?)
            }
        }
    }
}

impl Shared {
    /// Accepts the message of an occurrence, and hands its turn to the queue.
    pub(crate) async fn run_occurrence(
        &self,
        schedule: &Schedule,
        due: DueOccurrence,
    ) -> Result<rejoin_core::TurnId> {
        let limits = OccurrenceLimits {
            roots: folders::configured(self),
            queue: Some(self.options.max_queued),
        };
        let holder = self.runner.holder()?;
        let holder = self.queue.has_place().then_some(holder.as_str());
        let accepted = self
            .runner
            .accept_occurrence(schedule, due, &self.defaults, limits, holder)
            .await?;
        let turn = accepted.turn;
        self.queue.take_accepted(accepted, schedule.if_busy());
        Ok(turn)
    }
}
