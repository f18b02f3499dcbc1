//! Takes in messages from an adopted session that is not resumed itself: ours is a copy, or the
//! session cannot be resumed. The adoption stores the position up to which it was read.

use rejoin_agents::SessionMessage;
use rejoin_core::ConversationId;
use rejoin_store::Adoption;
use serde_json::Value;

use crate::Hub;
use crate::claim::Claimed;
use crate::error::{Error, Result};
use crate::external::{ExternalImport, at_work};

impl Hub {
    /// Appends the new messages to the history and stores the position, in one transaction. `was`
    /// is the adoption at the time its session was read; if another command was faster, nothing
    /// changes. No session of ours moves: the next agent receives the messages as catch-up.
    pub async fn take_in_since(
        &self,
        c: ConversationId,
        claimed: Option<&Claimed>,
        was: &Adoption,
        source: Value,
        said: &[SessionMessage],
    ) -> Result<ExternalImport> {
        let now = self.clock.now();
        let mut tx = self.store.begin().await?;
        match claimed {
            Some(claimed) => {
                tx.turns()
                    .check_fence(claimed.turn.id, claimed.turn.fence)
                    .await?;
            }
            None if at_work(&mut tx, c).await? => return Err(Error::Busy),
            None => {}
        }
        let stored = tx.adoptions().get(&was.agent, &was.session_id).await?;
        if stored.is_none_or(|stored| stored.source != was.source) {
            return Ok(ExternalImport::default());
        }
        let agent = rejoin_core::AgentName::new(was.agent.as_str())
            .map_err(|e| Error::Internal(e.to_string()))?;
        let mut message = None;
        if !said.is_empty() {
            if let Some(claimed) = claimed {
                tx.changes().unplace(claimed.message.id).await?;
            }
            self.say(&mut tx, c, &agent, said, now).await?;
            if let Some(claimed) = claimed {
                message = Some(tx.messages().place(claimed.message.id).await?);
            }
            tx.conversations().stamp(c, now).await?;
        }
        let adoption = Adoption {
            source,
            ..was.clone()
        };
        tx.adoptions().save(&adoption, now).await?;
        tx.commit().await?;
        Ok(ExternalImport {
            messages: said.len() as u64,
            moved: false,
            message,
        })
    }
}
