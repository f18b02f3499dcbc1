//! Two conversations become one (D-10, D-12, D-14, D-37): the older block first, never interleaved; whoever
//! asks for the one that was merged is led to the other.

use rejoin_core::{ConversationId, MessageId, PinId, TurnId};
use rejoin_store::{Belongings, Tx};
use serde::{Deserialize, Serialize};

use super::undo::Reverted;
use super::{Affected, Doing, Made, gone, must_be_idle};
use crate::Hub;
use crate::error::{Error, Result};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Merged {
    pub conversation_id: ConversationId,
    pub moved: u64,
    pub affected: Vec<Affected>,
    pub dry_run: bool,
}

/// What parts them again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Undo {
    from: ConversationId,
    messages: Vec<MessageId>,
    queued: Vec<MessageId>,
    turns: Vec<TurnId>,
    pins: Vec<PinId>,
    /// How many places each block was moved by.
    from_by: i64,
    into_by: i64,
    /// Places that were taken right after.
    total: i64,
    /// Conversations that had been merged into FROM before.
    #[serde(default)]
    led: Vec<ConversationId>,
}

impl Hub {
    pub async fn merge(
        &self,
        from: ConversationId,
        into: ConversationId,
        doing: Doing,
    ) -> Result<Merged> {
        if from == into {
            return Err(Error::Usage(
                "a conversation cannot be merged into itself".into(),
            ));
        }
        let mut change = self.begin_change(into).await?;
        let tx = &mut change.tx;
        let other = must_be_idle(tx, from).await?;
        self.may_have(&change.conversation)?;
        self.may_have(&other)?;
        let shared = tx.shared_roots(from, into).await?;
        if shared > 0 {
            return Err(Error::Conflict(format!(
                "one is a fork of the other: they share {shared} messages, which would be there twice"
            )));
        }
        let what = tx.belongings(from).await?;
        let (moved, kept) = (what.messages.len() as i64, tx.last_seq(into).await?);
        let older = (other.created_at, other.id) < (change.conversation.created_at, into);
        let (from_by, into_by) = if older { (0, moved) } else { (kept, 0) };
        if into_by > 0 {
            tx.shift_places(into, into_by).await?;
        }
        if from_by > 0 {
            tx.shift_places(from, from_by).await?;
        }
        tx.give_to(&what, into).await?;
        // Never over two corners.
        let led = tx.led_to(from).await?;
        for c in led.iter().chain([&from]) {
            tx.redirect(*c, Some(into)).await?;
        }
        tx.refold(into, 1).await?;
        let Belongings {
            messages,
            queued,
            turns,
            pins,
        } = what;
        let made = Made {
            kind: "merge",
            undo: Some(super::Undo::Merge(Undo {
                from,
                messages,
                queued,
                turns,
                pins,
                from_by,
                into_by,
                total: moved + kept,
                led,
            })),
            message: None,
            removed: vec![],
            restored: vec![],
        };
        let changed = self.end_change(change, made, doing).await?;
        Ok(Merged {
            conversation_id: into,
            moved: moved as u64,
            affected: changed.affected,
            dry_run: changed.dry_run,
        })
    }

    /// Both are again what they were; what was said since is removed.
    pub(super) async fn part(
        &self,
        tx: &mut Tx,
        into: ConversationId,
        undo: Undo,
    ) -> Result<Reverted> {
        if tx.conversation(undo.from).await?.is_none() {
            return Err(gone());
        }
        let since = self.cut(tx, into, undo.total + 1).await?;
        let what = Belongings {
            messages: undo.messages,
            queued: undo.queued,
            turns: undo.turns,
            pins: undo.pins,
        };
        tx.give_to(&what, undo.from).await?;
        if undo.from_by > 0 {
            tx.shift_places(undo.from, -undo.from_by).await?;
        }
        if undo.into_by > 0 {
            tx.shift_places(into, -undo.into_by).await?;
        }
        tx.redirect(undo.from, None).await?;
        for c in undo.led {
            tx.redirect(c, Some(undo.from)).await?;
        }
        tx.refold(undo.from, 1).await?;
        tx.refold(into, 1).await?;
        Ok(Reverted {
            removed: since,
            ..Reverted::default()
        })
    }
}
