//! The turn that a climb begins: its complete permissions, and its prompt.

use rejoin_agents::{adapter, limit_refusal};
use rejoin_core::{AgentName, ClimbPrompt, Tier, escalation_prompt};
use rejoin_store::{StoredTurn, Tx};

use super::Origin;
use crate::Hub;
use crate::error::Result;
use crate::request::{TierTurn, TurnFlags, TurnRequest};

/// Turn that a climb may begin.
pub(super) struct NextTurn {
    pub(super) tier: String,
    pub(super) agent: AgentName,
    pub(super) request: TurnRequest,
    pub(super) prompt: String,
}

impl Hub {
    /// Builds the turn of a tier, with the complete permissions of that tier.
    pub(super) async fn next_turn(
        &self,
        tx: &mut Tx,
        origin: &Origin<'_>,
        (rank, tier): (usize, &Tier),
        (reason, members): (&str, &[StoredTurn]),
        now: i64,
    ) -> Result<NextTurn> {
        let from = origin
            .tier
            .tiers
            .find(&origin.tier.name)
            .map(|(rank, _)| rank);
        let agent = tier
            .agent
            .clone()
            .unwrap_or_else(|| origin.turn.agent.clone());
        let flags = TurnFlags {
            workdir: Some(origin.base.workdir.clone()),
            tier: Some(TierTurn {
                name: tier.name.clone(),
                findings_for: None,
                ..origin.tier.clone()
            }),
            ..TurnFlags::default()
        };
        let mut request = flags.over(origin.conversation, &agent, &origin.base);
        let namespace = &origin.conversation.namespace;
        self.limit_request(tx, namespace, &mut request, now).await?;
        let tiers = members.iter().filter_map(|turn| turn.tier.clone());
        let chain: Vec<String> = tiers.collect();
        Ok(NextTurn {
            tier: tier.name.clone(),
            agent,
            prompt: escalation_prompt(&ClimbPrompt {
                tiers: &origin.tier.tiers,
                from,
                rank,
                limits: &request.limits,
                permissions: &request.permissions,
                reason,
                chain: &chain,
            }),
            request,
        })
    }

    /// Checks that the agent and the caller's ceiling allow the turn.
    pub(super) fn can_run(&self, origin: &Origin<'_>, next: &NextTurn) -> Result<(), String> {
        let caller = Self {
            ceiling: origin.tier.ceiling,
            ..self.clone()
        };
        let allowed = caller.may_run(&next.agent, &next.request);
        allowed.map_err(|error| error.to_string())?;
        match adapter(next.agent.as_str()) {
            Some(adapter) => {
                adapter.check_permissions(&next.request.permissions, false)?;
                limit_refusal(adapter, &next.request.limits).map_or(Ok(()), Err)
            }
            None => Ok(()),
        }
    }
}
