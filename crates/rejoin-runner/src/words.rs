//! Reads what a plan asks for and puts it into words; a turn and its prediction do the same.

use std::collections::BTreeMap;

use rejoin_core::{
    AgentName, Budget, Composed, Context, ConversationId, Material, Message, Pin, Record, TurnPlan,
    compose, known_window,
};
use rejoin_hub::{HubLink, Outlook};

use crate::config::{ModelConfig, model_config};
use crate::error::{Error, Result};

/// A plan in words.
pub struct Words {
    pub composed: Composed,
    /// Other agents, on whose answers a resumed session is caught up.
    pub caught_up_by: Option<String>,
}

/// The model that a turn asks for, and what the user says of models.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    pub model: Option<&'a str>,
    pub models: &'a BTreeMap<String, ModelConfig>,
}

impl Target<'_> {
    /// Returns the context window of the model: as configured, as its session reported it, as
    /// generally known.
    pub(crate) fn window(&self, pin: Option<&Pin>) -> Option<u64> {
        let wrote = pin.and_then(|pin| pin.model.as_deref());
        let model = self.model.or(wrote);
        let configured = model.and_then(|model| model_config(self.models, model)?.window);
        let same = self.model.is_none() || self.model == wrote;
        let reported = pin.filter(|_| same).and_then(|pin| pin.context);
        configured
            .or(reported.map(|context| context.window))
            .or_else(|| known_window(model?))
    }
}

/// The words of a turn whose message is `new`. Changes nothing.
pub async fn in_words(
    link: &impl HubLink,
    c: ConversationId,
    agent: &AgentName,
    outlook: &Outlook,
    plan: &TurnPlan,
    new: &Message,
    target: Target<'_>,
) -> Result<Words> {
    let pin = outlook.best().and_then(|c| c.stored.pin.as_ref());
    let window = target.window(pin);
    let mut caught_up_by = None;
    let record;
    let material = match plan {
        TurnPlan::Start { .. } => Material::Nothing,
        TurnPlan::Resume { .. } => {
            let context = pin.and_then(|pin| pin.context).map(|context| Context {
                window: window.unwrap_or(context.window),
                ..context
            });
            let budget = Budget::for_rest(context, &new.text);
            record = link.rest(c, outlook, plan, budget).await?;
            caught_up_by = others(&record, agent);
            Material::Rest(&record)
        }
        TurnPlan::Reseed { .. } => {
            let mut budget = Budget::for_window(window, &new.text);
            if let Some(bytes) = link.overflowed(c, agent, target.model).await? {
                budget = budget.after_overflow(bytes);
            }
            record = link.record(c, outlook, budget).await?;
            Material::Record(&record)
        }
    };
    let composed = compose(plan, material, new).map_err(|e| Error::Internal(e.to_string()))?;
    Ok(Words {
        composed,
        caught_up_by,
    })
}

/// Other agents whose answers are among these.
fn others(rest: &Record, agent: &AgentName) -> Option<String> {
    let names: Vec<&str> = rest.agents().filter(|a| *a != agent.as_str()).collect();
    (!names.is_empty()).then(|| names.join(" and "))
}
