//! Selects the snapshots for an export.

use std::collections::HashMap;

use rejoin_core::{ConversationId, PinId, PinState, SnapshotId};

use super::SnapshotSelection;
use crate::connections::Read;
use crate::db::{rows, vals};
use crate::error::Result;

impl Read {
    pub(super) async fn travelling(
        &mut self,
        c: ConversationId,
        which: SnapshotSelection,
    ) -> Result<Vec<SnapshotId>> {
        let sql = "select id, pin_id, kept from snapshots
            where conversation_id = $1 and manifest is not null and state = 'confirmed' order by id";
        let found = rows(self, sql, vals![c.uuid()]).await?;
        let mut all = vec![];
        let mut newest = HashMap::new();
        for row in &found {
            let id = SnapshotId::from_uuid(row.id("id")?);
            let pin = PinId::from_uuid(row.id("pin_id")?);
            newest.insert(pin, id);
            all.push((id, pin, row.int("kept")? != 0));
        }
        let serving = match which {
            SnapshotSelection::All => return Ok(all.into_iter().map(|(id, ..)| id).collect()),
            SnapshotSelection::Newest => self.serving(c).await?,
        };
        all.retain(|(id, pin, kept)| {
            *kept || (serving.contains(pin) && newest.get(pin) == Some(id))
        });
        Ok(all.into_iter().map(|(id, ..)| id).collect())
    }

    /// Returns, for each agent, the session that its next turn would resume: of those not retired
    /// the one that has seen most of today's history. Sessions that it replaced would otherwise be
    /// exported forever.
    async fn serving(&mut self, c: ConversationId) -> Result<Vec<PinId>> {
        let mut serving = vec![];
        let Some(conversation) = self.conversations().get(c).await? else {
            return Ok(serving);
        };
        let scope = conversation.scope;
        let end = self.history().last_seq(c).await? + 1;
        let agents = "select distinct agent from pins where conversation_id = $1";
        for row in rows(self, agents, vals![c.uuid()]).await? {
            let agent = super::agent(&row)?;
            let today = self.history().scope_before(c, scope, &agent, end).await?;
            let mut best: Option<(u64, PinId)> = None;
            // Newest first: of two that have seen the same messages, the newer one.
            for stored in self.pins().of(c, &agent).await? {
                let seen = match (&stored.state, &stored.pin) {
                    (PinState::Open(_) | PinState::Confirmed, Some(pin)) => pin.seen,
                    (PinState::Retired(_), _) | (_, None) => continue,
                };
                let value = self
                    .history()
                    .value_through(c, scope, &today, seen.last_seq)
                    .await?;
                let more = best.is_none_or(|(most, _)| seen.messages > most);
                if value == Some(seen.value) && more {
                    best = Some((seen.messages, stored.id));
                }
            }
            serving.extend(best.map(|(_, pin)| pin));
        }
        Ok(serving)
    }
}
