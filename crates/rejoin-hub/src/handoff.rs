//! The handoff of a turn: derived from the record of its chain, without another run.

use std::collections::HashMap;

use rejoin_core::{
    EventBody, Finding, HANDOFF_TOKENS, HANDOFF_VERSION, Handoff, HandoffCall, LeftOut,
    PermissionMode, Tier, TierState, ToolKind,
};
use rejoin_store::{Read, StoredTurn};

use crate::Hub;
use crate::claim::Claimed;
use crate::clock::rfc3339;
use crate::error::Result;
use crate::limits::limit_left;
use crate::request::TurnRequest;

/// Number of calls and results that are read of one turn, newest first.
const NEWEST: i64 = 2_000;

impl Hub {
    /// Returns the handoff that a tier after this turn would receive, cut to its budget.
    pub async fn handoff(&self, turn: &StoredTurn) -> Result<Handoff> {
        let chain = turn.chain.unwrap_or(turn.id);
        let mut read = self.store.read().await?;
        let mut members = read.chains().of(chain).await?;
        members.retain(|member| member.id < turn.id);
        members.push(turn.clone());
        members.reverse();
        let mut handoff = Handoff {
            schema_version: HANDOFF_VERSION,
            conversation_id: turn.conversation,
            turn_id: turn.id,
            chain_id: chain,
            tier: turn.tier.clone(),
            findings: vec![],
            checks: vec![],
            attempted_actions: vec![],
            affected_services: vec![],
            cooldown_state: self.tier_states(&mut read, turn).await?,
            left_out: LeftOut::default(),
        };
        for member in &members {
            add_calls(&mut read, member, &mut handoff).await?;
            add_services(member, &mut handoff.affected_services);
        }
        drop(read);
        for member in members {
            let view = self.turn_view(member.id).await?;
            if let Some(text) = view.text.or(view.partial_text) {
                handoff.findings.push(Finding {
                    turn_id: member.id,
                    tier: member.tier,
                    agent: view.agent,
                    text,
                    shortened: false,
                });
            }
        }
        Ok(handoff.within(HANDOFF_TOKENS))
    }

    /// Returns the part of the handoff that a climb receives beside the transcript, if its agent
    /// cannot resume the session.
    pub async fn handoff_beside_transcript(&self, claimed: &Claimed) -> Result<Option<String>> {
        let Some(parent) = claimed.turn.parent else {
            return Ok(None);
        };
        let Some(parent) = self.store.read().await?.turns().get(parent).await? else {
            return Ok(None);
        };
        let text = self.handoff(&parent).await?.beside_transcript();
        Ok((!text.is_empty()).then_some(text))
    }

    /// Returns cooldown and limits of the tiers that were configured when the chain began.
    async fn tier_states(&self, read: &mut Read, turn: &StoredTurn) -> Result<Vec<TierState>> {
        let tiers = request_of(turn).tier.map(|tier| tier.tiers.tiers);
        let limited = |tier: &Tier| tier.cooldown_ms.is_some() || !tier.limit.is_empty();
        let now = self.clock.now();
        let mut states = vec![];
        for tier in tiers
            .unwrap_or_default()
            .iter()
            .filter(|tier| limited(tier))
        {
            let c = turn.conversation;
            let last = read.chains().last_climb(c, &tier.name).await?;
            let cooldown = tier.cooldown_ms.unwrap_or(0).saturating_mul(1000);
            let cooldown = i64::try_from(cooldown).unwrap_or(i64::MAX);
            let free = last.map(|at| at.saturating_add(cooldown));
            let mut limits = vec![];
            for limit in &tier.limit {
                limits.push(limit_left(read, &self.namespace, limit, now).await?);
            }
            states.push(TierState {
                tier: tier.name.clone(),
                cooldown_ms: tier.cooldown_ms,
                last_climb_at: last.map(rfc3339),
                available_at: free.filter(|at| *at > now).map(rfc3339),
                limits,
            });
        }
        Ok(states)
    }
}

fn request_of(turn: &StoredTurn) -> TurnRequest {
    serde_json::from_value(turn.request.clone()).unwrap_or_default()
}

/// Adds the calls of a turn, newest first: those that may have changed something as actions, the
/// others as checks.
async fn add_calls(read: &mut Read, turn: &StoredTurn, handoff: &mut Handoff) -> Result<()> {
    let only_reads = request_of(turn).permissions.mode == PermissionMode::ReadOnly;
    let mut results: HashMap<String, &str> = HashMap::new();
    for row in read.events().calls_and_results(turn.id, NEWEST).await? {
        #[expect(clippy::wildcard_enum_match_arm, reason = "other events are no calls")]
        match row.body.described() {
            EventBody::ToolResult { id, is_error, .. } => {
                results.insert(id, if is_error { "failed" } else { "ok" });
            }
            EventBody::ToolCall {
                id,
                tool,
                kind,
                subject,
                ..
            } => {
                let call = HandoffCall {
                    turn_id: turn.id,
                    tier: turn.tier.clone(),
                    tool,
                    subject: subject.unwrap_or_default(),
                    result: (*results.get(&id).unwrap_or(&"unknown")).to_owned(),
                    at: rfc3339(row.at),
                };
                let looks = match kind.unwrap_or(ToolKind::Other) {
                    ToolKind::Read | ToolKind::Search | ToolKind::Web => true,
                    ToolKind::Run => only_reads,
                    ToolKind::Edit | ToolKind::Agent | ToolKind::Other => false,
                };
                if looks {
                    handoff.checks.push(call);
                } else {
                    handoff.attempted_actions.push(call);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Adds the services that the request of a turn for a higher tier names.
fn add_services(turn: &StoredTurn, services: &mut Vec<String>) {
    let named = turn.escalation.as_ref().map(|it| &it["services"]);
    for service in named.and_then(|list| list.as_array()).into_iter().flatten() {
        if let Some(service) = service.as_str()
            && !services.iter().any(|known| known == service)
        {
            services.push(service.to_owned());
        }
    }
}
