//! Questions that the CLI asks during a run, and the answers to them.

use std::collections::BTreeMap;

use rejoin_core::{Asked, Given, QuestionKind};
use serde_json::{Value, json};

use super::wire::{PermissionRequest, refusal, response};
use crate::denial::denial;
use crate::stream::Reply;

#[derive(Default)]
pub(super) struct Approvals {
    asked: Vec<Asked>,
    /// Questions so far, by the id of their call: the id of the request, and the option that allows
    /// it once.
    wanted: BTreeMap<String, (Value, Option<String>)>,
}

impl Approvals {
    /// Registers a question, and returns it with the id under which it is stored.
    pub(super) fn ask(&mut self, id: Value, asking: &PermissionRequest, folder: &str) -> Asked {
        let call = &asking.call;
        // A second request about the same call is a question of its own.
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

    /// Returns the answer. "Always" is sent as "allow once" too: for a file change the CLI would
    /// take it as permission to change any file, and rejoin does not ask a person about an
    /// identical call again.
    pub(super) fn reply(&self, call_id: &str, given: Option<&Given>) -> Option<Reply> {
        let (id, once) = self.wanted.get(call_id)?;
        let message = denial(QuestionKind::Approval, given);
        let line = match (&message, once) {
            (None, Some(once)) => {
                let outcome = json!({"outcome": "selected", "optionId": once});
                response(id, &json!({ "outcome": outcome }))
            }
            // The CLI's own "cancel" carries no message and leaves the call out of the session. An
            // error is passed to the model, and recorded, as text (0.61.0).
            (Some(message), _) => refusal(id, &json!(message)),
            (None, None) => refusal(id, &json!("it cannot be allowed once")),
        };
        Some(Reply { line, message })
    }
}
