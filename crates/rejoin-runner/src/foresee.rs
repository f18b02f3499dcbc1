//! What a turn would do if one sent now: the same look and decision, and nothing is run.

use rejoin_core::{AgentName, Hold, Message, MessageState, Micros, Role, Sent, TurnPlan, decide};
use rejoin_hub::{NextView, TurnRequest};
use rejoin_store::Conversation;
use serde_json::{Value, json};

use crate::error::Result;
use crate::look::{Looked, look};
use crate::turn::Runner;
use crate::words::{Target, in_words};

/// A turn that is not run.
pub struct Foreseen {
    pub plan: Result<TurnPlan, Hold>,
    pub checks: Value,
    /// None if nothing would be sent.
    pub sent: Option<Sent>,
    /// None if nothing is known to estimate it from.
    pub cost: Option<Micros>,
    pub looked: Looked,
    /// What was said outside and is taken in first, in words.
    pub note: Option<String>,
}

impl Foreseen {
    /// As people and scripts are told of it. `handle`: of the conversation.
    pub fn view(&self, handle: String, agent: &AgentName, request: &TurnRequest) -> NextView {
        let (verdict, reason) = match &self.plan {
            Ok(plan) => (Some(plan.verdict()), plan.reason().map(|r| r.to_string())),
            Err(Hold::InUse { .. }) => (None, Some("in_use".to_owned())),
            Err(Hold::WouldReseed { why }) => (None, Some(why.to_string())),
            Err(Hold::Envelope) => (None, Some("envelope".to_owned())),
        };
        NextView {
            verdict: verdict.map(|v| v.to_string()),
            reason,
            checks: self.checks.clone(),
            sent: self.sent,
            cost_estimate_usd: self.cost.map(Micros::dollars),
            handle,
            agent: agent.to_string(),
            version: Some(self.looked.binary.facts.runtime.to_string()),
            envelope: request.envelope.clone(),
            cannot: match &self.plan {
                Err(Hold::Envelope) => self.looked.cannot.clone(),
                Ok(_) | Err(Hold::InUse { .. } | Hold::WouldReseed { .. }) => None,
            },
            note: self.note.clone(),
        }
    }
}

impl Runner {
    /// A turn would take in first what was said outside; so does the question what it would do.
    pub async fn foresee(
        &self,
        conversation: &Conversation,
        agent: &AgentName,
        request: &TurnRequest,
    ) -> Result<Foreseen> {
        let (hub, c) = (&self.hub, conversation.id);
        let note = self.take_in(c, None).await?.note();
        let outlook = hub.outlook(c, conversation.scope, agent, None).await?;
        let mut looked = look(hub, &self.config, agent.as_str(), request, outlook).await?;
        let vault = hub.vault.as_ref();
        looked.check_snapshot(agent, request, vault, None).await?;
        let live = self.would_be_live(c, &looked, request).await;
        let (plan, checks) = {
            let situation = looked.situation(agent, request);
            let decision = decide(&situation);
            let checks = decision.checks.iter().map(|c| {
                json!({"check": c.check.to_string(), "ok": c.ok, "evidence": c.evidence.to_string()})
            });
            let checks = checks.chain([looked.wall.check()]);
            let plan = decision.plan.clone();
            (
                if live { plan.map(TurnPlan::live) } else { plan },
                checks.collect(),
            )
        };
        let (mut sent, mut cost) = (None, None);
        if let Ok(plan) = &plan {
            // Put into words as a turn would, around an empty message.
            let empty = Message {
                id: hub.clock.message_id()?,
                seq: 0,
                role: Role::User,
                agent: None,
                text: String::new(),
                attachments: vec![],
                state: MessageState::Queued,
                trail: vec![],
            };
            let model = request.model.as_deref();
            let target = Target {
                model,
                models: &self.config.models,
            };
            let words = in_words(hub, c, agent, &looked.outlook, plan, &empty, target).await?;
            let travels = words.composed.sent;
            cost = hub.estimate_next(c, agent, model, plan, travels).await?;
            sent = Some(travels);
        }
        Ok(Foreseen {
            plan,
            checks,
            sent,
            cost,
            looked,
            note,
        })
    }
}
