//! Events: committed in batches, read back in order.

use std::sync::LazyLock;

use rejoin_core::{ConversationId, EventBody, TurnId};

use crate::connections::Tx;
use crate::db::{Ask, Row, one, rows, topic, vals};
use crate::error::Result;

/// An event as stored. Its time is formatted by the caller.
#[derive(Debug, Clone)]
pub struct EventRow {
    pub seq: i64,
    /// Namespace of the conversation. Empty if the query is about one turn or conversation.
    pub namespace: String,
    pub conversation: ConversationId,
    pub turn: TurnId,
    pub at: i64,
    pub body: EventBody,
}

/// Number of events per statement: the way to the engine takes longer than the write.
const MANY: usize = 64;
const SOME: usize = 8;

static ADD_MANY: LazyLock<String> = LazyLock::new(|| adding(MANY));
static ADD_SOME: LazyLock<String> = LazyLock::new(|| adding(SOME));
static ADD_ONE: LazyLock<String> = LazyLock::new(|| adding(1));

/// Builds an insert for that many events. Every engine numbers rows in the order given here.
fn adding(many: usize) -> String {
    let row = |n: usize| format!("($1, $2, $3, ${}, ${})", 4 + 2 * n, 5 + 2 * n);
    let rows: Vec<String> = (0..many).map(row).collect();
    let rows = rows.join(", ");
    format!("insert into events (conversation_id, turn_id, at, type, body) values {rows}")
}

topic! {
    /// Events of turns.
    Events, events
}

impl Events<'_, Tx> {
    pub async fn add(
        &mut self,
        conversation: ConversationId,
        turn: TurnId,
        at: i64,
        bodies: &[EventBody],
    ) -> Result<()> {
        let mut rest = bodies;
        for (many, sql) in [(MANY, &ADD_MANY), (SOME, &ADD_SOME), (1, &ADD_ONE)] {
            while let Some((now, later)) = rest.split_at_checked(many) {
                let mut values = vals![conversation.uuid(), turn.uuid(), at];
                for body in now {
                    values.extend(vals![body.kind(), serde_json::to_string(body)?]);
                }
                self.0.run(sql, values).await?;
                rest = later;
                if rest.is_empty() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

impl Events<'_, Tx> {
    /// Stores the deletion of a conversation as an event, which outlives it.
    pub async fn add_deletion(&mut self, c: ConversationId, at: i64) -> Result<()> {
        self.add(c, TurnId::nil(), at, &[EventBody::ConversationDeleted {}])
            .await?;
        let sql = "insert into tombstones (seq, namespace, conversation_id, at)
            select e.seq, c.namespace, c.id, e.at from events e join conversations c on c.id = e.conversation_id
            where e.conversation_id = $1 order by e.seq desc limit 1";
        self.0.run(sql, vals![c.uuid()]).await?;
        Ok(())
    }
}

impl<C: Ask> Events<'_, C> {
    /// Lists the events of a turn after `seq`.
    pub async fn of_turn(&mut self, turn: TurnId, after: i64, limit: i64) -> Result<Vec<EventRow>> {
        let sql = "select e.*, '' as namespace from events e where e.turn_id = $1 and e.seq > $2
            order by e.seq limit $3";
        let found = rows(self.0, sql, vals![turn.uuid(), after, limit]).await?;
        found.iter().map(read).collect()
    }

    /// Lists the newest events of a turn, newest first.
    pub async fn newest_of_turn(&mut self, turn: TurnId, limit: i64) -> Result<Vec<EventRow>> {
        let sql = "select e.*, '' as namespace from events e where e.turn_id = $1
            order by e.seq desc limit $2";
        let found = rows(self.0, sql, vals![turn.uuid(), limit]).await?;
        found.iter().map(read).collect()
    }

    /// Lists the events of a conversation after `seq`.
    pub async fn of_conversation(
        &mut self,
        conversation: ConversationId,
        after: i64,
        limit: i64,
    ) -> Result<Vec<EventRow>> {
        let sql =
            "select e.*, '' as namespace from events e where e.conversation_id = $1 and e.seq > $2
            order by e.seq limit $3";
        let found = rows(self.0, sql, vals![conversation.uuid(), after, limit]).await?;
        found.iter().map(read).collect()
    }

    /// Lists the events of all conversations after `seq`, with the deletions of conversations.
    pub async fn after(&mut self, after: i64, limit: i64) -> Result<Vec<EventRow>> {
        let sql =
            "select * from (select e.seq, e.conversation_id, e.turn_id, e.at, e.body, c.namespace
                from events e join conversations c on c.id = e.conversation_id
                where e.seq > $1 order by e.seq limit $2) as told
            union all
            select * from (select seq, conversation_id, conversation_id as turn_id, at,
                '{\"type\":\"conversation.deleted\"}' as body, namespace
                from tombstones where seq > $1 order by seq limit $2) as gone
            order by seq limit $2 /* sort: of two pages */";
        let found = rows(self.0, sql, vals![after, limit]).await?;
        found.iter().map(read).collect()
    }

    /// Lists the tool calls of a turn before a number, newest first.
    pub async fn calls_before(
        &mut self,
        turn: TurnId,
        before: i64,
        limit: i64,
    ) -> Result<Vec<EventRow>> {
        let sql = "select e.*, '' as namespace from events e where e.turn_id = $1 and e.seq < $2
            and e.type = 'tool.call' order by e.seq desc limit $3";
        let found = rows(self.0, sql, vals![turn.uuid(), before, limit]).await?;
        found.iter().map(read).collect()
    }

    /// Lists the tool calls of a turn and their results, newest first.
    pub async fn calls_and_results(&mut self, turn: TurnId, limit: i64) -> Result<Vec<EventRow>> {
        let sql = "select e.*, '' as namespace from events e where e.turn_id = $1
            and e.type in ('tool.call', 'tool.result') order by e.seq desc limit $2";
        let found = rows(self.0, sql, vals![turn.uuid(), limit]).await?;
        found.iter().map(read).collect()
    }

    /// Returns the first event of a turn that has one of two types.
    pub async fn first_of_turn(
        &mut self,
        turn: TurnId,
        [one_of, other]: [&str; 2],
    ) -> Result<Option<EventRow>> {
        let sql =
            "select e.*, '' as namespace from events e where e.turn_id = $1 and e.type in ($2, $3)
            order by e.seq limit 1";
        let found = one(self.0, sql, vals![turn.uuid(), one_of, other]).await?;
        found.as_ref().map(read).transpose()
    }

    /// Returns the newest to-do list of a turn.
    pub async fn last_todo(&mut self, turn: TurnId) -> Result<Option<EventRow>> {
        let sql =
            "select e.*, '' as namespace from events e where e.turn_id = $1 and e.type = 'todo'
            order by e.seq desc limit 1";
        let found = one(self.0, sql, vals![turn.uuid()]).await?;
        found.as_ref().map(read).transpose()
    }

    /// Lists the texts of a turn before a number, newest first: whole ones and pieces.
    pub async fn texts_before(
        &mut self,
        turn: TurnId,
        before: i64,
        limit: i64,
    ) -> Result<Vec<EventRow>> {
        let sql = "select e.*, '' as namespace from events e where e.turn_id = $1 and e.seq < $2
            and e.type in ('text', 'text.delta') order by e.seq desc limit $3";
        let found = rows(self.0, sql, vals![turn.uuid(), before, limit]).await?;
        found.iter().map(read).collect()
    }

    /// Returns the number of the last event.
    pub async fn last(&mut self) -> Result<i64> {
        let sql = "select max(seq) as seq from (select max(seq) as seq from events
            union all select max(seq) as seq from tombstones) as told /* scan: of the end of an index */";
        let row = one(self.0, sql, vec![]).await?;
        Ok(row
            .map(|r| r.maybe_int("seq"))
            .transpose()?
            .flatten()
            .unwrap_or(0))
    }
}

fn read(row: &Row) -> Result<EventRow> {
    let body = row.json("body")?;
    let turn = if matches!(body, EventBody::ConversationDeleted {}) {
        TurnId::nil()
    } else {
        TurnId::from_uuid(row.id("turn_id")?)
    };
    Ok(EventRow {
        seq: row.int("seq")?,
        namespace: row.text("namespace")?,
        conversation: ConversationId::from_uuid(row.id("conversation_id")?),
        turn,
        at: row.int("at")?,
        body,
    })
}
