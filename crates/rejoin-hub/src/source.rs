//! What is said in a session of which ours is a copy, or that cannot be resumed: it is taken in by
//! where it was left off, which is kept with the adoption.

use rejoin_agents::Said;
use rejoin_core::ConversationId;
use rejoin_store::Adoption;
use serde_json::Value;

use crate::Hub;
use crate::claim::Claimed;
use crate::error::{Error, Result};
use crate::outside::{TakenIn, at_work};

impl Hub {
    /// Puts what was said since at the end of the history, and keeps how far that is, in one
    /// transaction. `was`: the adoption as it was when its session was read; if another command was
    /// faster, nothing is done. No session of ours moves: whoever answers next is told.
    pub async fn take_in_since(
        &self,
        c: ConversationId,
        claimed: Option<&Claimed>,
        was: &Adoption,
        source: Value,
        said: &[Said],
    ) -> Result<TakenIn> {
        let now = self.clock.now();
        let mut tx = self.store.begin().await?;
        match claimed {
            Some(claimed) => tx.holds(claimed.turn.id, claimed.turn.fence).await?,
            None if at_work(&mut tx, c).await? => return Err(Error::Busy),
            None => {}
        }
        let stored = tx.adoption(&was.agent, &was.session_id).await?;
        if stored.is_none_or(|stored| stored.source != was.source) {
            return Ok(TakenIn::default());
        }
        let agent = rejoin_core::AgentName::new(was.agent.as_str())
            .map_err(|e| Error::Internal(e.to_string()))?;
        let mut message = None;
        if !said.is_empty() {
            if let Some(claimed) = claimed {
                tx.unplace(claimed.message.id).await?;
            }
            self.say(&mut tx, c, &agent, said, now).await?;
            if let Some(claimed) = claimed {
                message = Some(tx.place_message(claimed.message.id).await?);
            }
            tx.stamp_conversation(c, now).await?;
        }
        let adoption = Adoption {
            source,
            ..was.clone()
        };
        tx.keep_adoption(&adoption, now).await?;
        tx.commit().await?;
        Ok(TakenIn {
            messages: said.len() as u64,
            moved: false,
            message,
        })
    }
}
