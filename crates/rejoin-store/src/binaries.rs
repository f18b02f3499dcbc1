//! Cached facts about binaries, and epochs, which only count changes.

use rejoin_core::{AgentName, ConversationId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::connections::Tx;
use crate::db::{Ask, one, topic, vals};
use crate::error::Result;

topic! {
    /// Known binaries of agents, and the epochs of their sessions.
    Binaries, binaries
}

impl Binaries<'_, Tx> {
    pub async fn save(
        &mut self,
        identity: &str,
        agent: &str,
        facts: &impl Serialize,
        now: i64,
    ) -> Result<()> {
        let sql = "insert into binaries (identity, agent, facts, seen_at) values ($1, $2, $3, $4)
            on conflict (identity) do update set facts = excluded.facts, seen_at = excluded.seen_at";
        self.0
            .run(
                sql,
                vals![identity, agent, serde_json::to_string(facts)?, now],
            )
            .await?;
        Ok(())
    }

    pub async fn forget(&mut self, identity: &str) -> Result<()> {
        self.0
            .run("delete from binaries where identity = $1", vals![identity])
            .await?;
        Ok(())
    }

    pub async fn bump_epoch(&mut self, c: ConversationId, agent: &AgentName) -> Result<()> {
        let sql = "insert into epochs (conversation_id, agent, epoch) values ($1, $2, 1)
            on conflict (conversation_id, agent) do update set epoch = epochs.epoch + 1";
        self.0.run(sql, vals![c.uuid(), agent.as_str()]).await?;
        Ok(())
    }
}

impl<C: Ask> Binaries<'_, C> {
    /// Returns the facts about a binary. `None` also if an older rejoin stored another format; the
    /// facts are then determined again.
    pub async fn get<T: DeserializeOwned>(&mut self, identity: &str) -> Result<Option<T>> {
        let row = one(
            self.0,
            "select facts from binaries where identity = $1",
            vals![identity],
        )
        .await?;
        Ok(row.and_then(|r| r.json("facts").ok()))
    }

    pub async fn epoch(&mut self, c: ConversationId, agent: &AgentName) -> Result<i64> {
        epoch(self.0, c, agent).await
    }
}

async fn epoch(at: &mut impl Ask, c: ConversationId, agent: &AgentName) -> Result<i64> {
    let sql = "select epoch from epochs where conversation_id = $1 and agent = $2";
    let row = one(at, sql, vals![c.uuid(), agent.as_str()]).await?;
    row.map_or(Ok(0), |r| r.int("epoch"))
}
