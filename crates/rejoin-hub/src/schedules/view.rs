//! JSON of schedules and their occurrences.

use rejoin_core::{ConversationId, TurnId};
use rejoin_store::{Read, StoredOccurrence};
use serde::{Deserialize, Serialize};

use super::{Rhythm, STARTED, Schedule};
use crate::Hub;
use crate::clock::rfc3339;
use crate::error::Result;

/// Schedules of the configuration, in their order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SchedulesView {
    pub schedules: Vec<ScheduleView>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ScheduleView {
    pub name: String,
    /// Interval in milliseconds; null: `cron`.
    pub every_ms: Option<u64>,
    /// Cron expression with its time zone.
    pub cron: Option<String>,
    pub tier: Option<String>,
    pub climb: bool,
    pub key: Option<String>,
    pub workdir: Option<String>,
    pub paused_at: Option<String>,
    /// Next time, whether or not the schedule is paused. Null: no daemon has begun the schedule.
    pub next_at: Option<String>,
    /// Newest occurrences, newest first.
    pub occurrences: Vec<OccurrenceView>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct OccurrenceView {
    pub at: String,
    /// `running`; `done`: its turns have ended; `missed`: no daemon was up at its time; `skipped`.
    pub status: String,
    /// Turn that it began. Also of a missed one that ran later.
    pub turn_id: Option<TurnId>,
    pub conversation_id: Option<ConversationId>,
    /// Status of the last turn of its chain; null if it is deleted, or there is none.
    pub turn_status: Option<String>,
    /// Reason why it began no turn.
    pub reason: Option<String>,
    pub machine: String,
}

impl Hub {
    /// Returns schedules with their newest occurrences, at most `limit` of each.
    pub async fn schedules(&self, all: &[Schedule], limit: i64) -> Result<SchedulesView> {
        let mut read = self.store.read().await?;
        let now = self.clock.now();
        let mut schedules = vec![];
        for schedule in all {
            let key = self.schedule_key(&schedule.name);
            let state = read.schedules().state(key).await?;
            let stored = read.schedules().occurrences(key, i64::MAX, limit).await?;
            let mut occurrences = vec![];
            for occurrence in stored {
                occurrences.push(shown(&mut read, occurrence).await?);
            }
            let next = state.and_then(|_| schedule.rhythm.next(now));
            schedules.push(ScheduleView {
                name: schedule.name.clone(),
                every_ms: match &schedule.rhythm {
                    Rhythm::Every(micros) => Some(micros.unsigned_abs() / 1000),
                    Rhythm::Cron { .. } => None,
                },
                cron: match &schedule.rhythm {
                    Rhythm::Every(_) => None,
                    Rhythm::Cron { text, .. } => Some(text.clone()),
                },
                tier: schedule.tier.clone(),
                climb: schedule.climb,
                key: schedule.key.clone(),
                workdir: schedule.workdir.clone(),
                paused_at: state.and_then(|state| state.paused_at).map(rfc3339),
                next_at: next.map(rfc3339),
                occurrences,
            });
        }
        Ok(SchedulesView { schedules })
    }
}

async fn shown(read: &mut Read, stored: StoredOccurrence) -> Result<OccurrenceView> {
    let mut last = None;
    if let Some(turn) = stored.turn {
        let root = read.turns().get(turn).await?;
        let chain = read.chains().of(turn).await?;
        last = chain.last().cloned().or(root).map(|turn| turn.status);
    }
    let status = match last {
        Some(status) if !status.ended() => "running",
        Some(_) | None if stored.status == STARTED => "done",
        Some(_) | None => stored.status.as_str(),
    };
    Ok(OccurrenceView {
        at: rfc3339(stored.at),
        status: status.to_owned(),
        turn_id: stored.turn,
        conversation_id: stored.conversation,
        turn_status: last.map(|status| status.to_string()),
        reason: stored.reason,
        machine: stored.machine,
    })
}
