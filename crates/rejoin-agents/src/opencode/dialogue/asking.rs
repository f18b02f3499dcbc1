//! Questions and permission requests of the CLI, and the answers to them.

use std::collections::BTreeMap;

use rejoin_core::{Asked, Choice, EventBody, Given, QuestionItem, QuestionKind, QuestionOption};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::serve::{AnswerTo, ServeAnswer, line};
use super::super::tool::{EDITORS, ToolPart};
use crate::denial::denial;
use crate::stream::{Denied, Reply};

/// Name of the tool that asks questions.
const QUESTION: &str = "question";

#[derive(Default)]
pub(super) struct PermissionRequest {
    asked: Vec<Asked>,
    /// All requests so far, by id.
    known: BTreeMap<String, Asked>,
    /// Calls that wait for a person, by the id of the request.
    waiting: BTreeMap<String, String>,
    /// Questions that were not answered. (A denied call appears in the stream.)
    unanswered: Vec<Denied>,
}

#[derive(Deserialize)]
struct Item {
    question: String,
    #[serde(default)]
    options: Vec<QuestionOption>,
    #[serde(default)]
    multiple: bool,
}

impl PermissionRequest {
    /// Registers a request for permission. `call` is the tool call that needs it.
    pub(super) fn permission(
        &mut self,
        wanted: &Value,
        call: Option<&ToolPart>,
    ) -> Option<Vec<EventBody>> {
        let id = wanted["id"].as_str()?;
        let permission = wanted["permission"].as_str()?;
        let its_own = |call: &&ToolPart| {
            let edits = permission == "edit" && EDITORS.contains(&call.name());
            edits || permission == call.name()
        };
        let (tool, input) = match call {
            Some(call) if its_own(&call) => (call.name(), call.input().clone()),
            // The request is about another aspect of a call: another folder, or repetition of the
            // same call.
            Some(call) => (permission, about(call, wanted)),
            None => (permission, wanted["metadata"].clone()),
        };
        if let Some(call) = call.filter(|_| !self.known.contains_key(id)) {
            self.waiting.insert(id.to_owned(), call.id().to_owned());
        }
        self.put(Asked {
            call_id: id.to_owned(),
            kind: QuestionKind::Approval,
            tool: tool.to_owned(),
            input,
            questions: vec![],
        });
        Some(vec![])
    }

    pub(super) fn question(&mut self, wanted: &Value) -> Option<Vec<EventBody>> {
        let id = wanted["id"].as_str()?;
        let items = Vec::<Item>::deserialize(&wanted["questions"]).ok()?;
        let items = items.into_iter().enumerate();
        let questions = items.map(|(at, item)| QuestionItem {
            id: (at + 1).to_string(),
            text: item.question,
            options: item.options,
            multi: item.multiple,
        });
        self.put(Asked {
            call_id: id.to_owned(),
            kind: QuestionKind::Question,
            tool: QUESTION.to_owned(),
            input: json!({"questions": wanted["questions"]}),
            questions: questions.collect(),
        });
        Some(vec![])
    }

    fn put(&mut self, asked: Asked) {
        if self.known.contains_key(&asked.call_id) {
            return;
        }
        self.known.insert(asked.call_id.clone(), asked.clone());
        self.asked.push(asked);
    }

    pub(super) fn take(&mut self) -> Vec<Asked> {
        std::mem::take(&mut self.asked)
    }

    pub(super) fn reply(&mut self, id: &str, given: Option<&Given>) -> Option<Reply> {
        let asked = self.known.get(id)?;
        self.waiting.remove(id);
        let message = denial(asked.kind, given);
        let (to, body) = match (asked.kind, &message, given) {
            // With a reason the model continues. Otherwise the turn would end here.
            (QuestionKind::Approval, Some(message), _) => (
                AnswerTo::Permission,
                json!({"reply": "reject", "message": message}),
            ),
            (QuestionKind::Approval, None, given) => {
                let always = given.is_some_and(|given| given.decision == Choice::Always);
                let reply = if always { "always" } else { "once" };
                (AnswerTo::Permission, json!({"reply": reply}))
            }
            (QuestionKind::Question, Some(message), _) => {
                let each = asked.questions.iter().map(|_| json!([message]));
                let answers: Vec<Value> = each.collect();
                (AnswerTo::Question, json!({"answers": answers}))
            }
            (QuestionKind::Question, None, given) => {
                let answers = answers(asked, given?);
                (AnswerTo::Question, json!({"answers": answers}))
            }
        };
        let known = |denied: &Denied| denied.id == id;
        if message.is_some()
            && asked.kind == QuestionKind::Question
            && !self.unanswered.iter().any(known)
        {
            self.unanswered.push(Denied {
                tool: asked.tool.clone(),
                id: id.to_owned(),
                input: asked.input.to_string(),
            });
        }
        let answer = ServeAnswer {
            to,
            id: id.to_owned(),
            body,
        };
        Some(Reply {
            line: line(&answer),
            message,
        })
    }

    /// True if a call still waits for a person.
    pub(super) fn waits(&self, call: &str) -> bool {
        self.waiting.values().any(|waiting| waiting == call)
    }

    pub(super) fn unanswered(self) -> Vec<Denied> {
        self.unanswered
    }
}

fn about(call: &ToolPart, wanted: &Value) -> Value {
    let mut input = call.input().clone();
    if !input.is_object() {
        input = json!({});
    }
    input["tool"] = json!(call.name());
    input["patterns"] = wanted["patterns"].clone();
    input
}

/// Returns the answers by position. The CLI also accepts texts that are not among the options.
fn answers(asked: &Asked, given: &Given) -> Vec<Vec<String>> {
    let of = |item: &QuestionItem| given.answers.get(&item.id).cloned().unwrap_or_default();
    asked.questions.iter().map(of).collect()
}
