//! What the CLI asks while it runs, and how it is answered.

use std::collections::BTreeMap;

use rejoin_core::{Asked, Given, QuestionKind};
use serde_json::{Value, json};

use super::wire::{Asking, refusal, response};
use crate::denial::denial;
use crate::stream::Reply;

#[derive(Default)]
pub(super) struct Asks {
    asked: Vec<Asked>,
    /// What was asked so far, by its call: the id of the request, and how to allow it once.
    wanted: BTreeMap<String, (Value, Option<String>)>,
}

impl Asks {
    /// Gives the name under which it is known.
    pub(super) fn ask(&mut self, id: Value, asking: &Asking, folder: &str) -> Asked {
        let call = &asking.call;
        // Asked twice about one call, the second is a question of its own.
        let call_id = if self.wanted.contains_key(&call.id) {
            format!("{} {id}", call.id)
        } else {
            call.id.clone()
        };
        let asked = Asked {
            call_id: call_id.clone(),
            kind: QuestionKind::Approval,
            tool: call.tool(),
            input: call.input(folder),
            questions: vec![],
        };
        let once = asking.options.iter().find(|o| o.kind == "allow_once");
        let once = once.map(|option| option.option_id.clone());
        self.wanted.insert(call_id, (id, once));
        self.asked.push(asked.clone());
        asked
    }

    pub(super) fn take(&mut self) -> Vec<Asked> {
        std::mem::take(&mut self.asked)
    }

    /// "Always" is allowed once too: for a change of a file the CLI would take it for leave to change
    /// any, and what is the very same is not put to a person again.
    pub(super) fn reply(&self, call_id: &str, given: Option<&Given>) -> Option<Reply> {
        let (id, once) = self.wanted.get(call_id)?;
        let message = denial(QuestionKind::Approval, given);
        let line = match (&message, once) {
            (None, Some(once)) => {
                let outcome = json!({"outcome": "selected", "optionId": once});
                response(id, &json!({ "outcome": outcome }))
            }
            // Its own "cancel" has no words and leaves the call out of the session; a failure is told
            // to the model, and is noted, as text (0.61.0).
            (Some(message), _) => refusal(id, &json!(message)),
            (None, None) => refusal(id, &json!("it cannot be allowed once")),
        };
        Some(Reply { line, message })
    }
}
