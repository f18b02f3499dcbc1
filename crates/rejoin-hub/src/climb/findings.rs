//! Findings: a climb into a new session begins with a turn of the lower tier that writes down what it
//! knows, while its own session still has room.

use rejoin_core::{Approval, ClimbRequest, Tier, findings_prompt, known_window};
use rejoin_store::Tx;
use serde::{Deserialize, Serialize};

use super::next::NextTurn;
use super::{BY_PERSON, BY_POLICY, ClimbDecision, Origin};
use crate::Hub;
use crate::error::Result;

/// Climb that follows a turn which writes down its findings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingClimb {
    pub to: Option<String>,
    pub reason: String,
    pub services: Vec<String>,
    /// Person who allowed the climb.
    pub by: Option<String>,
    /// True if a person commanded the climb.
    pub person: bool,
}

impl PendingClimb {
    pub(super) fn request(&self) -> ClimbRequest {
        ClimbRequest {
            to: self.to.clone(),
            reason: self.reason.clone(),
            services: self.services.clone(),
        }
    }

    /// Returns the approval that the climb had when the findings were asked for.
    pub(super) fn approval(&self) -> Approval<'_> {
        match &self.by {
            Some(by) => Approval::By(by),
            None if self.person => Approval::Command,
            None => Approval::Open,
        }
    }

    pub(super) fn trigger(&self) -> &'static str {
        if self.person { BY_PERSON } else { BY_POLICY }
    }
}

impl Hub {
    /// Returns the turn that begins a climb: the tier's, or before it one of the lower tier for its
    /// findings.
    pub(super) async fn first_turn(
        &self,
        tx: &mut Tx,
        origin: &Origin<'_>,
        next: NextTurn,
        (asked, decision, approval): (&ClimbRequest, &ClimbDecision, Approval<'_>),
        now: i64,
    ) -> Result<NextTurn> {
        let tiers = &origin.tier.tiers;
        let (Some(lower), Some((_, higher))) =
            (tiers.find(&origin.tier.name), tiers.find(&next.tier))
        else {
            return Ok(next);
        };
        if origin.tier.findings_for.is_some() || !wants_findings(origin, &next, (lower.1, higher)) {
            return Ok(next);
        }
        let chain = origin.turn.chain.unwrap_or(origin.turn.id);
        let members = tx.chains().of(chain).await?;
        let mut turn = self
            .next_turn(tx, origin, lower, (&asked.reason, &members), now)
            .await?;
        if turn.agent != origin.turn.agent {
            return Ok(next);
        }
        turn.prompt = findings_prompt(&higher.role);
        if let Some(tier) = &mut turn.request.tier {
            tier.findings_for = Some(PendingClimb {
                to: decision.to.clone(),
                reason: asked.reason.clone(),
                services: asked.services.clone(),
                by: match approval {
                    Approval::By(name) => Some(name.to_owned()),
                    Approval::Open | Approval::Command => None,
                },
                person: approval == Approval::Command,
            });
        }
        Ok(turn)
    }
}

/// Returns true if the session is too full for the next tier's model, and another turn of the lower
/// tier can still resume it.
fn wants_findings(origin: &Origin<'_>, next: &NextTurn, (lower, higher): (&Tier, &Tier)) -> bool {
    let Some(context) = origin.turn.context else {
        return false;
    };
    let limit = next.request.policy.context_threshold;
    let is_full = |window: u64| context.used as f64 >= limit * window as f64;
    let same = next.request.model.is_none() || next.request.model == origin.turn.model;
    let known = next.request.model.as_deref().filter(|_| !same);
    let window = higher.window.or_else(|| known_window(known?));
    let own = lower.window.unwrap_or(context.window);
    next.agent == origin.turn.agent && is_full(window.unwrap_or(context.window)) && !is_full(own)
}
