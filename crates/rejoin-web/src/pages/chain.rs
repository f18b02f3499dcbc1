//! The chain of a turn: each tier with its model, verdict, cost and time.

use rejoin_hub::{ChainTurnView, ChainView};

use super::format::{money, took};
use super::html::plain;

/// Chain on the page of one of its turns.
pub(super) struct Chain {
    pub(super) rows: Vec<Row>,
    pub(super) total: String,
}

/// Turn of a chain.
pub(super) struct Row {
    pub(super) turn: String,
    pub(super) reference: String,
    /// True for the turn of the page.
    pub(super) here: bool,
    pub(super) tier: String,
    pub(super) agent: String,
    pub(super) verdict: String,
    pub(super) status: String,
    pub(super) trigger: String,
    pub(super) cost: String,
    pub(super) took: String,
}

impl Chain {
    /// Returns the chain as the page of `turn` shows it.
    pub(super) fn of(view: &ChainView, turn: &str) -> Self {
        let at_least = if view.cost_complete { "" } else { "at least " };
        Self {
            rows: view.turns.iter().map(|it| Row::of(it, turn)).collect(),
            total: format!("{at_least}{}", money(view.total_cost_usd)),
        }
    }
}

impl Row {
    fn of(turn: &ChainTurnView, page: &str) -> Self {
        let id = turn.turn_id.to_string();
        let agent = [Some(&turn.agent), turn.model.as_ref()];
        let agent: Vec<&str> = agent.into_iter().flatten().map(String::as_str).collect();
        let text = |text: Option<&String>| plain(text.map_or("-", String::as_str));
        Self {
            here: id == page,
            turn: id,
            reference: turn.handle.clone(),
            tier: text(turn.tier.as_ref()),
            agent: plain(&agent.join(" ")),
            verdict: text(turn.verdict.as_ref()),
            status: turn.status.clone(),
            trigger: turn.trigger.clone(),
            cost: money(turn.cost_usd),
            took: took(turn.duration_ms),
        }
    }
}
