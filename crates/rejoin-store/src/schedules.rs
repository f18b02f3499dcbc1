//! Schedules and their occurrences.

use rejoin_core::{ConversationId, TurnId};

use crate::connections::Tx;
use crate::db::{Ask, Row, one, rows, topic, vals};
use crate::error::Result;

/// A schedule of one namespace.
#[derive(Debug, Clone, Copy)]
pub struct ScheduleKey<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
}

/// State of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScheduleState {
    /// Time up to which its occurrences are recorded, or none of it.
    pub settled_until: i64,
    pub paused_at: Option<i64>,
}

/// An occurrence to be recorded.
#[derive(Debug, Clone, Copy)]
pub struct NewOccurrence<'a> {
    pub at: i64,
    /// `started`, `missed` or `skipped`.
    pub status: &'a str,
    pub conversation: Option<ConversationId>,
    pub turn: Option<TurnId>,
    pub reason: Option<&'a str>,
    pub machine: &'a str,
    pub now: i64,
}

/// A recorded occurrence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredOccurrence {
    pub at: i64,
    pub status: String,
    pub conversation: Option<ConversationId>,
    pub turn: Option<TurnId>,
    pub reason: Option<String>,
    pub machine: String,
    pub recorded_at: i64,
}

topic! {
    /// Schedules and their occurrences.
    Schedules, schedules
}

impl Schedules<'_, Tx> {
    /// Begins a schedule, or begins it anew if its rule changed.
    pub async fn begin(&mut self, key: ScheduleKey<'_>, rule: &str, now: i64) -> Result<()> {
        let sql = "insert into schedules (namespace, name, rule, settled_until) values ($1, $2, $3, $4)
            on conflict (namespace, name) do update set rule = excluded.rule, settled_until = excluded.settled_until
            where schedules.rule <> excluded.rule";
        let values = vals![key.namespace, key.name, rule, now];
        self.0.run(sql, values).await?;
        Ok(())
    }

    /// Moves the time up to which the occurrences are recorded.
    pub async fn settle(&mut self, key: ScheduleKey<'_>, until: i64) -> Result<()> {
        let sql = "update schedules set settled_until = $3 where namespace = $1 and name = $2";
        self.0
            .run(sql, vals![key.namespace, key.name, until])
            .await?;
        Ok(())
    }

    /// Pauses or resumes a schedule. Returns false if no daemon has begun it.
    pub async fn pause(&mut self, key: ScheduleKey<'_>, paused_at: Option<i64>) -> Result<bool> {
        let sql = "update schedules set paused_at = $3 where namespace = $1 and name = $2";
        let values = vals![key.namespace, key.name, paused_at];
        Ok(self.0.run(sql, values).await? > 0)
    }

    /// Records an occurrence. Returns false if it is recorded already.
    pub async fn record(&mut self, key: ScheduleKey<'_>, new: &NewOccurrence<'_>) -> Result<bool> {
        let sql = "insert into occurrences
            (namespace, schedule, at, status, conversation_id, turn_id, reason, machine, recorded_at)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict (namespace, schedule, at) do nothing";
        let values = vals![
            key.namespace,
            key.name,
            new.at,
            new.status,
            new.conversation.map(ConversationId::uuid),
            new.turn.map(TurnId::uuid),
            new.reason,
            new.machine,
            new.now,
        ];
        Ok(self.0.run(sql, values).await? > 0)
    }

    /// Forgets occurrences before `oldest`, and those after `now` that ran nothing: a clock that was
    /// wrong recorded them.
    pub async fn tidy(&mut self, key: ScheduleKey<'_>, oldest: i64, now: i64) -> Result<()> {
        let sql = "delete from occurrences where namespace = $1 and schedule = $2 and at < $3";
        let values = vals![key.namespace, key.name, oldest];
        self.0.run(sql, values).await?;
        let sql = "delete from occurrences where namespace = $1 and schedule = $2 and at > $3
            and turn_id is null";
        let values = vals![key.namespace, key.name, now];
        self.0.run(sql, values).await?;
        Ok(())
    }
}

impl<C: Ask> Schedules<'_, C> {
    /// Returns the state of a schedule, if a daemon has begun it.
    pub async fn state(&mut self, key: ScheduleKey<'_>) -> Result<Option<ScheduleState>> {
        let sql =
            "select settled_until, paused_at from schedules where namespace = $1 and name = $2";
        let row = one(self.0, sql, vals![key.namespace, key.name]).await?;
        row.map(|row| {
            Ok(ScheduleState {
                settled_until: row.int("settled_until")?,
                paused_at: row.maybe_int("paused_at")?,
            })
        })
        .transpose()
    }

    /// Lists the occurrences up to `until`, newest first.
    pub async fn occurrences(
        &mut self,
        key: ScheduleKey<'_>,
        until: i64,
        limit: i64,
    ) -> Result<Vec<StoredOccurrence>> {
        let sql = "select * from occurrences where namespace = $1 and schedule = $2 and at <= $3
            order by at desc limit $4";
        let values = vals![key.namespace, key.name, until, limit];
        let found = rows(self.0, sql, values).await?;
        found.iter().map(read).collect()
    }

    /// Returns the newest occurrence that began a turn.
    pub async fn last_run(&mut self, key: ScheduleKey<'_>) -> Result<Option<StoredOccurrence>> {
        let sql = "select * from occurrences where namespace = $1 and schedule = $2 and turn_id is not null
            order by at desc limit 1";
        let row = one(self.0, sql, vals![key.namespace, key.name]).await?;
        row.as_ref().map(read).transpose()
    }
}

fn read(row: &Row) -> Result<StoredOccurrence> {
    Ok(StoredOccurrence {
        at: row.int("at")?,
        status: row.text("status")?,
        conversation: row
            .maybe_id("conversation_id")?
            .map(ConversationId::from_uuid),
        turn: row.maybe_id("turn_id")?.map(TurnId::from_uuid),
        reason: row.maybe_text("reason")?,
        machine: row.text("machine")?,
        recorded_at: row.int("recorded_at")?,
    })
}
