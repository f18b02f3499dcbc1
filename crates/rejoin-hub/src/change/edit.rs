//! Edits a message, truncates a history, and retires sessions.

use rejoin_core::{ConversationId, MessageId};
use rejoin_store::Tx;

use super::{ChangeMode, Changed, Made, Undo};
use crate::Hub;
use crate::error::{Error, Result};

const RESET: &str = "retired by rejoin reset";

impl Hub {
    /// Replaces the text of a message. The message keeps its id, and the change keeps the old text
    /// for `undo`.
    pub async fn edit(&self, id: MessageId, text: &str, doing: ChangeMode) -> Result<Changed> {
        let c = self.conversation_of(id).await?;
        let mut change = self.begin_change(c).await?;
        self.may_have(&change.conversation)?;
        let tx = &mut change.tx;
        let stored = tx.messages().get(id).await?.ok_or_else(removed)?;
        // Another caller may have queued it with more permissions than the conversation has.
        if let Some(turn) = tx
            .turns()
            .get(stored.turn)
            .await?
            .filter(|t| !t.status.ended())
        {
            self.may_steer(&turn)?;
        }
        let mut message = stored.message;
        let was = std::mem::replace(&mut message.text, text.to_owned());
        let mut made = Made {
            kind: "edit",
            undo: None,
            message: Some(id),
            removed: vec![],
            restored: vec![],
        };
        if was != text {
            let now = self.clock.now();
            tx.changes().rewrite_message(&message, true, now).await?;
            if message.seq > 0 {
                tx.recompute(c, message.seq).await?;
            }
            made.undo = Some(Undo::Edit {
                message: id,
                text: was,
                edited: stored.edited,
            });
        }
        self.end_change(change, made, doing).await
    }

    /// Takes a message and all after it out of the history.
    pub async fn truncate(&self, id: MessageId, doing: ChangeMode) -> Result<Changed> {
        let c = self.conversation_of(id).await?;
        let mut change = self.begin_change(c).await?;
        self.may_have(&change.conversation)?;
        let from = place_of(&mut change.tx, id).await?;
        let removed = self.cut(&mut change.tx, c, from).await?;
        let made = Made {
            kind: "truncate",
            undo: Some(Undo::Cut {
                from,
                removed: removed.clone(),
                retried: None,
            }),
            message: Some(id),
            removed,
            restored: vec![],
        };
        self.end_change(change, made, doing).await
    }

    /// Implements `rejoin reset`: retires all sessions and keeps the messages. Returns the number
    /// of retired sessions.
    pub async fn reset(&self, c: ConversationId, doing: ChangeMode) -> Result<(u64, Changed)> {
        let mut change = self.begin_change(c).await?;
        self.may_have(&change.conversation)?;
        let now = self.clock.now();
        let pins = change.tx.pins().retire_all(c, RESET, now).await?;
        let retired = pins.len() as u64;
        // A fork without a session yet loses the right to begin with a copy of its parent's
        // session.
        let conversation = change.tx.conversations().get(c).await?;
        let forked = conversation.is_some_and(|c| c.parent.is_some());
        let made = Made {
            kind: "reset",
            undo: (retired > 0 || forked).then_some(Undo::Reset { pins }),
            message: None,
            removed: vec![],
            restored: vec![],
        };
        Ok((retired, self.end_change(change, made, doing).await?))
    }

    /// Removes every message from position `from` on, and drops queued turns that were to answer
    /// one of them.
    pub(super) async fn cut(
        &self,
        tx: &mut Tx,
        c: ConversationId,
        from: i64,
    ) -> Result<Vec<MessageId>> {
        let removed = tx.changes().remove_from(c, from, self.clock.now()).await?;
        for id in &removed {
            tx.changes().drop_queued_turns_of(*id).await?;
        }
        Ok(removed)
    }

    pub(super) async fn conversation_of(&self, id: MessageId) -> Result<ConversationId> {
        let found = self
            .store
            .read()
            .await?
            .messages()
            .conversation_of(id)
            .await?;
        found.ok_or_else(|| Error::NotFound(format!("there is no message {id}")))
    }
}

/// Returns the position of a message in the history. Fails for a queued message, which has none
/// yet.
pub(super) async fn place_of(tx: &mut Tx, id: MessageId) -> Result<i64> {
    let stored = tx.messages().get(id).await?.ok_or_else(removed)?;
    match stored.message.seq {
        0 => Err(Error::Conflict(
            "the message is still queued, and not part of the history yet".into(),
        )),
        seq => Ok(seq),
    }
}

pub(super) fn removed() -> Error {
    Error::NotFound("the message was removed; `rejoin undo` may bring it back".into())
}
