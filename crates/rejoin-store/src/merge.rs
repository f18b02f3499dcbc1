//! Moves one conversation into another, and back.

use rejoin_core::{ConversationId, MessageId, PinId, TurnId};

use crate::connections::Tx;
use crate::db::{rows, vals};
use crate::error::Result;

/// What belongs to a conversation.
#[derive(Debug, Clone, Default)]
pub struct Belongings {
    /// In their places, in order.
    pub messages: Vec<MessageId>,
    pub queued: Vec<MessageId>,
    pub turns: Vec<TurnId>,
    pub pins: Vec<PinId>,
}

impl Tx {
    pub async fn belongings(&mut self, c: ConversationId) -> Result<Belongings> {
        let placed = "select id from messages where conversation_id = $1 and seq is not null and removed_at is null order by seq";
        let queued = "select id from messages where conversation_id = $1 and seq is null and removed_at is null order by id";
        let turns = "select id from turns where conversation_id = $1 order by id";
        let pins = "select id from pins where conversation_id = $1 order by id";
        let mut found = vec![];
        for sql in [placed, queued, turns, pins] {
            let ids: Result<Vec<_>> = rows(self, sql, vals![c.uuid()])
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
        Ok(Belongings {
            messages: messages.into_iter().map(MessageId::from_uuid).collect(),
            queued: queued.into_iter().map(MessageId::from_uuid).collect(),
            turns: turns.into_iter().map(TurnId::from_uuid).collect(),
            pins: pins.into_iter().map(PinId::from_uuid).collect(),
        })
    }

    /// Moves every place of a history by so many.
    pub async fn shift_places(&mut self, c: ConversationId, by: i64) -> Result<()> {
        // Through places that nobody has: no two may ever be alike.
        let away = "update messages set seq = -(seq + $2)
            where conversation_id = $1 and seq is not null and removed_at is null";
        self.run(away, vals![c.uuid(), by]).await?;
        let there = "update messages set seq = -seq
            where conversation_id = $1 and seq < 0 and removed_at is null";
        self.run(there, vals![c.uuid()]).await?;
        Ok(())
    }

    /// Gives all of these to another conversation. Their places there must be free.
    pub async fn give_to(&mut self, what: &Belongings, to: ConversationId) -> Result<()> {
        for id in what.messages.iter().chain(&what.queued) {
            let sql = "update messages set conversation_id = $2 where id = $1";
            self.run(sql, vals![id.uuid(), to.uuid()]).await?;
        }
        for id in &what.turns {
            let sql = "update turns set conversation_id = $2 where id = $1";
            self.run(sql, vals![id.uuid(), to.uuid()]).await?;
            let sql = "update events set conversation_id = $2 where turn_id = $1";
            self.run(sql, vals![id.uuid(), to.uuid()]).await?;
            let sql = "update questions set conversation_id = $2 where turn_id = $1";
            self.run(sql, vals![id.uuid(), to.uuid()]).await?;
        }
        for id in &what.pins {
            let sql = "update pins set conversation_id = $2 where id = $1";
            self.run(sql, vals![id.uuid(), to.uuid()]).await?;
            let sql = "update snapshots set conversation_id = $2 where pin_id = $1";
            self.run(sql, vals![id.uuid(), to.uuid()]).await?;
        }
        Ok(())
    }

    /// Those that lead to this one.
    pub async fn led_to(&mut self, c: ConversationId) -> Result<Vec<ConversationId>> {
        let sql = "select id from conversations where redirect_to = $1 order by id";
        rows(self, sql, vals![c.uuid()])
            .await?
            .iter()
            .map(|row| Ok(ConversationId::from_uuid(row.id("id")?)))
            .collect()
    }

    /// Whoever asks for one is led to the other; or, with none, not any more.
    pub async fn redirect(
        &mut self,
        from: ConversationId,
        to: Option<ConversationId>,
    ) -> Result<()> {
        let sql = "update conversations set redirect_to = $2 where id = $1";
        self.run(sql, vals![from.uuid(), to.map(ConversationId::uuid)])
            .await?;
        Ok(())
    }
}
