//! Calls of tools that tiers limit: reserved for a turn, then made.

use rejoin_core::TurnId;

use crate::connections::Tx;
use crate::db::{Ask, one, rows, topic, vals};
use crate::error::Result;

/// A limited rule of one namespace.
#[derive(Debug, Clone, Copy)]
pub struct LimitKey<'a> {
    pub namespace: &'a str,
    pub tool: &'a str,
}

topic! {
    /// Calls of tools that tiers limit.
    Limits, limits
}

impl Limits<'_, Tx> {
    /// Reserves calls for a turn.
    pub async fn reserve(&mut self, key: LimitKey<'_>, turn: TurnId, calls: u64) -> Result<()> {
        let sql = "insert into limit_calls (turn_id, tool, n, namespace) values ($1, $2, $3, $4)";
        for n in 1..=calls {
            let n = i64::try_from(n).unwrap_or(i64::MAX);
            let values = vals![turn.uuid(), key.tool, n, key.namespace];
            self.0.run(sql, values).await?;
        }
        Ok(())
    }

    /// Records a call of a turn that reserved calls. Does nothing if all of them were made.
    pub async fn take(&mut self, turn: TurnId, tool: &str, now: i64) -> Result<()> {
        let sql = "update limit_calls set at = $3 where turn_id = $1 and tool = $2 and n =
            (select min(n) from limit_calls where turn_id = $1 and tool = $2 and at is null)";
        self.0.run(sql, vals![turn.uuid(), tool, now]).await?;
        Ok(())
    }

    /// Records a call of a turn whose tier does not limit it.
    pub async fn add(&mut self, key: LimitKey<'_>, turn: TurnId, now: i64) -> Result<()> {
        let sql = "insert into limit_calls (turn_id, tool, n, namespace, at)
            select $1, $2, coalesce(max(n), 0) + 1, $3, $4 from limit_calls where turn_id = $1 and tool = $2";
        let values = vals![turn.uuid(), key.tool, key.namespace, now];
        self.0.run(sql, values).await?;
        Ok(())
    }

    /// Releases the reservations of turns that have ended. Those of lost turns count as made.
    /// Forgets calls before `oldest`.
    pub async fn tidy(&mut self, key: LimitKey<'_>, oldest: i64, now: i64) -> Result<()> {
        let sql = "update limit_calls set at = $3 where namespace = $1 and tool = $2 and at is null
            and exists (select 1 from turns t where t.id = limit_calls.turn_id and t.status = 'lost')";
        let values = vals![key.namespace, key.tool, now];
        self.0.run(sql, values).await?;
        let sql = "delete from limit_calls where namespace = $1 and tool = $2 and at is null
            and not exists (select 1 from turns t where t.id = limit_calls.turn_id and t.ended_at is null)";
        self.0.run(sql, vals![key.namespace, key.tool]).await?;
        let sql = "delete from limit_calls where namespace = $1 and tool = $2 and at < $3";
        let values = vals![key.namespace, key.tool, oldest];
        self.0.run(sql, values).await?;
        Ok(())
    }
}

impl<C: Ask> Limits<'_, C> {
    /// Returns the times of the newest calls after `since`, at most `most`, and the number of calls that are reserved.
    pub async fn used(
        &mut self,
        key: LimitKey<'_>,
        since: i64,
        most: u64,
    ) -> Result<(Vec<i64>, u64)> {
        Ok((
            self.made(key, since, most).await?,
            self.reserved(key).await?,
        ))
    }

    /// Returns the times of the newest calls after `since`, oldest first, at most `most`.
    pub async fn made(&mut self, key: LimitKey<'_>, since: i64, most: u64) -> Result<Vec<i64>> {
        let sql = "select at from limit_calls where namespace = $1 and tool = $2 and at > $3
            order by at desc limit $4";
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let values = vals![key.namespace, key.tool, since, most];
        let found = rows(self.0, sql, values).await?;
        let mut times: Vec<i64> = found
            .iter()
            .map(|row| row.int("at"))
            .collect::<Result<_>>()?;
        times.reverse();
        Ok(times)
    }

    /// Returns the number of calls that are reserved for turns.
    pub async fn reserved(&mut self, key: LimitKey<'_>) -> Result<u64> {
        let sql = "select count(*) as n from limit_calls where namespace = $1 and tool = $2 and at is null";
        let row = one(self.0, sql, vals![key.namespace, key.tool]).await?;
        Ok(row.map_or(Ok(0), |row| row.int("n"))?.unsigned_abs())
    }

    /// Returns the number of calls that are reserved for one turn.
    pub async fn left(&mut self, turn: TurnId, tool: &str) -> Result<u64> {
        let sql =
            "select count(*) as n from limit_calls where turn_id = $1 and tool = $2 and at is null";
        let row = one(self.0, sql, vals![turn.uuid(), tool]).await?;
        Ok(row.map_or(Ok(0), |row| row.int("n"))?.unsigned_abs())
    }
}
