//! Reads what a plan asks for and puts it into words; a turn and its prediction do the same.

use rejoin_core::{
    AgentName, Budget, Composed, ConversationId, Material, Message, Record, TurnPlan, compose,
};
use rejoin_hub::{HubLink, Outlook};

use crate::error::{Error, Result};

/// A plan in words.
pub struct Words {
    pub composed: Composed,
    /// Other agents, on whose answers a resumed session is caught up.
    pub caught_up_by: Option<String>,
}

/// The words of a turn whose message is `new`. Changes nothing.
pub async fn in_words(
    link: &impl HubLink,
    c: ConversationId,
    agent: &AgentName,
    outlook: &Outlook,
    plan: &TurnPlan,
    new: &Message,
) -> Result<Words> {
    let context = || outlook.best().and_then(|c| c.stored.pin.as_ref()?.context);
    let mut caught_up_by = None;
    let record;
    let material = match plan {
        TurnPlan::Start { .. } => Material::Nothing,
        TurnPlan::Resume { .. } => {
            let budget = Budget::for_rest(context(), &new.text);
            record = link.rest(c, outlook, plan, budget).await?;
            caught_up_by = others(&record, agent);
            Material::Rest(&record)
        }
        TurnPlan::Reseed { .. } => {
            let budget = Budget::for_window(context().map(|c| c.window), &new.text);
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
