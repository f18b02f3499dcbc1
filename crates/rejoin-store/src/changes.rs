//! Changes of a history: earlier texts of messages, removed messages, and the data to revert
//! changes. No data is destroyed here.

use std::collections::BTreeSet;

use rejoin_core::{ConversationId, Message, MessageId, MessageState, ToolNote, TurnId};
use serde_json::Value;

use crate::connections::Tx;
use crate::db::{Ask, Row, one, rows, topic, vals};
use crate::error::Result;
use crate::messages::state_word;

/// A change that can be reverted.
#[derive(Debug, Clone)]
pub struct Change {
    pub id: i64,
    pub kind: String,
    pub body: Value,
    pub created_at: i64,
}

/// An earlier text of a message.
#[derive(Debug, Clone)]
pub struct Version {
    pub text: String,
    pub replaced_at: i64,
}

topic! {
    /// Changes of the history, and earlier versions of messages.
    Changes, changes
}

impl Changes<'_, Tx> {
    pub async fn add(
        &mut self,
        c: ConversationId,
        kind: &str,
        body: &Value,
        now: i64,
    ) -> Result<()> {
        let sql =
            "insert into changes (conversation_id, kind, body, created_at) values ($1, $2, $3, $4)";
        self.0
            .run(sql, vals![c.uuid(), kind, body.to_string(), now])
            .await?;
        Ok(())
    }

    /// Returns the newest change that was not reverted.
    pub async fn last(&mut self, c: ConversationId) -> Result<Option<Change>> {
        Ok(changes(self.0, c, 1).await?.pop())
    }

    pub async fn mark_undone(&mut self, id: i64, now: i64) -> Result<()> {
        let sql = "update changes set undone_at = $2 where id = $1 and undone_at is null";
        self.0
            .must(sql, vals![id, now], "it was taken back already")
            .await
    }

    /// Replaces the text of a message and keeps the old one. `message` has the new text.
    pub async fn rewrite_message(
        &mut self,
        message: &Message,
        edited: bool,
        now: i64,
    ) -> Result<()> {
        let keep = "insert into versions (message_id, n, text, replaced_at)
            select $1, (select count(*) from versions where message_id = $1) + 1, text, $2
            from messages where id = $1";
        self.0.run(keep, vals![message.id.uuid(), now]).await?;
        let sql = "update messages set text = $2, edited = $3, digest = $4 where id = $1";
        let values = vals![
            message.id.uuid(),
            message.text.as_str(),
            i64::from(edited),
            message.digest().0
        ];
        self.0.must(sql, values, "the message is gone").await
    }

    /// Removes all messages from this position on from the history, and returns their ids.
    pub async fn remove_from(
        &mut self,
        c: ConversationId,
        seq: i64,
        now: i64,
    ) -> Result<Vec<MessageId>> {
        let sql = "select id from messages where conversation_id = $1 and seq >= $2 and removed_at is null order by seq";
        let found = rows(self.0, sql, vals![c.uuid(), seq]).await?;
        let sql = "update messages set removed_at = $3 where conversation_id = $1 and seq >= $2 and removed_at is null";
        self.0.run(sql, vals![c.uuid(), seq, now]).await?;
        self.0.shares().end_before(c, seq).await?;
        found
            .iter()
            .map(|row| Ok(MessageId::from_uuid(row.id("id")?)))
            .collect()
    }

    /// Restores a removed message at its old position.
    pub async fn restore_message(&mut self, id: MessageId) -> Result<()> {
        let sql = "update messages set removed_at = null where id = $1 and removed_at is not null";
        self.0
            .must(sql, vals![id.uuid()], "the message is not removed")
            .await
    }

    /// Assigns a message to another turn: to a new one that will answer it, or back to the former
    /// one.
    pub async fn hand_over(
        &mut self,
        id: MessageId,
        turn: TurnId,
        state: MessageState,
        trail: &[ToolNote],
    ) -> Result<()> {
        let sql = "update messages set turn_id = $2, state = $3, trail = $4 where id = $1";
        let trail = serde_json::to_string(trail)?;
        self.0
            .must(
                sql,
                vals![id.uuid(), turn.uuid(), state_word(state), trail],
                "the message is gone",
            )
            .await
    }

    /// Takes the last message from its position, to put others before it. Fails for any other
    /// message: positions have no gaps.
    pub async fn unplace(&mut self, id: MessageId) -> Result<()> {
        let sql =
            "update messages set seq = null, state = 'queued', value_full = null, value_run = null,
                run_boundary = null, run_after = null
            where id = $1 and not exists (select 1 from messages later
                where later.conversation_id = messages.conversation_id and later.seq > messages.seq
                  and later.removed_at is null)";
        self.0
            .must(sql, vals![id.uuid()], "the message is not the last one")
            .await
    }

    /// Returns true if a retried message keeps its position while its turn is queued. Until that
    /// turn has run or was cancelled, no other message may get a position.
    pub async fn queued_in_place(&mut self, c: ConversationId) -> Result<bool> {
        let sql = "select 1 as found from turns t join messages m on m.id = t.message_id
            where t.conversation_id = $1 and t.status = 'queued' and m.seq is not null limit 1";
        Ok(one(self.0, sql, vals![c.uuid()]).await?.is_some())
    }

    /// Deletes queued turns of this message. The message stays.
    pub async fn drop_queued_turns_of(&mut self, id: MessageId) -> Result<()> {
        let sql = "delete from turns where message_id = $1 and status = 'queued'";
        if self.0.run(sql, vals![id.uuid()]).await? > 0 {
            let sql = "update messages set state = 'unanswered' where id = $1";
            self.0.run(sql, vals![id.uuid()]).await?;
        }
        Ok(())
    }

    /// Returns the number of messages that both conversations share. A message and all its copies
    /// have the same root.
    pub async fn shared_roots(&mut self, a: ConversationId, b: ConversationId) -> Result<usize> {
        let sql = "select coalesce(root, id) as root from messages
            where conversation_id = $1 and seq is not null and removed_at is null";
        let mut roots = vec![];
        for c in [a, b] {
            let found = rows(self.0, sql, vals![c.uuid()]).await?;
            let of_one: Result<BTreeSet<_>> = found.iter().map(|row| row.id("root")).collect();
            roots.push(of_one?);
        }
        Ok(roots[0].intersection(&roots[1]).count())
    }
}

/// Lists changes, newest first, without reverted ones.
async fn changes(at: &mut impl Ask, c: ConversationId, limit: i64) -> Result<Vec<Change>> {
    let sql = "select id, kind, body, created_at from changes
        where conversation_id = $1 and undone_at is null order by id desc limit $2";
    let read = |row: &Row| {
        Ok(Change {
            id: row.int("id")?,
            kind: row.text("kind")?,
            body: row.json("body")?,
            created_at: row.int("created_at")?,
        })
    };
    let found = rows(at, sql, vals![c.uuid(), limit]).await?;
    found.iter().map(read).collect()
}

impl<C: Ask> Changes<'_, C> {
    /// Lists changes, newest first, without reverted ones.
    pub async fn list(&mut self, c: ConversationId, limit: i64) -> Result<Vec<Change>> {
        changes(self.0, c, limit).await
    }

    /// Returns true if a reset retired the conversation's sessions and was not reverted.
    pub async fn was_reset(&mut self, c: ConversationId) -> Result<bool> {
        let sql = "select 1 as found from changes
            where conversation_id = $1 and kind = 'reset' and undone_at is null limit 1";
        Ok(one(self.0, sql, vals![c.uuid()]).await?.is_some())
    }

    /// Lists the earlier texts of a message, oldest first.
    pub async fn versions(&mut self, id: MessageId) -> Result<Vec<Version>> {
        let sql = "select text, replaced_at from versions where message_id = $1 order by n";
        rows(self.0, sql, vals![id.uuid()])
            .await?
            .iter()
            .map(|row| {
                Ok(Version {
                    text: row.text("text")?,
                    replaced_at: row.int("replaced_at")?,
                })
            })
            .collect()
    }
}
