//! What the CLI asks while it runs. Nobody is there to answer, so everything is denied, in words
//! that let the model go on; and all that was not allowed is listed.

use std::collections::HashMap;

use rejoin_core::EventBody;
use serde_json::{Value, json};

use super::super::wire::{ControlRequest, Denial};
use super::words::shorten;
use crate::stream::{Answer, Denied};

const NOT_ALLOWED: &str = "This run has nobody who could allow this, so it is denied. Do not try to reach the same by other means; go on with what is allowed and say in your answer what could not be done.";
const NOT_ANSWERED: &str = "This run has nobody who could answer a question. Choose what seems most sensible, go on, and say in your answer what you assumed.";

/// How a call fails that asked after stdin was closed: a sub-agent in the background, which 2.1.325
/// starts unasked. Such a denial is listed nowhere else.
const UNHEARD: &[&str] = &[
    "Tool permission request failed",
    "Tool permission stream closed",
];

/// Of a denied call's input.
const INPUT_BYTES: usize = 4096;

#[derive(Default)]
pub(super) struct Control {
    answers: Vec<Answer>,
    denied: Vec<Denied>,
    inputs: HashMap<String, String>,
}

impl Control {
    /// Remembers what a call was about: some denials name only its id.
    pub(super) fn called(&mut self, id: &str, input: &Value) {
        self.inputs
            .insert(id.to_owned(), shorten(input.to_string(), INPUT_BYTES));
    }

    pub(super) fn asked(&mut self, asked: ControlRequest) -> Vec<EventBody> {
        let ControlRequest {
            request_id,
            request,
        } = asked;
        let Some(tool) = request
            .tool_name
            .filter(|_| request.subtype == "can_use_tool")
        else {
            let error = format!(
                "rejoin does not answer requests of the kind {}",
                request.subtype
            );
            let response = json!({"subtype": "error", "request_id": request_id, "error": error});
            self.answers.push(Answer {
                line: reply(&response),
                event: EventBody::notice(error),
            });
            return vec![];
        };
        let id = request.tool_use_id.unwrap_or_else(|| request_id.clone());
        let question = tool == "AskUserQuestion";
        let message = if question { NOT_ANSWERED } else { NOT_ALLOWED };
        let response = json!({
            "subtype": "success",
            "request_id": request_id,
            "response": {"behavior": "deny", "message": message},
        });
        self.answers.push(Answer {
            line: reply(&response),
            event: EventBody::Answered {
                id: id.clone(),
                decision: "deny".into(),
                message: Some(message.into()),
            },
        });
        self.note(&tool, &id, &request.input);
        vec![if question {
            EventBody::Question {
                id,
                questions: request.input["questions"].clone(),
            }
        } else {
            EventBody::Approval {
                id,
                tool,
                input: request.input,
            }
        }]
    }

    /// The CLI denied a call by itself; again in the result, and there also what we denied.
    pub(super) fn refused(&mut self, denial: &Denial) -> Option<EventBody> {
        let id = denial.tool_use_id.as_deref().unwrap_or_default();
        let new = self.note(&denial.tool_name, id, &denial.tool_input);
        let why = denial.message.as_deref().unwrap_or_default();
        let why = why.split(" IMPORTANT: ").next().unwrap_or_default().trim();
        new.then(|| match why {
            "" => EventBody::warning(format!("{} was not allowed.", denial.tool_name)),
            why => EventBody::warning(format!("{} was not allowed: {why}", denial.tool_name)),
        })
    }

    pub(super) fn unheard(&mut self, tool: &str, id: &str, said: &str) -> Option<EventBody> {
        let lost = UNHEARD.iter().any(|words| said.starts_with(words));
        let new = lost && self.note(tool, id, &Value::Null);
        new.then(|| {
            EventBody::warning(format!(
                "{tool} was not allowed: nobody was there to decide."
            ))
        })
    }

    pub(super) fn take(&mut self) -> Vec<Answer> {
        std::mem::take(&mut self.answers)
    }

    pub(super) fn denied(&self) -> Vec<Denied> {
        self.denied.clone()
    }

    pub(super) fn is_denied(&self, id: &str) -> bool {
        self.denied.iter().any(|known| known.id == id)
    }

    fn note(&mut self, tool: &str, id: &str, input: &Value) -> bool {
        if !id.is_empty() && self.is_denied(id) {
            return false;
        }
        let input = if input.is_null() {
            self.inputs.get(id).cloned().unwrap_or_default()
        } else {
            shorten(input.to_string(), INPUT_BYTES)
        };
        self.denied.push(Denied {
            tool: tool.to_owned(),
            id: id.to_owned(),
            input,
        });
        true
    }
}

fn reply(response: &Value) -> String {
    format!(
        "{}\n",
        json!({"type": "control_response", "response": response})
    )
}
