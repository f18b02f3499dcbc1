//! Costs of turns, for estimates.

use rejoin_core::{AgentName, Context, ConversationId, Micros, PastTurn, TurnId, Verdict};
use serde_json::Value;

use crate::connections::Read;
use crate::db::{rows, vals};
use crate::error::Result;

impl Read {
    /// Returns the newest turns with a known cost of this agent and this requested model, newest
    /// first, and only those before `before` if it is given. Examines at most `limit` turns.
    pub async fn turn_costs(
        &mut self,
        c: ConversationId,
        agent: &AgentName,
        model: Option<&str>,
        before: Option<TurnId>,
        limit: i64,
    ) -> Result<Vec<PastTurn>> {
        let sql = "select request, verdict, usage, cost, context from turns
            where conversation_id = $1 and id < $2 and agent = $3 and status = 'succeeded'
                and cost is not null and usage is not null
            order by id desc limit $4";
        let before = before.map_or(uuid::Uuid::max(), TurnId::uuid);
        let values = vals![c.uuid(), before, agent.as_str(), limit];
        let mut found = vec![];
        for row in rows(self, sql, values).await? {
            let request: Value = row.json("request")?;
            if request["model"].as_str() != model {
                continue;
            }
            let context: Option<Context> = row.maybe_json("context")?;
            let verdict: Option<Verdict> = row.maybe_word("verdict")?;
            found.push(PastTurn {
                usage: row.maybe_json("usage")?.unwrap_or_default(),
                cost: Micros(row.int("cost")?),
                resumed: matches!(
                    verdict,
                    Some(Verdict::Resumed | Verdict::Restored | Verdict::Live)
                ),
                held: context.map(|context| context.used),
            });
        }
        Ok(found)
    }
}
