//! Predicts the next turn: gathers facts and decides as a turn would, and runs nothing.

use rejoin_core::{AgentName, Blocker, Message, MessageState, Micros, Role, Sent, TurnPlan};
use rejoin_hub::{NextView, TurnRequest};
use rejoin_store::Conversation;
use serde_json::Value;

use crate::error::Result;
use crate::inspect::{Inspection, inspect};
use crate::render::{Target, render_prompt};
use crate::turn::Runner;

/// Prediction of a turn.
pub struct Prediction {
    pub plan: Result<TurnPlan, Blocker>,
    pub checks: Value,
    /// Amount of text to send; None if nothing would be sent.
    pub sent: Option<Sent>,
    /// Estimated cost; None if there is nothing to estimate it from.
    pub cost: Option<Micros>,
    /// Estimated cost in a new session, if the plan continues one.
    pub fresh: Option<Micros>,
    pub inspection: Inspection,
    /// Note about external messages that are taken in first.
    pub note: Option<String>,
}

impl Prediction {
    /// Returns the view for users and scripts. `handle` names the conversation.
    pub fn view(&self, handle: String, agent: &AgentName, request: &TurnRequest) -> NextView {
        let (verdict, reason) = match &self.plan {
            Ok(plan) => (Some(plan.verdict()), plan.reason().map(|r| r.to_string())),
            Err(Blocker::InUse { .. }) => (None, Some("in_use".to_owned())),
            Err(Blocker::WouldReseed { why }) => (None, Some(why.to_string())),
            Err(Blocker::Permissions) => (None, Some("envelope".to_owned())),
        };
        NextView {
            verdict: verdict.map(|v| v.to_string()),
            reason,
            checks: self.checks.clone(),
            sent: self.sent,
            cost_estimate_usd: self.cost.map(Micros::dollars),
            fresh_estimate_usd: self.fresh.map(Micros::dollars),
            handle,
            agent: agent.to_string(),
            version: Some(self.inspection.binary.facts.runtime.to_string()),
            permissions: request.permissions.clone(),
            cannot: match &self.plan {
                Err(Blocker::Permissions) => self.inspection.cannot.clone(),
                Ok(_) | Err(Blocker::InUse { .. } | Blocker::WouldReseed { .. }) => None,
            },
            note: self.note.clone(),
        }
    }
}

impl Runner {
    /// Predicts the next turn. Takes in external messages first, as a turn would.
    pub async fn predict(
        &self,
        conversation: &Conversation,
        agent: &AgentName,
        request: &TurnRequest,
    ) -> Result<Prediction> {
        let (hub, c) = (&self.hub, conversation.id);
        let note = self.take_in(c, None).await?.note();
        let outlook = hub.outlook(c, conversation.scope, agent, None).await?;
        let mut inspection = inspect(hub, &self.config, agent.as_str(), request, outlook).await?;
        let vault = hub.vault.as_ref();
        let decided = inspection.decide(agent, request);
        let decided = inspection
            .obtain_snapshot(decided, agent, request, vault, None)
            .await?;
        let live = self.would_be_live(c, &inspection, request).await;
        let plan = if live {
            decided.plan.map(TurnPlan::live)
        } else {
            decided.plan
        };
        let (mut sent, mut cost, mut fresh) = (None, None, None);
        if let Ok(plan) = &plan {
            // Composed as for a turn, around an empty message.
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
            let rendered =
                render_prompt(hub, c, agent, &inspection.outlook, plan, &empty, target).await?;
            let travels = rendered.composed.sent;
            cost = hub.estimate_next(c, agent, model, plan, travels).await?;
            sent = Some(travels);
            if let TurnPlan::Resume { .. } = plan {
                fresh = hub.estimate_next_fresh(c, agent, model).await?;
            }
        }
        Ok(Prediction {
            plan,
            checks: decided.checks.into(),
            sent,
            cost,
            fresh,
            inspection,
            note,
        })
    }
}
