//! Events: committed in batches, read back in order.

use rejoin_core::{ConversationId, EventBody, TurnId};

use crate::connections::{Read, Tx};
use crate::db::{one, rows, vals};
use crate::error::Result;

/// An event as it lies in the store; the edge puts the time into words.
#[derive(Debug, Clone)]
pub struct EventRow {
    pub seq: i64,
    pub conversation: ConversationId,
    pub turn: TurnId,
    pub at: i64,
    pub body: EventBody,
}

impl Tx {
    pub async fn add_events(
        &mut self,
        conversation: ConversationId,
        turn: TurnId,
        at: i64,
        bodies: &[EventBody],
    ) -> Result<()> {
        let sql = "insert into events (conversation_id, turn_id, at, type, body) values ($1, $2, $3, $4, $5)";
        for body in bodies {
            let values = vals![
                conversation.uuid(),
                turn.uuid(),
                at,
                body.kind(),
                serde_json::to_string(body)?
            ];
            self.run(sql, values).await?;
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
        let sql = "select * from events where turn_id = $1 and seq > $2 order by seq limit $3";
        let found = rows(self, sql, vals![turn.uuid(), after, limit]).await?;
        found
            .iter()
            .map(|row| {
                Ok(EventRow {
                    seq: row.int("seq")?,
                    conversation: ConversationId::from_uuid(row.id("conversation_id")?),
                    turn: TurnId::from_uuid(row.id("turn_id")?),
                    at: row.int("at")?,
                    body: row.json("body")?,
                })
            })
            .collect()
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
