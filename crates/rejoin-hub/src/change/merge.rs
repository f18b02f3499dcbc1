//! Merges two conversations (D-10, D-12, D-14, D-37). The older block comes first and blocks are
//! never interleaved. The merged conversation redirects to the other one.

use rejoin_core::{ConversationId, EventBody, MessageId, PinId, TurnId};
use rejoin_store::{OwnedRows, Tx};
use serde::{Deserialize, Serialize};

use super::undo::RevertEffect;
use super::{Affected, ChangeMode, Made, gone, must_be_idle};
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

/// Data that `undo` needs to separate the conversations again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Undo {
    from: ConversationId,
    messages: Vec<MessageId>,
    queued: Vec<MessageId>,
    turns: Vec<TurnId>,
    pins: Vec<PinId>,
    /// Number of positions by which each block was shifted.
    from_by: i64,
    into_by: i64,
    /// Number of messages in the merged history right after the merge.
    total: i64,
    /// Conversations that had been merged into `from` before.
    #[serde(default)]
    led: Vec<ConversationId>,
}

impl Hub {
    pub async fn merge(
        &self,
        from: ConversationId,
        into: ConversationId,
        doing: ChangeMode,
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
        let shared = tx.changes().shared_roots(from, into).await?;
        if shared > 0 {
            return Err(Error::Conflict(format!(
                "one is a fork of the other: they share {shared} messages, which would be there twice"
            )));
        }
        let what = tx.merge().owned_rows(from).await?;
        let (moved, kept) = (
            what.messages.len() as i64,
            tx.history().last_seq(into).await?,
        );
        // The messages of one conversation are shown by no link to the other.
        for c in [from, into] {
            tx.shares().close_ended(c, self.clock.now()).await?;
        }
        let older = (other.created_at, other.id) < (change.conversation.created_at, into);
        let (from_by, into_by) = if older { (0, moved) } else { (kept, 0) };
        if into_by > 0 {
            tx.merge().shift_places(into, into_by).await?;
        }
        if from_by > 0 {
            tx.merge().shift_places(from, from_by).await?;
        }
        tx.merge().move_rows(&what, into).await?;
        // Redirects never form a chain: earlier ones are pointed at the new target.
        let led = tx.merge().redirecting_to(from).await?;
        for c in led.iter().chain([&from]) {
            tx.merge().redirect(*c, Some(into)).await?;
        }
        let event = EventBody::changed(["merged_into"]);
        tx.events()
            .add(from, TurnId::nil(), self.clock.now(), &[event])
            .await?;
        tx.recompute(into, 1).await?;
        let OwnedRows {
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

    /// Reverts a merge: both conversations are as before, and messages added since are removed.
    pub(super) async fn part(
        &self,
        tx: &mut Tx,
        into: ConversationId,
        undo: Undo,
    ) -> Result<RevertEffect> {
        if tx.conversations().get(undo.from).await?.is_none() {
            return Err(gone());
        }
        let since = self.cut(tx, into, undo.total + 1).await?;
        let what = OwnedRows {
            messages: undo.messages,
            queued: undo.queued,
            turns: undo.turns,
            pins: undo.pins,
        };
        tx.merge().move_rows(&what, undo.from).await?;
        if undo.from_by > 0 {
            tx.merge().shift_places(undo.from, -undo.from_by).await?;
        }
        if undo.into_by > 0 {
            tx.merge().shift_places(into, -undo.into_by).await?;
        }
        tx.merge().redirect(undo.from, None).await?;
        for c in undo.led {
            tx.merge().redirect(c, Some(undo.from)).await?;
        }
        let event = EventBody::changed(["merged_into"]);
        tx.events()
            .add(undo.from, TurnId::nil(), self.clock.now(), &[event])
            .await?;
        tx.recompute(undo.from, 1).await?;
        tx.recompute(into, 1).await?;
        Ok(RevertEffect {
            removed: since,
            ..RevertEffect::default()
        })
    }
}
