//! Chains of turns linked by climbs, and holds.

use rejoin_core::{ConversationId, TurnId};
use serde_json::Value;

use crate::connections::Tx;
use crate::db::{Ask, one, rows, topic, vals};
use crate::error::Result;
use crate::turns::{StoredTurn, read};

/// Place of a turn in its chain.
#[derive(Debug, Clone, Copy)]
pub struct ChainLink<'a> {
    pub tier: &'a str,
    /// `None`: the turn is the root.
    pub parent: Option<TurnId>,
    pub chain: TurnId,
    /// `user`, `schedule`, `climb` or `person`.
    pub trigger: &'a str,
}

topic! {
    /// Chains of turns, and holds.
    Chains, chains
}

impl Chains<'_, Tx> {
    /// Stores the place of a turn in its chain. Fails if the parent has a climb already.
    pub async fn link(&mut self, turn: TurnId, link: ChainLink<'_>) -> Result<()> {
        let sql = "update turns set tier = $2, parent_turn_id = $3, chain_id = $4, started_by = $5 where id = $1";
        let values = vals![
            turn.uuid(),
            link.tier,
            link.parent.map(TurnId::uuid),
            link.chain.uuid(),
            link.trigger,
        ];
        self.0.run(sql, values).await?;
        Ok(())
    }

    /// Stores what started a turn without a tier.
    pub async fn set_trigger(&mut self, turn: TurnId, trigger: &str) -> Result<()> {
        let sql = "update turns set started_by = $2 where id = $1";
        self.0.run(sql, vals![turn.uuid(), trigger]).await?;
        Ok(())
    }

    /// Makes a turn without a tier the root of a chain.
    pub async fn begin(&mut self, turn: TurnId) -> Result<()> {
        let sql = "update turns set chain_id = id where id = $1 and chain_id is null";
        self.0.run(sql, vals![turn.uuid()]).await?;
        Ok(())
    }

    /// Stores the request of a turn for a higher tier, with the decision about it.
    pub async fn set_escalation(&mut self, turn: TurnId, escalation: &Value) -> Result<()> {
        let sql = "update turns set escalation = $2 where id = $1";
        let values = vals![turn.uuid(), escalation.to_string()];
        self.0.run(sql, values).await?;
        Ok(())
    }

    /// Stops or allows the climbs of a namespace. `machine` is where the hold is set.
    pub async fn set_hold(
        &mut self,
        namespace: &str,
        hold: bool,
        machine: &str,
        now: i64,
    ) -> Result<()> {
        if hold {
            let sql = "insert into holds (namespace, machine, held_at) values ($1, $2, $3) on conflict (namespace) do nothing";
            self.0.run(sql, vals![namespace, machine, now]).await?;
        } else {
            let sql = "delete from holds where namespace = $1";
            self.0.run(sql, vals![namespace]).await?;
        }
        Ok(())
    }
}

impl<C: Ask> Chains<'_, C> {
    /// Returns the turns of a chain, root first.
    pub async fn of(&mut self, chain: TurnId) -> Result<Vec<StoredTurn>> {
        let sql = "select * from turns where chain_id = $1 order by id";
        let found = rows(self.0, sql, vals![chain.uuid()]).await?;
        found.iter().map(read).collect()
    }

    /// Lists the roots of the chains of a namespace before a turn, newest first.
    pub async fn roots(
        &mut self,
        namespace: &str,
        before: Option<TurnId>,
        limit: i64,
    ) -> Result<Vec<StoredTurn>> {
        let before = before.unwrap_or(TurnId::from_parts(u64::MAX >> 16, [u8::MAX; 10]));
        let sql = "select * from turns where namespace = $1 and id < $2 and chain_id is not null
            and parent_turn_id is null order by id desc limit $3";
        let values = vals![namespace, before.uuid(), limit];
        let found = rows(self.0, sql, values).await?;
        found.iter().map(read).collect()
    }

    /// Returns the climb from a turn.
    pub async fn child(&mut self, parent: TurnId) -> Result<Option<TurnId>> {
        let sql = "select id from turns where parent_turn_id = $1";
        let row = one(self.0, sql, vals![parent.uuid()]).await?;
        row.map(|row| Ok(TurnId::from_uuid(row.id("id")?)))
            .transpose()
    }

    /// Returns the time of the newest climb of a conversation into a tier.
    pub async fn last_climb(&mut self, c: ConversationId, tier: &str) -> Result<Option<i64>> {
        let sql = "select created_at from turns where conversation_id = $1 and tier = $2 and parent_turn_id is not null
            order by id desc limit 1";
        let row = one(self.0, sql, vals![c.uuid(), tier]).await?;
        row.map(|row| row.int("created_at")).transpose()
    }

    /// Returns true if the climbs of a namespace are stopped.
    pub async fn is_held(&mut self, namespace: &str) -> Result<bool> {
        let sql = "select 1 as held from holds where namespace = $1";
        Ok(one(self.0, sql, vals![namespace]).await?.is_some())
    }
}
