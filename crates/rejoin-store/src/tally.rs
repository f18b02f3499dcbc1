//! Counts, for whoever watches over a store.

use crate::connections::Read;
use crate::db::{Ask as _, one, rows, vals};
use crate::engine::Connection;
use crate::error::Result;

/// What a store holds, in figures.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Turns that are not over, by status.
    pub now: Vec<(String, i64)>,
    /// For how long the oldest of the queued ones has waited, in microseconds.
    pub waits: i64,
    /// Turns that somebody holds a lease of, on a store that machines share.
    pub leases: i64,
    /// Of those who were not heard of in time.
    pub expired: i64,
    pub conversations: i64,
    pub snapshots: i64,
    pub last_event: i64,
}

impl Read {
    pub async fn tally(&mut self, now: i64) -> Result<Tally> {
        let sql = "select status, count(*) as many, min(created_at) as oldest, count(lease_until) as leases,
                count(case when lease_until < $1 then 1 end) as expired
            from turns where status in ('running', 'waiting') group by status
            union all select status, count(*), min(created_at), count(lease_until),
                count(case when lease_until < $1 then 1 end)
            from turns where status = 'queued' group by status";
        let mut tally = Tally {
            now: ["queued", "running", "waiting"]
                .map(|status| (status.to_owned(), 0))
                .into(),
            conversations: self.rows_in("conversations").await?,
            snapshots: self.rows_in("snapshots").await?,
            last_event: self.last_event().await?,
            ..Tally::default()
        };
        for row in rows(self, sql, vec![now.into()]).await? {
            let status = row.text("status")?;
            if status == "queued" {
                tally.waits = (now - row.int("oldest")?).max(0);
            }
            tally.leases += row.int("leases")?;
            tally.expired += row.int("expired")?;
            let many = row.int("many")?;
            if let Some(slot) = tally.now.iter_mut().find(|(name, _)| *name == status) {
                slot.1 = many;
            }
        }
        Ok(tally)
    }

    /// Returns the number of rows of a table; on a server, about, if they are many.
    async fn rows_in(&mut self, table: &str) -> Result<i64> {
        let sql = if let Connection::Postgres(_) = self.connection()? {
            ABOUT
        } else {
            "select value as many from counts where name = $1"
        };
        let row = one(self, sql, vals![table]).await?;
        row.map_or(Ok(0), |row| row.int("many"))
    }
}

/// The planner's own estimate. A counter would be a row that every writer waits for.
const ABOUT: &str = "select case
        when reltuples >= 10000 then cast(reltuples as bigint)
        when relname = 'snapshots' then (select count(*) from snapshots)
        else (select count(*) from conversations)
    end as many
    from pg_class where oid = to_regclass($1) /* scan: of tables with few rows */";
