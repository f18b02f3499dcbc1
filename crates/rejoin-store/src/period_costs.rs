//! Costs of the turns of a period, summed by agent, folder, model and quarter of an hour.
//!
//! Ids of turns are ordered by their time, so the primary key bounds the rows that are read: the turns before the
//! period cost nothing.

use rejoin_core::TurnId;

use crate::connections::Read;
use crate::db::{rows, vals};
use crate::error::Result;

/// Length of the shortest period that is summed, in microseconds. Every time zone differs from UTC by a multiple.
pub const QUARTER: i64 = 900_000_000;

/// Time by which an id may be older than the row of its turn, in microseconds.
const EARLY: i64 = 3_600_000_000;

/// The sum of some turns.
#[derive(Debug, Clone)]
pub struct PeriodCost {
    pub agent: String,
    pub folder: String,
    pub model: Option<String>,
    /// Begin of the quarter of an hour in which the messages were accepted, in microseconds.
    pub at: i64,
    pub turns: i64,
    /// Turns of which the cost is unknown.
    pub unknown: i64,
    /// Known costs, in millionths of a dollar.
    pub cost: Option<i64>,
}

impl Read {
    /// Returns the costs of a namespace from `since` up to `until`, in microseconds. Turns without a decision are left
    /// out: they ran nothing.
    pub async fn period_costs(
        &mut self,
        namespace: &str,
        since: i64,
        until: i64,
    ) -> Result<Vec<PeriodCost>> {
        let sql = "select t.agent as agent, c.workdir as folder, t.model as model, t.created_at / 900000000 as quarter,
                count(*) as many, count(case when t.cost is null then 1 end) as unknown,
                cast(sum(t.cost) as bigint) as cost
            from turns t cross join conversations c
            where t.id >= $1 and t.id < $2 and t.namespace = $3 and t.created_at >= $4 and t.created_at < $5
                and t.verdict is not null and c.id = t.conversation_id
            group by t.agent, c.workdir, t.model, t.created_at / 900000000";
        let first = |micros: i64| {
            let ms = (micros / 1000).max(0) as u64;
            TurnId::from_parts(ms, [0; 10]).uuid()
        };
        let values = vals![
            first(since.saturating_sub(EARLY)),
            first(until.saturating_add(EARLY)),
            namespace,
            since,
            until
        ];
        let mut found = vec![];
        for row in rows(self, sql, values).await? {
            found.push(PeriodCost {
                agent: row.text("agent")?,
                folder: row.text("folder")?,
                model: row.maybe_text("model")?,
                at: row.int("quarter")? * QUARTER,
                turns: row.int("many")?,
                unknown: row.int("unknown")?,
                cost: row.maybe_int("cost")?,
            });
        }
        Ok(found)
    }
}
