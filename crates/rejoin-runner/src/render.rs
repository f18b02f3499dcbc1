//! Loads the messages that a plan needs and composes the prompt; turns and predictions both use it.

use std::collections::BTreeMap;

use rejoin_core::{
    AgentName, Budget, Composed, Context, ConversationId, Material, Message, Pin, TranscriptText,
    TurnPlan, compose, known_window,
};
use rejoin_hub::{Hub, StoreFacts};

use crate::config::{ModelConfig, model_config};
use crate::error::{Error, Result};

/// Prompt for a plan.
pub(crate) struct Rendered {
    pub composed: Composed,
    /// Names of other agents whose answers are sent to a resumed session.
    pub caught_up_by: Option<String>,
}

/// Requested model of a turn, and the user's settings for models.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub model: Option<&'a str>,
    pub models: &'a BTreeMap<String, ModelConfig>,
}

impl Target<'_> {
    /// Returns the context window of the model: as configured, as its session reported it, or as
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

/// Composes the prompt of a turn whose message is `new`. Changes nothing.
pub(crate) async fn render_prompt(
    hub: &Hub,
    c: ConversationId,
    agent: &AgentName,
    outlook: &StoreFacts,
    plan: &TurnPlan,
    new: &Message,
    target: Target<'_>,
) -> Result<Rendered> {
    let pin = outlook.best().and_then(|c| c.stored.pin.as_ref());
    let window = target.window(pin);
    let mut caught_up_by = None;
    let transcript;
    let material = match plan {
        TurnPlan::Start { .. } => Material::Nothing,
        TurnPlan::Resume { .. } => {
            let context = pin.and_then(|pin| pin.context).map(|context| Context {
                window: window.unwrap_or(context.window),
                ..context
            });
            let budget = Budget::for_catch_up(context, &new.text);
            transcript = hub.catch_up(c, outlook, plan, budget).await?;
            caught_up_by = others(&transcript, agent);
            Material::CatchUp(&transcript)
        }
        TurnPlan::Reseed { .. } => {
            let mut budget = Budget::for_window(window, &new.text);
            if let Some(bytes) = hub.overflowed(c, agent, target.model).await? {
                budget = budget.after_overflow(bytes);
            }
            transcript = hub.transcript(c, outlook, budget).await?;
            Material::Transcript(&transcript)
        }
    };
    let composed = compose(plan, material, new).map_err(|e| Error::Internal(e.to_string()))?;
    let composed = match plan {
        TurnPlan::Resume { .. } if !hub.asked_since_last_answer(c, agent).await? => {
            composed.without_question_notice()
        }
        TurnPlan::Start { .. } | TurnPlan::Resume { .. } | TurnPlan::Reseed { .. } => composed,
    };
    Ok(Rendered {
        composed,
        caught_up_by,
    })
}

/// Returns the names of other agents whose answers are in the transcript.
fn others(transcript: &TranscriptText, agent: &AgentName) -> Option<String> {
    let names: Vec<&str> = transcript
        .agents()
        .filter(|a| *a != agent.as_str())
        .collect();
    (!names.is_empty()).then(|| names.join(" and "))
}
