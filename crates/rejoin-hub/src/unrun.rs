//! Ends turns that never ran but that a caller already knows. The turn stays and can be queried;
//! only its message is withdrawn.

use rejoin_core::{
    Class, Cost, EventBody, Failure, Micros, Sent, SummaryFacts, TurnId, TurnStatus, summary,
};
use rejoin_store::{StoredTurn, TurnEnd, TurnRecord, Tx};
use serde_json::json;

use crate::claim::{Claimed, sticky};
use crate::error::{Error, Result};
use crate::metrics::TurnMetrics;
use crate::{Hub, LOCAL_ONLY};

fn count(turn: &StoredTurn, status: TurnStatus) {
    let nothing = Cost::Known(Micros(0));
    TurnMetrics {
        agent: &turn.agent,
        status,
        verdict: None,
        reason: None,
        took_ms: 0,
        usage: None,
        cost: nothing,
        held: None,
        fresh: None,
    }
    .count();
}

impl Hub {
    /// Ends a turn as `failed` with this class. Only for turns for which no process ran
    /// (`would_reseed`, a permission that the agent cannot enforce).
    pub async fn fail_unrun(&self, claimed: &Claimed, class: Class, message: String) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.turns()
            .check_fence(claimed.turn.id, claimed.turn.fence)
            .await?;
        let failure = Failure { class, message };
        self.end_unrun(&mut tx, &claimed.turn, Some(&failure))
            .await?;
        tx.commit().await?;
        count(&claimed.turn, TurnStatus::Failed);
        Ok(())
    }

    /// Cancels a claimed turn before any process was started for it.
    pub async fn cancel_unrun(&self, claimed: &Claimed) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.turns()
            .check_fence(claimed.turn.id, claimed.turn.fence)
            .await?;
        self.end_unrun(&mut tx, &claimed.turn, None).await?;
        tx.commit().await?;
        count(&claimed.turn, TurnStatus::Cancelled);
        Ok(())
    }

    /// Cancels a queued turn. Returns false if it is queued no longer.
    pub async fn cancel_queued(&self, turn: TurnId) -> Result<bool> {
        let mut tx = self.store.begin().await?;
        let stored = tx.turns().get(turn).await?;
        let stored = stored.ok_or_else(|| Error::NotFound("the turn is gone".into()))?;
        if stored.status != TurnStatus::Queued {
            return Ok(false);
        }
        self.end_unrun(&mut tx, &stored, None).await?;
        tx.commit().await?;
        count(&stored, TurnStatus::Cancelled);
        Ok(true)
    }

    async fn end_unrun(
        &self,
        tx: &mut Tx,
        turn: &StoredTurn,
        failure: Option<&Failure>,
    ) -> Result<()> {
        let now = self.clock.now();
        if !self.take_back_retry(tx, turn).await? {
            tx.messages().withdraw(turn.message).await?;
        }
        let conversation = tx.conversations().get(turn.conversation).await?;
        let handle = match conversation {
            Some(c) => tx.conversations().short_handle(&c.handle).await?,
            None => String::new(),
        };
        let status = match failure {
            Some(_) => TurnStatus::Failed,
            None => TurnStatus::Cancelled,
        };
        let notes: Vec<String> = failure
            .map(|f| f.class.advise(&handle, turn.agent.as_str()))
            .into_iter()
            .collect();
        let (cost, record) = (Cost::Known(Micros(0)), TurnRecord::default());
        let line = summary(&SummaryFacts {
            status,
            verdict: None,
            reason: None,
            because: None,
            sent: Sent::default(),
            caught_up_by: None,
            reference: &handle,
            agent: turn.agent.as_str(),
            model: turn.request["model"].as_str(),
            usage: None,
            cost,
            fresh_estimate: None,
            duration_ms: 0,
            failure,
            tools_run: 0,
            notes: &notes,
        });
        let ending = TurnEnd {
            status,
            reply: None,
            record: &record,
            model: None,
            usage: None,
            cost,
            context: None,
            denied: json!([]),
            error: failure,
            saved: LOCAL_ONLY,
            summary: &line,
            ended_at: now,
        };
        tx.turns().end(turn.id, turn.fence, &ending).await?;
        sticky(tx, turn).await?;
        let ended = EventBody::TurnEnded {
            status: status.to_string(),
            summary: line,
        };
        tx.events()
            .add(turn.conversation, turn.id, now, &[ended])
            .await?;
        Ok(())
    }
}
