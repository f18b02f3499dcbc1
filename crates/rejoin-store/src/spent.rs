//! What turns cost, for whoever estimates others.

use rejoin_core::{AgentName, Context, ConversationId, Micros, Spent, TurnId, Verdict};
use serde_json::Value;

use crate::connections::Read;
use crate::db::{rows, vals};
use crate::error::Result;

impl Read {
    /// The newest turns with a known cost that this agent answered when asked for this model, newest
    /// first; only those before a turn, if one is given. Never more than `limit` are looked at.
    pub async fn spent(
        &mut self,
        c: ConversationId,
        agent: &AgentName,
        model: Option<&str>,
        before: Option<TurnId>,
        limit: i64,
    ) -> Result<Vec<Spent>> {
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
            found.push(Spent {
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
