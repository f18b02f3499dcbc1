//! Turns that never ran, where somebody was told of them already: they end, and stay to be asked for;
//! only their message is taken back.

use rejoin_core::{
    Class, Cost, EventBody, Failure, Micros, Sent, SummaryFacts, TurnId, TurnStatus, summary,
};
use rejoin_store::{Ending, StoredTurn, TurnRecord, Tx};
use serde_json::json;

use crate::claim::{Claimed, sticky};
use crate::error::{Error, Result};
use crate::figures::Ended;
use crate::{Hub, LOCAL_ONLY};

fn count(turn: &StoredTurn, status: TurnStatus) {
    let nothing = Cost::Known(Micros(0));
    Ended {
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
    /// Nothing ran for it (`would_reseed`, a permission that cannot be expressed): it ends `failed` with
    /// that class.
    pub async fn hold_back(&self, claimed: &Claimed, class: Class, message: String) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.holds(claimed.turn.id, claimed.turn.fence).await?;
        let failure = Failure { class, message };
        self.end_unrun(&mut tx, &claimed.turn, Some(&failure))
            .await?;
        tx.commit().await?;
        count(&claimed.turn, TurnStatus::Failed);
        Ok(())
    }

    /// It was cancelled after it had been claimed, and before anything was started.
    pub async fn cancel_unrun(&self, claimed: &Claimed) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.holds(claimed.turn.id, claimed.turn.fence).await?;
        self.end_unrun(&mut tx, &claimed.turn, None).await?;
        tx.commit().await?;
        count(&claimed.turn, TurnStatus::Cancelled);
        Ok(())
    }

    /// Cancels a turn that is still in the queue. False: it is not any more.
    pub async fn cancel_queued(&self, turn: TurnId) -> Result<bool> {
        let mut tx = self.store.begin().await?;
        let stored = tx.turn(turn).await?;
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
            tx.withdraw_message(turn.message).await?;
        }
        let conversation = tx.conversation(turn.conversation).await?;
        let handle = match conversation {
            Some(c) => tx.short_handle(&c.handle).await?,
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
        let ending = Ending {
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
        tx.end_turn(turn.id, turn.fence, &ending).await?;
        sticky(tx, turn).await?;
        let ended = EventBody::TurnEnded {
            status: status.to_string(),
            summary: line,
        };
        tx.add_events(turn.conversation, turn.id, now, &[ended])
            .await?;
        Ok(())
    }
}
