//! Questions that the CLI asks during a run, the answers to them, and a list of all denied calls.

use std::collections::{BTreeMap, HashMap};

use rejoin_core::{Asked, Choice, EventBody, Given, QuestionItem, QuestionKind, QuestionOption};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::hook::Call;
use super::super::wire::{ControlRequest, Denial};
use super::text::shorten;
use crate::denial::denial;
use crate::stream::{Denied, Reply, Say};

/// Prefixes of the result of a call that asked after stdin was closed: a background sub-agent,
/// which 2.1.325 starts by itself. Such a denial is listed nowhere else.
const UNHEARD: &[&str] = &[
    "Tool permission request failed",
    "Tool permission stream closed",
];

/// Maximum size of a denied call's input.
const INPUT_BYTES: usize = 4096;

#[derive(Default)]
pub(super) struct Control {
    asked: Vec<Asked>,
    says: Vec<Say>,
    /// Questions so far, by the id of their call.
    wanted: BTreeMap<String, PendingCall>,
    denied: Vec<Denied>,
    inputs: HashMap<String, String>,
}

struct PendingCall {
    /// Id of the CLI's request. None while a hook holds the call and the CLI does not wait yet.
    request_id: Option<String>,
    asked: Asked,
    suggestions: Vec<Value>,
    /// True if an answer was sent, by a person or on their behalf.
    decided: bool,
}

/// A question of `AskUserQuestion`.
#[derive(Deserialize)]
struct Item {
    question: String,
    #[serde(default)]
    options: Vec<QuestionOption>,
    #[serde(default, rename = "multiSelect")]
    multi: bool,
}

impl Control {
    /// Stores the input of a call, because some denials contain only its id.
    pub(super) fn called(&mut self, id: &str, input: &Value) {
        self.inputs
            .insert(id.to_owned(), shorten(input.to_string(), INPUT_BYTES));
    }

    /// Registers a call that a hook holds before the CLI itself asks, or that was deferred.
    pub(super) fn held(&mut self, call: Call) {
        let (call_id, tool, input) = call.into_parts();
        if !self.wanted.contains_key(&call_id) {
            self.want(call_id, tool, input, None, vec![]);
        }
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
            self.says.push(Say {
                key: format!("error {request_id}"),
                line: reply(&response),
            });
            return vec![EventBody::notice(error)];
        };
        let suggestions = request.permission_suggestions.unwrap_or_default();
        let id = request.tool_use_id.filter(|id| !id.is_empty());
        if let Some(held) = id.as_ref().and_then(|id| self.wanted.get_mut(id))
            && held.request_id.is_none()
        {
            held.request_id = Some(request_id);
            held.suggestions = suggestions;
            return vec![];
        }
        // A second request about the same call is a question of its own.
        let id = id.filter(|id| !self.wanted.contains_key(id));
        let call_id = id.unwrap_or_else(|| request_id.clone());
        self.want(call_id, tool, request.input, Some(request_id), suggestions);
        vec![]
    }

    fn want(
        &mut self,
        call_id: String,
        tool: String,
        input: Value,
        request_id: Option<String>,
        suggestions: Vec<Value>,
    ) {
        let questions = questions(&tool, &input);
        let asked = Asked {
            call_id: call_id.clone(),
            kind: if questions.is_empty() {
                QuestionKind::Approval
            } else {
                QuestionKind::Question
            },
            tool,
            input,
            questions,
        };
        self.asked.push(asked.clone());
        let wanted = PendingCall {
            request_id,
            asked,
            suggestions,
            decided: false,
        };
        self.wanted.insert(call_id, wanted);
    }

    pub(super) fn reply(&mut self, call_id: &str, given: Option<&Given>) -> Option<Reply> {
        let wanted = self.wanted.get_mut(call_id)?;
        let request_id = wanted.request_id.as_ref()?;
        let message = denial(wanted.asked.kind, given);
        let response = match (&message, given) {
            (Some(message), _) => json!({"behavior": "deny", "message": message}),
            (None, Some(given)) => allowed(wanted, given),
            (None, None) => return None,
        };
        wanted.decided = true;
        let line = reply(&json!({
            "subtype": "success", "request_id": request_id, "response": response,
        }));
        if message.is_some() {
            let (tool, input) = (wanted.asked.tool.clone(), wanted.asked.input.clone());
            self.note(&tool, call_id, &input);
        }
        Some(Reply { line, message })
    }

    pub(super) fn take_asked(&mut self) -> Vec<Asked> {
        std::mem::take(&mut self.asked)
    }

    pub(super) fn take_says(&mut self) -> Vec<Say> {
        std::mem::take(&mut self.says)
    }

    /// Records a call that the CLI reports as denied. The result lists it again, together with the
    /// calls that rejoin denied. Returns an event only for a new one.
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

    pub(super) fn denied(&self) -> Vec<Denied> {
        self.denied.clone()
    }

    /// True if a call still waits for a person.
    pub(super) fn waits(&self, id: &str) -> bool {
        self.is_undecided(id) && !self.is_denied(id)
    }

    /// True if the CLI itself denied a call for which a person had been asked. It may do so when it
    /// is interrupted.
    pub(super) fn gave_up(&self, id: &str) -> bool {
        self.is_undecided(id) && self.is_denied(id)
    }

    fn is_undecided(&self, id: &str) -> bool {
        self.wanted.get(id).is_some_and(|wanted| !wanted.decided)
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

fn questions(tool: &str, input: &Value) -> Vec<QuestionItem> {
    if tool != "AskUserQuestion" {
        return vec![];
    }
    let items = Vec::<Item>::deserialize(&input["questions"]).unwrap_or_default();
    let items = items.into_iter().enumerate();
    items
        .map(|(at, item)| QuestionItem {
            id: (at + 1).to_string(),
            text: item.question,
            options: item.options,
            multi: item.multi,
        })
        .collect()
}

fn allowed(wanted: &PendingCall, given: &Given) -> Value {
    let Asked {
        kind, tool, input, ..
    } = &wanted.asked;
    match kind {
        QuestionKind::Question => {
            json!({"behavior": "allow", "updatedInput": with_answers(&wanted.asked, given)})
        }
        QuestionKind::Approval if given.decision == Choice::Always => json!({
            "behavior": "allow",
            "updatedInput": input,
            "updatedPermissions": lasting(tool, input, &wanted.suggestions),
        }),
        QuestionKind::Approval => json!({"behavior": "allow", "updatedInput": input}),
    }
}

/// Adds the answers to the input. The CLI identifies a question by its text, and expects several
/// choices as one text.
fn with_answers(asked: &Asked, given: &Given) -> Value {
    let mut input = asked.input.clone();
    let answers: serde_json::Map<String, Value> = asked
        .questions
        .iter()
        .filter_map(|item| Some((item.text.clone(), given.answers.get(&item.id)?.join(", "))))
        .map(|(question, answer)| (question, Value::String(answer)))
        .collect();
    if input.is_object() {
        input["answers"] = Value::Object(answers);
    }
    input
}

/// Returns the permission rules for the answer "always": the rules that the CLI itself suggests,
/// limited to this process. Never another mode or more folders. Without a suggestion: this exact
/// command, or this tool.
fn lasting(tool: &str, input: &Value, suggestions: &[Value]) -> Vec<Value> {
    let rules = |one: &&Value| one["type"] == "addRules" && one["behavior"] == "allow";
    let mut lasting: Vec<Value> = suggestions.iter().filter(rules).cloned().collect();
    if lasting.is_empty() {
        let rule = match input["command"].as_str() {
            Some(command) => json!({"toolName": tool, "ruleContent": command}),
            None => json!({"toolName": tool}),
        };
        lasting.push(json!({"type": "addRules", "rules": [rule], "behavior": "allow"}));
    }
    for one in &mut lasting {
        one["destination"] = json!("session");
    }
    lasting
}

fn reply(response: &Value) -> String {
    format!(
        "{}\n",
        json!({"type": "control_response", "response": response})
    )
}
