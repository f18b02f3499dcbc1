//! Turns: every change checks the state it starts from.

use rejoin_core::{
    AgentName, Context, ConversationId, Cost, Failure, MessageId, Micros, Reason, TurnId,
    TurnStatus, Usage, Verdict,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::connections::Tx;
use crate::db::{Ask, Row, one, rows, topic, vals};
use crate::error::{Error, Result};

pub(crate) const END_TURN: &str =
    "update turns set status = $3, reply_id = $4, record = $5, model = $6,
        usage = $7, cost = $8, context = $9, denied = $10, error = $11, saved = $12, summary = $13,
        ended_at = $14, holder = null
    where id = $1 and fence = $2 and status in ('running', 'waiting', 'queued')";

#[derive(Debug, Clone)]
pub struct NewTurn<'a> {
    pub id: TurnId,
    pub conversation: ConversationId,
    pub message: MessageId,
    pub agent: &'a AgentName,
    pub request: Value,
    pub client_key: Option<&'a str>,
    pub machine: &'a str,
    /// Process that runs it at once. `None`: the turn is queued.
    pub holder: Option<&'a str>,
    pub now: i64,
}

#[derive(Debug, Clone)]
pub struct StoredTurn {
    pub id: TurnId,
    pub conversation: ConversationId,
    pub message: MessageId,
    pub reply: Option<MessageId>,
    pub agent: AgentName,
    pub status: TurnStatus,
    pub request: Value,
    /// Increases with every claim. A holder of an older fence may not write any more.
    pub fence: i64,
    pub holder: Option<String>,
    /// Location of its folder. `None` if an older build wrote the turn.
    pub place: Option<String>,
    /// End of the holder's lease, by the clock of a shared store.
    pub lease_until: Option<i64>,
    pub cancel: bool,
    pub verdict: Option<Verdict>,
    pub reason: Option<Reason>,
    pub record: TurnRecord,
    pub model: Option<String>,
    pub usage: Option<Usage>,
    pub cost: Cost,
    pub context: Option<Context>,
    pub denied: Value,
    pub error: Option<Failure>,
    pub saved: String,
    pub machine: String,
    pub summary: String,
    pub created_at: i64,
    pub started_at: Option<i64>,
    pub ended_at: Option<i64>,
    /// Tier of the turn, and its place in a chain.
    pub tier: Option<String>,
    pub parent: Option<TurnId>,
    pub chain: Option<TurnId>,
    /// `user`, `schedule`, `climb` or `person`.
    pub trigger: Option<String>,
    /// Request for a higher tier, with the decision about it.
    pub escalation: Option<Value>,
}

/// The decision about a turn and its effects, for later queries.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnRecord {
    pub checks: Value,
    pub sent: rejoin_core::Sent,
    pub session_id: Option<String>,
    /// Effective `[resume]` settings.
    pub policy: Value,
    /// Command as run. Never contains secrets.
    pub command: Vec<String>,
    pub runtime: Option<String>,
    pub folder: Option<String>,
    pub because: Option<String>,
    pub caught_up_by: Option<String>,
    pub tools_run: u64,
    /// Estimated cost without the session that the turn continued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fresh_estimate: Option<Micros>,
    pub notes: Vec<String>,
    /// Processes that the turn had left running and that were ended with it.
    pub leftovers: Vec<String>,
    /// Duration in milliseconds, by a clock that cannot be set. `None`: only the stored times are
    /// known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
}

/// Final state of a turn.
#[derive(Debug, Clone)]
pub struct TurnEnd<'a> {
    pub status: TurnStatus,
    pub reply: Option<MessageId>,
    pub record: &'a TurnRecord,
    pub model: Option<&'a str>,
    pub usage: Option<Usage>,
    pub cost: Cost,
    pub context: Option<Context>,
    pub denied: Value,
    pub error: Option<&'a Failure>,
    pub saved: &'a str,
    pub summary: &'a str,
    pub ended_at: i64,
}

pub(crate) const FASTER: &str = "somebody else has taken this turn over";

topic! {
    /// Turns. Every change checks the state it starts from.
    Turns, turns
}

impl Turns<'_, Tx> {
    /// Replaces the options of a turn that has not ended.
    pub async fn set_request(&mut self, turn: TurnId, request: &Value) -> Result<()> {
        let sql = "update turns set request = $2
            where id = $1 and status in ('queued', 'running', 'waiting')";
        let values = vals![turn.uuid(), request.to_string()];
        self.0.must(sql, values, "the turn has ended").await
    }

    pub async fn add(&mut self, new: &NewTurn<'_>) -> Result<()> {
        let sql = "insert into turns (id, conversation_id, message_id, agent, status, request, client_key, fence, cancel, record, denied, saved, machine, summary, created_at, holder, started_at, namespace)
            values ($1, $2, $3, $4, $5, $6, $7, $8, 0, '{}', '[]', 'local_only', $9, '', $10, $11, $12,
                (select namespace from conversations where id = $2))";
        let (status, fence) = match new.holder {
            Some(_) => (TurnStatus::Running, 1),
            None => (TurnStatus::Queued, 0),
        };
        let values = vals![
            new.id.uuid(),
            new.conversation.uuid(),
            new.message.uuid(),
            new.agent.as_str(),
            status.as_str(),
            new.request.to_string(),
            new.client_key,
            fence,
            new.machine,
            new.now,
            new.holder,
            new.holder.map(|_| new.now),
        ];
        self.0.run(sql, values).await?;
        Ok(())
    }

    /// Claims a queued turn. Fails with `Conflict` if another turn of the conversation is running.
    pub async fn claim(&mut self, id: TurnId, holder: &str, now: i64) -> Result<()> {
        let sql = "update turns set status = 'running', holder = $2, fence = fence + 1, started_at = coalesce(started_at, $3)
            where id = $1 and status = 'queued'";
        self.0
            .must(sql, vals![id.uuid(), holder, now], FASTER)
            .await
    }

    /// Takes over a running turn whose holder is gone.
    pub async fn take_over(&mut self, id: TurnId, fence: i64, holder: &str) -> Result<()> {
        let sql = "update turns set holder = $3, fence = fence + 1
            where id = $1 and fence = $2 and status in ('running', 'waiting')";
        self.0
            .must(sql, vals![id.uuid(), fence, holder], FASTER)
            .await
    }

    /// Releases a turn, which may have ended meanwhile.
    pub async fn release(&mut self, id: TurnId, fence: i64) -> Result<()> {
        let sql = "update turns set holder = null where id = $1 and fence = $2";
        self.0.run(sql, vals![id.uuid(), fence]).await?;
        Ok(())
    }

    /// Puts a claimed turn back into the queue. Only for turns for which no process was started.
    pub async fn requeue(&mut self, id: TurnId, fence: i64) -> Result<()> {
        let sql = "update turns set status = 'queued', holder = null where id = $1 and fence = $2 and status = 'running'";
        self.0.must(sql, vals![id.uuid(), fence], FASTER).await
    }

    /// Fails with `Conflict` unless the holder of this fence may still write.
    pub async fn check_fence(&mut self, id: TurnId, fence: i64) -> Result<()> {
        let sql = "select 1 as held from turns where id = $1 and fence = $2 and status in ('running', 'waiting')";
        one(self.0, sql, vals![id.uuid(), fence])
            .await?
            .map(drop)
            .ok_or(Error::Conflict(FASTER))
    }

    pub async fn record_decision(
        &mut self,
        id: TurnId,
        fence: i64,
        verdict: Verdict,
        reason: Option<Reason>,
        record: &TurnRecord,
    ) -> Result<()> {
        let sql = "update turns set verdict = $3, reason = $4, record = $5 where id = $1 and fence = $2 and status = 'running'";
        let values = vals![
            id.uuid(),
            fence,
            verdict.as_str(),
            reason.map(Reason::as_str),
            serde_json::to_string(record)?
        ];
        self.0.must(sql, values, FASTER).await
    }

    pub async fn end(&mut self, id: TurnId, fence: i64, end: &TurnEnd<'_>) -> Result<()> {
        let values = vals![
            id.uuid(),
            fence,
            end.status.as_str(),
            end.reply.map(MessageId::uuid),
            serde_json::to_string(end.record)?,
            end.model,
            end.usage.as_ref().map(serde_json::to_string).transpose()?,
            end.cost.known().map(|m| m.0),
            end.context
                .as_ref()
                .map(serde_json::to_string)
                .transpose()?,
            end.denied.to_string(),
            end.error.map(serde_json::to_string).transpose()?,
            end.saved,
            end.summary,
            end.ended_at,
        ];
        self.0.must(END_TURN, values, FASTER).await
    }

    /// Asks the process that runs the turn to stop.
    pub async fn request_cancel(&mut self, id: TurnId) -> Result<()> {
        self.0
            .run(
                "update turns set cancel = 1 where id = $1",
                vals![id.uuid()],
            )
            .await?;
        Ok(())
    }

    /// Updates the `saved` field of a turn that has ended.
    pub async fn set_saved(&mut self, id: TurnId, saved: &str) -> Result<()> {
        let sql = "update turns set saved = $2 where id = $1";
        self.0.run(sql, vals![id.uuid(), saved]).await?;
        Ok(())
    }

    pub async fn withdraw(&mut self, id: TurnId) -> Result<()> {
        self.0
            .run("delete from events where turn_id = $1", vals![id.uuid()])
            .await?;
        self.0
            .run("delete from turns where id = $1", vals![id.uuid()])
            .await?;
        Ok(())
    }

    pub async fn by_key(&mut self, namespace: &str, key: &str) -> Result<Option<StoredTurn>> {
        let sql = "select * from turns where namespace = $1 and client_key = $2";
        one(self.0, sql, vals![namespace, key])
            .await?
            .as_ref()
            .map(read)
            .transpose()
    }

    /// Returns the number of queued turns.
    pub async fn count_queued(&mut self) -> Result<u64> {
        let sql = "select count(*) as queued from turns where status = 'queued'";
        let found = one(self.0, sql, vec![]).await?;
        Ok(found.map_or(Ok(0), |row| row.int("queued"))?.unsigned_abs())
    }
}

impl<C: Ask> Turns<'_, C> {
    /// Returns true if a turn of the conversation is running, waiting or queued.
    pub async fn is_busy(&mut self, c: ConversationId) -> Result<bool> {
        let sql = "select 1 as found from turns where conversation_id = $1 and status in ('running', 'waiting')
            union all select 1 from turns where conversation_id = $1 and status = 'queued' limit 1";
        Ok(one(self.0, sql, vals![c.uuid()]).await?.is_some())
    }

    pub async fn get(&mut self, id: TurnId) -> Result<Option<StoredTurn>> {
        turn(self.0, id).await
    }

    pub async fn of(&mut self, c: ConversationId) -> Result<Vec<StoredTurn>> {
        let sql = "select * from turns where conversation_id = $1 order by id";
        rows(self.0, sql, vals![c.uuid()])
            .await?
            .iter()
            .map(read)
            .collect()
    }

    pub async fn last(&mut self, c: ConversationId) -> Result<Option<StoredTurn>> {
        last(self.0, c).await
    }

    /// Returns the newest turns of a conversation that have ended, newest first.
    pub async fn ended(&mut self, c: ConversationId, limit: i64) -> Result<Vec<StoredTurn>> {
        let sql = "select * from turns where conversation_id = $1 and ended_at is not null
            order by id desc limit $2";
        let found = rows(self.0, sql, vals![c.uuid(), limit]).await?;
        found.iter().map(read).collect()
    }

    /// Returns the number of turns of a namespace that wait for a person.
    pub async fn waiting_in(&mut self, namespace: &str) -> Result<i64> {
        let sql = "select count(*) as n from turns
            where status in ('running', 'waiting') and status = 'waiting' and namespace = $1";
        let row = one(self.0, sql, vals![namespace]).await?;
        row.map_or(Ok(0), |row| row.int("n"))
    }

    /// Returns the running or waiting turn of a conversation.
    pub async fn unfinished(&mut self, c: ConversationId) -> Result<Option<StoredTurn>> {
        unfinished(self.0, c).await
    }

    /// Returns the next turn to run in a conversation.
    pub async fn oldest_queued(&mut self, c: ConversationId) -> Result<Option<TurnId>> {
        oldest_queued(self.0, c).await
    }

    /// Lists the conversations with queued turns that were accepted on this machine.
    pub async fn queued_conversations(&mut self, machine: &str) -> Result<Vec<ConversationId>> {
        let sql =
            "select distinct conversation_id from turns where status = 'queued' and machine = $1";
        let found = rows(self.0, sql, vals![machine]).await?;
        let id = |row: &Row| Ok(ConversationId::from_uuid(row.id("conversation_id")?));
        found.iter().map(id).collect()
    }

    /// Lists all running and waiting turns, with or without a live holder.
    pub async fn running(&mut self) -> Result<Vec<StoredTurn>> {
        let sql = "select * from turns where status in ('running', 'waiting') order by id";
        rows(self.0, sql, vec![]).await?.iter().map(read).collect()
    }

    pub async fn has_queued(&mut self, c: ConversationId) -> Result<bool> {
        let sql =
            "select 1 as found from turns where conversation_id = $1 and status = 'queued' limit 1";
        Ok(one(self.0, sql, vals![c.uuid()]).await?.is_some())
    }

    /// Returns the sum of the known costs, including the cost before adoption. `None` if none is
    /// known.
    pub async fn cost_of(&mut self, c: ConversationId) -> Result<Option<Micros>> {
        let sql = "select cast(sum(cost) as bigint) as cost from (
                select cost from conversations where id = $1
                union all select outside_cost from conversations where id = $1
                union all select outside_cost from conversations where redirect_to = $1) as spent";
        let row = one(self.0, sql, vals![c.uuid()]).await?;
        Ok(row
            .map(|r| r.maybe_int("cost"))
            .transpose()?
            .flatten()
            .map(Micros))
    }
}

async fn turn(at: &mut impl Ask, id: TurnId) -> Result<Option<StoredTurn>> {
    one(at, "select * from turns where id = $1", vals![id.uuid()])
        .await?
        .as_ref()
        .map(read)
        .transpose()
}

async fn oldest_queued(at: &mut impl Ask, c: ConversationId) -> Result<Option<TurnId>> {
    let sql =
        "select id from turns where conversation_id = $1 and status = 'queued' order by id limit 1";
    let row = one(at, sql, vals![c.uuid()]).await?;
    row.map(|r| Ok(TurnId::from_uuid(r.id("id")?))).transpose()
}

async fn last(at: &mut impl Ask, c: ConversationId) -> Result<Option<StoredTurn>> {
    let sql = "select * from turns where conversation_id = $1 order by id desc limit 1";
    one(at, sql, vals![c.uuid()])
        .await?
        .as_ref()
        .map(read)
        .transpose()
}

async fn unfinished(at: &mut impl Ask, c: ConversationId) -> Result<Option<StoredTurn>> {
    let sql = "select * from turns where conversation_id = $1 and status in ('running', 'waiting')";
    one(at, sql, vals![c.uuid()])
        .await?
        .as_ref()
        .map(read)
        .transpose()
}

pub(crate) fn read(row: &Row) -> Result<StoredTurn> {
    Ok(StoredTurn {
        id: TurnId::from_uuid(row.id("id")?),
        conversation: ConversationId::from_uuid(row.id("conversation_id")?),
        message: MessageId::from_uuid(row.id("message_id")?),
        reply: row.maybe_id("reply_id")?.map(MessageId::from_uuid),
        agent: AgentName::new(row.text("agent")?).map_err(|e| Error::Foreign(e.to_string()))?,
        status: row.word("status")?,
        request: row.json("request")?,
        fence: row.int("fence")?,
        holder: row.maybe_text("holder")?,
        place: row.maybe_text("place")?,
        lease_until: row.maybe_int("lease_until")?,
        cancel: row.int("cancel")? != 0,
        verdict: row.maybe_word("verdict")?,
        reason: row.maybe_word("reason")?,
        record: row.json("record")?,
        model: row.maybe_text("model")?,
        usage: row.maybe_json("usage")?,
        cost: row
            .maybe_int("cost")?
            .map_or(Cost::Unknown, |c| Cost::Known(Micros(c))),
        context: row.maybe_json("context")?,
        denied: row.json("denied")?,
        error: row.maybe_json("error")?,
        saved: row.text("saved")?,
        machine: row.text("machine")?,
        summary: row.text("summary")?,
        created_at: row.int("created_at")?,
        started_at: row.maybe_int("started_at")?,
        ended_at: row.maybe_int("ended_at")?,
        tier: row.maybe_text("tier")?,
        parent: row.maybe_id("parent_turn_id")?.map(TurnId::from_uuid),
        chain: row.maybe_id("chain_id")?.map(TurnId::from_uuid),
        trigger: row.maybe_text("started_by")?,
        escalation: row.maybe_json("escalation")?,
    })
}
