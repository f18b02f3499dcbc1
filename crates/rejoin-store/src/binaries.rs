//! What was found out about a binary, once; and epochs, which only count.

use rejoin_core::{AgentName, ConversationId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::connections::{Read, Tx};
use crate::db::{Ask, one, vals};
use crate::error::Result;

impl Tx {
    pub async fn keep_binary(
        &mut self,
        identity: &str,
        agent: &str,
        facts: &impl Serialize,
        now: i64,
    ) -> Result<()> {
        let sql = "insert into binaries (identity, agent, facts, seen_at) values ($1, $2, $3, $4)
            on conflict (identity) do update set facts = excluded.facts, seen_at = excluded.seen_at";
        self.run(
            sql,
            vals![identity, agent, serde_json::to_string(facts)?, now],
        )
        .await?;
        Ok(())
    }

    pub async fn forget_binary(&mut self, identity: &str) -> Result<()> {
        self.run("delete from binaries where identity = $1", vals![identity])
            .await?;
        Ok(())
    }

    pub async fn bump_epoch(&mut self, c: ConversationId, agent: &AgentName) -> Result<()> {
        let sql = "insert into epochs (conversation_id, agent, epoch) values ($1, $2, 1)
            on conflict (conversation_id, agent) do update set epoch = epochs.epoch + 1";
        self.run(sql, vals![c.uuid(), agent.as_str()]).await?;
        Ok(())
    }

    pub async fn epoch(&mut self, c: ConversationId, agent: &AgentName) -> Result<i64> {
        epoch(self, c, agent).await
    }
}

impl Read {
    /// None also if an older rejoin wrote something else there: it is found out again.
    pub async fn binary<T: DeserializeOwned>(&mut self, identity: &str) -> Result<Option<T>> {
        let row = one(
            self,
            "select facts from binaries where identity = $1",
            vals![identity],
        )
        .await?;
        Ok(row.and_then(|r| r.json("facts").ok()))
    }

    pub async fn epoch(&mut self, c: ConversationId, agent: &AgentName) -> Result<i64> {
        epoch(self, c, agent).await
    }
}

async fn epoch(at: &mut impl Ask, c: ConversationId, agent: &AgentName) -> Result<i64> {
    let sql = "select epoch from epochs where conversation_id = $1 and agent = $2";
    let row = one(at, sql, vals![c.uuid(), agent.as_str()]).await?;
    row.map_or(Ok(0), |r| r.int("epoch"))
}
