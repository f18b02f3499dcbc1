//! Reads what a plan asks for and puts it into words; a turn and its prediction do the same.

use rejoin_core::{
    AgentName, Budget, Composed, ConversationId, Material, Message, Role, TurnPlan, compose,
};
use rejoin_hub::{HubLink, Outlook};

use crate::error::{Error, Result};

/// A plan in words.
pub struct Words {
    pub composed: Composed,
    /// What a resumed session is caught up on.
    pub rest: Vec<Message>,
}

/// The words of a turn whose message is `new`. Changes nothing.
pub async fn in_words(
    link: &impl HubLink,
    c: ConversationId,
    outlook: &Outlook,
    plan: &TurnPlan,
    new: &Message,
) -> Result<Words> {
    let mut rest = vec![];
    let record;
    let material = match plan {
        TurnPlan::Start { .. } => Material::Nothing,
        TurnPlan::Resume { .. } => {
            rest = link.rest(c, outlook, plan).await?;
            Material::Rest(&rest)
        }
        TurnPlan::Reseed { .. } => {
            let window = outlook
                .best()
                .and_then(|c| c.stored.pin.as_ref()?.context)
                .map(|c| c.window);
            let budget = Budget::for_window(window, &new.text);
            record = link.record(c, outlook, budget).await?;
            Material::Record(&record)
        }
    };
    let composed = compose(plan, material, new).map_err(|e| Error::Internal(e.to_string()))?;
    Ok(Words { composed, rest })
}

/// Other agents whose answers are among these.
pub(crate) fn others(rest: &[Message], agent: &AgentName) -> Option<String> {
    let mut names: Vec<String> = rest
        .iter()
        .filter(|m| m.role == Role::Assistant)
        .filter_map(|m| m.agent.as_ref())
        .filter(|a| *a != agent)
        .map(ToString::to_string)
        .collect();
    names.sort();
    names.dedup();
    (!names.is_empty()).then(|| names.join(" and "))
}
