//! What turns would cost, from what those before them did.

use rejoin_core::{
    Ahead, ConversationId, Micros, Prices, Sent, Spent, TurnPlan, TurnStatus, Verdict,
};
use rejoin_store::StoredTurn;

use crate::Hub;
use crate::error::Result;

/// Turns an estimate is made from: prices change, and so does the way people ask.
const TURNS: i64 = 8;
/// Bytes of a token, about.
const TOKEN: u64 = 4;

impl Hub {
    /// What the next turn would cost, but for its message.
    pub async fn estimate_next(
        &self,
        c: ConversationId,
        agent: &rejoin_core::AgentName,
        model: Option<&str>,
        plan: &TurnPlan,
        sent: Sent,
    ) -> Result<Option<Micros>> {
        let mut read = self.store.read().await?;
        let turns = read.spent(c, agent, model, None, TURNS).await?;
        let ahead = match plan {
            TurnPlan::Resume { .. } => Ahead::Resume,
            TurnPlan::Start { .. } | TurnPlan::Reseed { .. } => Ahead::Anew,
        };
        let prices = Prices::implied(&turns);
        Ok(prices.and_then(|p| p.next(ahead, sent.bytes / TOKEN, &turns)))
    }

    /// What a turn that was told everything would have cost, had its session been resumed.
    pub async fn estimate_resumed(&self, turn: &StoredTurn) -> Result<Option<Micros>> {
        let known = turn.usage.zip(turn.cost.known());
        let (TurnStatus::Succeeded, Some(Verdict::Reseeded), Some((usage, cost))) =
            (turn.status, turn.verdict, known)
        else {
            return Ok(None);
        };
        let this = Spent {
            usage,
            cost,
            resumed: false,
            held: turn.context.map(|c| c.used),
        };
        let estimate = self.compared(turn, this, Prices::resumed).await?;
        Ok(estimate.filter(|resumed| *resumed < cost))
    }

    /// What a turn that resumed would have cost without its session.
    pub(crate) async fn estimate_fresh(
        &self,
        turn: &StoredTurn,
        this: Spent,
    ) -> Result<Option<Micros>> {
        let estimate = self.compared(turn, this, Prices::fresh).await?;
        Ok(estimate.filter(|fresh| *fresh > this.cost))
    }

    /// The turn as it would have been, by the prices of those before it and its own.
    async fn compared(
        &self,
        turn: &StoredTurn,
        this: Spent,
        otherwise: impl Fn(&Prices, &Spent, u64) -> Option<Micros>,
    ) -> Result<Option<Micros>> {
        let model = turn.request["model"].as_str();
        let mut read = self.store.read().await?;
        let before = Some(turn.id);
        let mut turns = read
            .spent(turn.conversation, &turn.agent, model, before, TURNS)
            .await?;
        let Some(held) = turns.first().and_then(|t| t.held) else {
            return Ok(None);
        };
        turns.push(this);
        Ok(Prices::implied(&turns).and_then(|prices| otherwise(&prices, &this, held)))
    }
}
