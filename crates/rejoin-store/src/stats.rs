//! Statistics of a store, for monitoring.

use crate::connections::Read;
use crate::db::{Ask as _, one, rows, vals};
use crate::engine::Connection;
use crate::error::Result;

/// Statistics of a store.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    /// Number of unfinished turns, by status.
    pub now: Vec<(String, i64)>,
    /// Waiting time of the oldest queued turn, in microseconds.
    pub waits: i64,
    /// Number of turns with a lease, on a store that machines share.
    pub leases: i64,
    /// Number of leases that have expired.
    pub expired: i64,
    pub conversations: i64,
    pub snapshots: i64,
    pub last_event: i64,
}

/// Number of conversations of a namespace.
#[derive(Debug, Clone, Copy, Default)]
pub struct ShelfSizes {
    pub listed: i64,
    pub archived: i64,
}

impl Read {
    pub async fn stats(&mut self, now: i64) -> Result<Stats> {
        let sql = "select status, count(*) as many, min(created_at) as oldest, count(lease_until) as leases,
                count(case when lease_until < $1 then 1 end) as expired
            from turns where status in ('running', 'waiting') group by status
            union all select status, count(*), min(created_at), count(lease_until),
                count(case when lease_until < $1 then 1 end)
            from turns where status = 'queued' group by status";
        let mut stats = Stats {
            now: ["queued", "running", "waiting"]
                .map(|status| (status.to_owned(), 0))
                .into(),
            conversations: self.rows_in("conversations").await?,
            snapshots: self.rows_in("snapshots").await?,
            last_event: self.events().last().await?,
            ..Stats::default()
        };
        for row in rows(self, sql, vec![now.into()]).await? {
            let status = row.text("status")?;
            if status == "queued" {
                stats.waits = (now - row.int("oldest")?).max(0);
            }
            stats.leases += row.int("leases")?;
            stats.expired += row.int("expired")?;
            let many = row.int("many")?;
            if let Some(slot) = stats.now.iter_mut().find(|(name, _)| *name == status) {
                slot.1 = many;
            }
        }
        Ok(stats)
    }

    /// Returns the number of conversations of a namespace that are listed, and that are archived.
    pub async fn shelf_sizes(&mut self, namespace: &str) -> Result<ShelfSizes> {
        let sql = "select shelf, conversations from shelves where namespace = $1";
        let mut sizes = ShelfSizes::default();
        for row in rows(self, sql, vals![namespace]).await? {
            match row.int("shelf")? {
                0 => sizes.listed = row.int("conversations")?,
                1 => sizes.archived = row.int("conversations")?,
                _ => {}
            }
        }
        Ok(sizes)
    }

    /// Returns the number of listed conversations of a namespace that are not idle, by state.
    pub async fn busy_conversations(&mut self, namespace: &str) -> Result<Vec<(String, i64)>> {
        let sql = "select t.status as state, count(*) as many from turns t cross join conversations c
                where t.status in ('running', 'waiting') and c.id = t.conversation_id
                    and c.namespace = $1 and c.shelf = 0 group by t.status
            union all select 'queued' as state, count(*) as many
                from (select distinct conversation_id from turns where status = 'queued') as waiting
                cross join conversations c
                where c.id = waiting.conversation_id and c.namespace = $1 and c.shelf = 0
                    and not exists (select 1 from turns where conversation_id = c.id and status in ('running', 'waiting'))";
        let found = rows(self, sql, vals![namespace]).await?;
        found
            .iter()
            .map(|row| Ok((row.text("state")?, row.int("many")?)))
            .collect()
    }

    /// Returns the number of rows of a table. On a server, large numbers are estimates.
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
