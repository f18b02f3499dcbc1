//! Takes the last change back. What was said since then may have to go with it.

use rejoin_core::{ConversationId, MessageId};
use rejoin_store::{Change as StoredChange, Tx};

use super::{Changed, Doing, Made, Undo};
use crate::Hub;
use crate::error::{Error, Result};

impl Hub {
    /// Reverts the newest change that was not taken back yet.
    pub async fn undo(&self, c: ConversationId, doing: Doing) -> Result<Changed> {
        let mut change = self.begin_change(c).await?;
        let Some(last) = change.tx.last_change(c).await? else {
            let handle = change.tx.short_handle(&change.conversation.handle).await?;
            return Err(Error::NothingToUndo(handle));
        };
        let reverted = self.revert(&mut change.tx, c, &last).await?;
        change.tx.mark_undone(last.id, self.clock.now()).await?;
        // An earlier setting may permit more than the present one.
        let restored = change.tx.conversation(c).await?;
        self.may_have(&restored.ok_or_else(super::gone)?)?;
        let made = Made {
            kind: "undo",
            undo: None,
            message: reverted.message,
            removed: reverted.removed,
            restored: reverted.restored,
        };
        let mut changed = self.end_change(change, made, doing).await?;
        changed.change = last.kind;
        changed.note = reverted.note;
        Ok(changed)
    }

    pub(super) async fn revert(
        &self,
        tx: &mut Tx,
        c: ConversationId,
        last: &StoredChange,
    ) -> Result<Reverted> {
        let undo: Undo = serde_json::from_value(last.body.clone())
            .map_err(|e| Error::Internal(format!("a change cannot be read: {e}")))?;
        match undo {
            Undo::Edit {
                message,
                text,
                edited,
            } => {
                // One that was withdrawn since has no words to get back.
                let Some(stored) = tx.message(message).await? else {
                    return Ok(Reverted::default());
                };
                let mut before = stored.message;
                before.text = text;
                tx.rewrite_message(&before, edited, self.clock.now())
                    .await?;
                if before.seq > 0 {
                    tx.refold(c, before.seq).await?;
                }
                Ok(Reverted {
                    message: Some(message),
                    ..Reverted::default()
                })
            }
            Undo::Cut {
                from,
                removed,
                retried,
            } => {
                let since = self.cut(tx, c, from).await?;
                for id in &removed {
                    tx.bring_back(*id).await?;
                }
                let mut message = removed.first().copied();
                if let Some(before) = retried {
                    message = Some(before.message);
                    before.put_back(tx).await?;
                }
                tx.refold(c, from).await?;
                Ok(Reverted {
                    message,
                    removed: since,
                    restored: removed,
                    note: None,
                })
            }
            Undo::Merge(merge) => self.part(tx, c, merge).await,
            Undo::Reset { pins } => {
                for pin in pins {
                    tx.unretire_pin(pin, self.clock.now()).await?;
                }
                Ok(Reverted::default())
            }
            Undo::Settings(before) => {
                let now = tx.conversation(c).await?.ok_or_else(super::gone)?;
                let own = now.key.clone();
                let mut before = before.over(now);
                let mut note = None;
                if let Some(key) = &before.key
                    && let Some(other) = tx.conversation_by_key(&before.namespace, key).await?
                    && other.id != c
                {
                    note = Some(format!("another conversation has the key `{key}` now"));
                    before.key = own;
                }
                tx.keep_conversation(&before).await?;
                Ok(Reverted {
                    note,
                    ..Reverted::default()
                })
            }
        }
    }
}

/// What taking a change back did to the messages.
#[derive(Default)]
pub(super) struct Reverted {
    pub(super) message: Option<MessageId>,
    pub(super) removed: Vec<MessageId>,
    pub(super) restored: Vec<MessageId>,
    pub(super) note: Option<String>,
}
