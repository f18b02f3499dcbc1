//! Moves one conversation into another, and back.

use rejoin_core::{ConversationId, MessageId, PinId, TurnId};

use crate::connections::Tx;
use crate::db::{rows, topic, vals};
use crate::error::Result;

/// Rows that belong to a conversation.
#[derive(Debug, Clone, Default)]
pub struct OwnedRows {
    /// Placed messages, in order.
    pub messages: Vec<MessageId>,
    pub queued: Vec<MessageId>,
    pub turns: Vec<TurnId>,
    pub pins: Vec<PinId>,
}

topic! {
    /// Moves the rows of one conversation to another.
    Merge, merge
}

impl Merge<'_, Tx> {
    pub async fn owned_rows(&mut self, c: ConversationId) -> Result<OwnedRows> {
        let placed = "select id from messages where conversation_id = $1 and seq is not null and removed_at is null order by seq";
        let queued = "select id from messages where conversation_id = $1 and seq is null and removed_at is null order by id";
        let turns = "select id from turns where conversation_id = $1 order by id";
        let pins = "select id from pins where conversation_id = $1 order by id";
        let mut found = vec![];
        for sql in [placed, queued, turns, pins] {
            let ids: Result<Vec<_>> = rows(self.0, sql, vals![c.uuid()])
                .await?
                .iter()
                .map(|row| row.id("id"))
                .collect();
            found.push(ids?);
        }
        let pins = found.pop().unwrap_or_default();
        let turns = found.pop().unwrap_or_default();
        let queued = found.pop().unwrap_or_default();
        let messages = found.pop().unwrap_or_default();
        Ok(OwnedRows {
            messages: messages.into_iter().map(MessageId::from_uuid).collect(),
            queued: queued.into_iter().map(MessageId::from_uuid).collect(),
            turns: turns.into_iter().map(TurnId::from_uuid).collect(),
            pins: pins.into_iter().map(PinId::from_uuid).collect(),
        })
    }

    /// Shifts every position of a history.
    pub async fn shift_places(&mut self, c: ConversationId, by: i64) -> Result<()> {
        // Goes through unused negative positions: no two messages may ever have the same.
        let away = "update messages set seq = -(seq + $2)
            where conversation_id = $1 and seq is not null and removed_at is null";
        self.0.run(away, vals![c.uuid(), by]).await?;
        let there = "update messages set seq = -seq
            where conversation_id = $1 and seq < 0 and removed_at is null";
        self.0.run(there, vals![c.uuid()]).await?;
        Ok(())
    }

    /// Moves all of these to another conversation. Their positions there must be free.
    pub async fn move_rows(&mut self, what: &OwnedRows, to: ConversationId) -> Result<()> {
        for id in what.messages.iter().chain(&what.queued) {
            let sql = "update messages set conversation_id = $2 where id = $1";
            self.0.run(sql, vals![id.uuid(), to.uuid()]).await?;
        }
        for id in &what.turns {
            let sql = "update turns set conversation_id = $2 where id = $1";
            self.0.run(sql, vals![id.uuid(), to.uuid()]).await?;
            let sql = "update events set conversation_id = $2 where turn_id = $1";
            self.0.run(sql, vals![id.uuid(), to.uuid()]).await?;
            let sql = "update questions set conversation_id = $2 where turn_id = $1";
            self.0.run(sql, vals![id.uuid(), to.uuid()]).await?;
        }
        for id in &what.pins {
            let sql = "update pins set conversation_id = $2 where id = $1";
            self.0.run(sql, vals![id.uuid(), to.uuid()]).await?;
            let sql = "update snapshots set conversation_id = $2 where pin_id = $1";
            self.0.run(sql, vals![id.uuid(), to.uuid()]).await?;
        }
        Ok(())
    }

    /// Lists the conversations that redirect to this one.
    pub async fn redirecting_to(&mut self, c: ConversationId) -> Result<Vec<ConversationId>> {
        let sql = "select id from conversations where redirect_to = $1 order by id";
        rows(self.0, sql, vals![c.uuid()])
            .await?
            .iter()
            .map(|row| Ok(ConversationId::from_uuid(row.id("id")?)))
            .collect()
    }

    /// Redirects a conversation to another. `None` removes the redirect.
    pub async fn redirect(
        &mut self,
        from: ConversationId,
        to: Option<ConversationId>,
    ) -> Result<()> {
        let sql = "update conversations set redirect_to = $2 where id = $1";
        self.0
            .run(sql, vals![from.uuid(), to.map(ConversationId::uuid)])
            .await?;
        Ok(())
    }
}
