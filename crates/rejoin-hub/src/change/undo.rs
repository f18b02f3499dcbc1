//! Reverts the last change. Messages added since may have to be removed with it.

use rejoin_core::{ConversationId, MessageId};
use rejoin_store::{Change as StoredChange, Tx};

use super::{ChangeMode, Changed, Made, Undo};
use crate::Hub;
use crate::error::{Error, Result};

impl Hub {
    /// Reverts the newest change that was not reverted yet.
    pub async fn undo(&self, c: ConversationId, doing: ChangeMode) -> Result<Changed> {
        let mut change = self.begin_change(c).await?;
        let Some(last) = change.tx.changes().last(c).await? else {
            let handle = change
                .tx
                .conversations()
                .short_handle(&change.conversation.handle)
                .await?;
            return Err(Error::NothingToUndo(handle));
        };
        let reverted = self.revert(&mut change.tx, c, &last).await?;
        change
            .tx
            .changes()
            .mark_undone(last.id, self.clock.now())
            .await?;
        // An earlier setting may permit more than the present one.
        let restored = change.tx.conversations().get(c).await?;
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
    ) -> Result<RevertEffect> {
        let undo: Undo = serde_json::from_value(last.body.clone())
            .map_err(|e| Error::Internal(format!("a change cannot be read: {e}")))?;
        match undo {
            Undo::Edit {
                message,
                text,
                edited,
            } => {
                // A message that was withdrawn since has no text to restore.
                let Some(stored) = tx.messages().get(message).await? else {
                    return Ok(RevertEffect::default());
                };
                let mut before = stored.message;
                before.text = text;
                tx.changes()
                    .rewrite_message(&before, edited, self.clock.now())
                    .await?;
                if before.seq > 0 {
                    tx.recompute(c, before.seq).await?;
                }
                Ok(RevertEffect {
                    message: Some(message),
                    ..RevertEffect::default()
                })
            }
            Undo::Cut {
                from,
                removed,
                retried,
            } => {
                let since = self.cut(tx, c, from).await?;
                for id in &removed {
                    tx.changes().restore_message(*id).await?;
                }
                let mut message = removed.first().copied();
                if let Some(before) = retried {
                    message = Some(before.message);
                    before.put_back(tx).await?;
                }
                tx.recompute(c, from).await?;
                Ok(RevertEffect {
                    message,
                    removed: since,
                    restored: removed,
                    note: None,
                })
            }
            Undo::Merge(merge) => self.part(tx, c, merge).await,
            Undo::Reset { pins } => {
                for pin in pins {
                    tx.pins().unretire(pin, self.clock.now()).await?;
                }
                Ok(RevertEffect::default())
            }
            Undo::Settings(before) => {
                let now = tx.conversations().get(c).await?.ok_or_else(super::gone)?;
                let own = now.key.clone();
                let mut before = before.over(now);
                let mut note = None;
                if let Some(key) = &before.key
                    && let Some(other) = tx.conversations().by_key(&before.namespace, key).await?
                    && other.id != c
                {
                    note = Some(format!("another conversation has the key `{key}` now"));
                    before.key = own;
                }
                tx.conversations().save(&before).await?;
                Ok(RevertEffect {
                    note,
                    ..RevertEffect::default()
                })
            }
        }
    }
}

/// Effect of a revert on the messages.
#[derive(Default)]
pub(super) struct RevertEffect {
    pub(super) message: Option<MessageId>,
    pub(super) removed: Vec<MessageId>,
    pub(super) restored: Vec<MessageId>,
    pub(super) note: Option<String>,
}
