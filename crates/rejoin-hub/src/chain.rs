//! Views of chains: the turns linked by climbs, and their cost.

use rejoin_core::{ConversationId, Cost, Micros, TurnId};
use rejoin_store::StoredTurn;
use serde::{Deserialize, Serialize};

use crate::Hub;
use crate::clock::rfc3339;
use crate::error::{Error, Result};
use crate::finish::took_ms;

/// Number of chains on a page.
const PAGE: i64 = 20;

/// Turns linked by climbs, root first.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChainView {
    pub chain_id: TurnId,
    pub conversation_id: ConversationId,
    pub turns: Vec<ChainTurnView>,
    /// Sum of the known costs; none if no cost is known.
    pub total_cost_usd: Option<f64>,
    /// False if the cost of a turn is unknown: the total is then a lower bound.
    pub cost_complete: bool,
    pub by_tier: Vec<TierCostView>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChainTurnView {
    pub turn_id: TurnId,
    pub handle: String,
    pub parent_turn_id: Option<TurnId>,
    pub tier: Option<String>,
    pub agent: String,
    pub model: Option<String>,
    pub session_id: Option<String>,
    pub verdict: Option<String>,
    pub reason: Option<String>,
    pub status: String,
    /// `user`, `schedule`, `climb` or `person`.
    pub trigger: String,
    pub cost_usd: Option<f64>,
    pub duration_ms: u64,
    pub started_at: Option<String>,
}

/// A page of the chains of a namespace, newest first.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChainsView {
    pub chains: Vec<ChainView>,
    pub next_cursor: Option<String>,
}

/// Turns of one tier in a chain.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TierCostView {
    pub tier: Option<String>,
    /// Sum of the known costs; none if no cost is known.
    pub cost_usd: Option<f64>,
    pub turns: u64,
}

impl Hub {
    /// Returns a page of the chains, newest first.
    pub async fn chains(&self, cursor: Option<&str>) -> Result<ChainsView> {
        let before = cursor.map(str::parse::<TurnId>);
        let before = before.transpose().map_err(|_| Error::Cursor)?;
        let mut read = self.store.read().await?;
        let mut roots = read
            .chains()
            .roots(&self.namespace, before, PAGE + 1)
            .await?;
        drop(read);
        let more = roots.len() as i64 > PAGE;
        roots.truncate(PAGE as usize);
        let mut chains = vec![];
        for root in &roots {
            chains.push(self.chain(root).await?);
        }
        let last = roots.last().filter(|_| more);
        Ok(ChainsView {
            chains,
            next_cursor: last.map(|turn| turn.id.to_string()),
        })
    }

    /// Returns the chain of one of its turns. A turn without a tier is a chain of one.
    pub async fn chain(&self, turn: &StoredTurn) -> Result<ChainView> {
        let chain = turn.chain.unwrap_or(turn.id);
        let mut members = self.store.read().await?.chains().of(chain).await?;
        if members.is_empty() {
            members.push(turn.clone());
        }
        let mut view = ChainView {
            chain_id: chain,
            conversation_id: turn.conversation,
            turns: vec![],
            total_cost_usd: sum(members.iter().map(|turn| turn.cost)),
            cost_complete: members.iter().all(|turn| turn.cost != Cost::Unknown),
            by_tier: by_tier(&members),
        };
        for member in members {
            let whole = self.turn_view(member.id).await?;
            view.turns.push(ChainTurnView {
                turn_id: member.id,
                handle: whole.handle,
                parent_turn_id: member.parent,
                agent: whole.agent,
                model: whole.model,
                session_id: whole.session_id,
                verdict: whole.verdict,
                reason: whole.reason,
                status: whole.status,
                trigger: member.trigger.clone().unwrap_or_else(|| "user".into()),
                cost_usd: whole.cost_usd,
                duration_ms: took_ms(&member),
                started_at: member.started_at.map(rfc3339),
                tier: member.tier,
            });
        }
        Ok(view)
    }
}

fn by_tier(members: &[StoredTurn]) -> Vec<TierCostView> {
    let mut found: Vec<TierCostView> = vec![];
    for member in members {
        if found.iter().any(|row| row.tier == member.tier) {
            continue;
        }
        let same = || members.iter().filter(|turn| turn.tier == member.tier);
        found.push(TierCostView {
            tier: member.tier.clone(),
            cost_usd: sum(same().map(|turn| turn.cost)),
            turns: same().count() as u64,
        });
    }
    found
}

/// Returns the sum of the known costs in dollars.
fn sum(costs: impl Iterator<Item = Cost>) -> Option<f64> {
    let known: Vec<i64> = costs.filter_map(Cost::known).map(|cost| cost.0).collect();
    (!known.is_empty()).then(|| Micros(known.iter().sum()).dollars())
}
