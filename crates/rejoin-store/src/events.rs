//! Events: committed in batches, read back in order.

use std::sync::LazyLock;

use rejoin_core::{ConversationId, EventBody, TurnId};

use crate::connections::{Read, Tx};
use crate::db::{Row, one, rows, vals};
use crate::error::Result;

/// An event as it lies in the store; the edge puts the time into words.
#[derive(Debug, Clone)]
pub struct EventRow {
    pub seq: i64,
    /// Whose conversation it is of.
    pub namespace: String,
    pub conversation: ConversationId,
    pub turn: TurnId,
    pub at: i64,
    pub body: EventBody,
}

/// Events that are written with one statement: the way to the engine takes longer than the writing.
const MANY: usize = 64;
const SOME: usize = 8;

static ADD_MANY: LazyLock<String> = LazyLock::new(|| adding(MANY));
static ADD_SOME: LazyLock<String> = LazyLock::new(|| adding(SOME));
static ADD_ONE: LazyLock<String> = LazyLock::new(|| adding(1));

/// Rows get their numbers in the order in which they stand here, on every engine.
fn adding(many: usize) -> String {
    let row = |n: usize| format!("($1, $2, $3, ${}, ${})", 4 + 2 * n, 5 + 2 * n);
    let rows: Vec<String> = (0..many).map(row).collect();
    let rows = rows.join(", ");
    format!("insert into events (conversation_id, turn_id, at, type, body) values {rows}")
}

impl Tx {
    pub async fn add_events(
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
                self.run(sql, values).await?;
                rest = later;
                if rest.is_empty() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

impl Read {
    /// What happened in a turn after `seq`.
    pub async fn events_of(
        &mut self,
        turn: TurnId,
        after: i64,
        limit: i64,
    ) -> Result<Vec<EventRow>> {
        let sql = "select e.*, '' as namespace from events e where e.turn_id = $1 and e.seq > $2
            order by e.seq limit $3";
        let found = rows(self, sql, vals![turn.uuid(), after, limit]).await?;
        found.iter().map(read).collect()
    }

    /// What happened in a conversation after `seq`.
    pub async fn events_in(
        &mut self,
        conversation: ConversationId,
        after: i64,
        limit: i64,
    ) -> Result<Vec<EventRow>> {
        let sql =
            "select e.*, '' as namespace from events e where e.conversation_id = $1 and e.seq > $2
            order by e.seq limit $3";
        let found = rows(self, sql, vals![conversation.uuid(), after, limit]).await?;
        found.iter().map(read).collect()
    }

    /// What happened anywhere after `seq`.
    pub async fn events_after(&mut self, after: i64, limit: i64) -> Result<Vec<EventRow>> {
        let sql =
            "select e.*, c.namespace from events e join conversations c on c.id = e.conversation_id
            where e.seq > $1 order by e.seq limit $2";
        let found = rows(self, sql, vals![after, limit]).await?;
        found.iter().map(read).collect()
    }

    pub async fn last_event(&mut self) -> Result<i64> {
        let row = one(self, "select max(seq) as seq from events", vec![]).await?;
        Ok(row
            .map(|r| r.maybe_int("seq"))
            .transpose()?
            .flatten()
            .unwrap_or(0))
    }
}

fn read(row: &Row) -> Result<EventRow> {
    Ok(EventRow {
        seq: row.int("seq")?,
        namespace: row.text("namespace")?,
        conversation: ConversationId::from_uuid(row.id("conversation_id")?),
        turn: TurnId::from_uuid(row.id("turn_id")?),
        at: row.int("at")?,
        body: row.json("body")?,
    })
}
