//! Cost estimates, from the cost of earlier turns.

use rejoin_core::{
    Continuation, ConversationId, Micros, PastTurn, Prices, Sent, TurnPlan, TurnStatus, Verdict,
};
use rejoin_store::StoredTurn;

use crate::Hub;
use crate::error::Result;

/// Number of turns behind an estimate. Only recent ones: prices change, and so does the way people
/// ask.
const TURNS: i64 = 8;
/// Approximate bytes per token.
const TOKEN: u64 = 4;

impl Hub {
    /// Estimates the cost of the next turn without its message.
    pub async fn estimate_next(
        &self,
        c: ConversationId,
        agent: &rejoin_core::AgentName,
        model: Option<&str>,
        plan: &TurnPlan,
        sent: Sent,
    ) -> Result<Option<Micros>> {
        let mut read = self.store.read().await?;
        let turns = read.turn_costs(c, agent, model, None, TURNS).await?;
        let ahead = match plan {
            TurnPlan::Resume { .. } => Continuation::Resume,
            TurnPlan::Start { .. } | TurnPlan::Reseed { .. } => Continuation::Anew,
        };
        let prices = Prices::implied(&turns);
        Ok(prices.and_then(|p| p.next(ahead, sent.bytes / TOKEN, &turns)))
    }

    /// Estimates the cost of the next turn in a new session, without its message.
    pub async fn estimate_next_fresh(
        &self,
        c: ConversationId,
        agent: &rejoin_core::AgentName,
        model: Option<&str>,
    ) -> Result<Option<Micros>> {
        let mut read = self.store.read().await?;
        let turns = read.turn_costs(c, agent, model, None, TURNS).await?;
        let prices = Prices::implied(&turns);
        Ok(prices.and_then(|p| p.next(Continuation::Anew, 0, &turns)))
    }

    /// Estimates the cost of a reseeded turn had it resumed its session. `None` without enough
    /// data, or if resuming would not have been cheaper.
    pub async fn estimate_resumed(&self, turn: &StoredTurn) -> Result<Option<Micros>> {
        let known = turn.usage.zip(turn.cost.known());
        let (TurnStatus::Succeeded, Some(Verdict::Reseeded), Some((usage, cost))) =
            (turn.status, turn.verdict, known)
        else {
            return Ok(None);
        };
        let this = PastTurn {
            usage,
            cost,
            resumed: false,
            held: turn.context.map(|c| c.used),
        };
        let estimate = self.compared(turn, this, Prices::resumed).await?;
        Ok(estimate.filter(|resumed| *resumed < cost))
    }

    /// Estimates the cost of a resumed turn without its session. `None` if that would not have cost
    /// more.
    pub(crate) async fn estimate_fresh(
        &self,
        turn: &StoredTurn,
        this: PastTurn,
    ) -> Result<Option<Micros>> {
        let estimate = self.compared(turn, this, Prices::fresh).await?;
        Ok(estimate.filter(|fresh| *fresh > this.cost))
    }

    /// Applies `otherwise` to a turn, with prices derived from it and the turns before it.
    async fn compared(
        &self,
        turn: &StoredTurn,
        this: PastTurn,
        otherwise: impl Fn(&Prices, &PastTurn, u64) -> Option<Micros>,
    ) -> Result<Option<Micros>> {
        let model = turn.request["model"].as_str();
        let mut read = self.store.read().await?;
        let before = Some(turn.id);
        let mut turns = read
            .turn_costs(turn.conversation, &turn.agent, model, before, TURNS)
            .await?;
        let Some(held) = turns.first().and_then(|t| t.held) else {
            return Ok(None);
        };
        turns.push(this);
        Ok(Prices::implied(&turns).and_then(|prices| otherwise(&prices, &this, held)))
    }
}
