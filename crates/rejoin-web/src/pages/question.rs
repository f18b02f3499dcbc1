//! Questions of agents as forms, and answers of forms.

use std::collections::BTreeMap;

use rejoin_core::{QuestionItem, QuestionKind, TurnId};
use rejoin_hub::{QuestionView, climb_facts};
use serde_json::{Value, json};

use super::form::Fields;
use super::html::{cut, plain};

/// Longest input of a call that is shown, in characters.
const INPUT: usize = 6_000;

/// Question as a form.
pub(super) struct QuestionForm {
    pub(super) turn: String,
    pub(super) id: String,
    pub(super) approval: bool,
    /// True if `always` is no answer: a climb, or a step of a workflow.
    pub(super) once: bool,
    pub(super) title: String,
    /// Command, file or input to approve.
    pub(super) subject: String,
    pub(super) items: Vec<QuestionItem>,
}

/// Builds the form of a question.
pub(super) fn form(turn: TurnId, question: &QuestionView) -> QuestionForm {
    let approval = question.kind == QuestionKind::Approval;
    let climb = question.climb();
    QuestionForm {
        once: climb.is_some() || question.about_step().is_some(),
        turn: turn.to_string(),
        id: question.id.to_string(),
        approval,
        title: match (approval, command(&question.input)) {
            (true, _) if climb.is_some() => climb_title(question),
            (true, _) if question.about_step().is_some() => "Go on?".into(),
            (true, Some(_)) => "Run this command?".into(),
            (true, None) => format!("Allow {}?", plain(&question.tool)),
            (false, _) if question.questions.len() == 1 => "A question".into(),
            (false, _) => format!("{} questions", question.questions.len()),
        },
        subject: if approval {
            subject(question)
        } else {
            String::new()
        },
        items: question.questions.iter().map(shown).collect(),
    }
}

fn shown(item: &QuestionItem) -> QuestionItem {
    let mut item = item.clone();
    item.text = plain(&item.text);
    for option in &mut item.options {
        option.description = plain(&option.description);
    }
    item
}

/// Returns one line that says what a question is about.
pub(super) fn title_of(question: &QuestionView) -> String {
    match question.kind {
        QuestionKind::Approval if question.climb().is_some() => climb_title(question),
        QuestionKind::Approval if question.about_step().is_some() => cut(&subject(question), 80),
        QuestionKind::Approval => {
            let subject = subject(question);
            let line = subject.lines().next().unwrap_or_default();
            format!("allow {} {}?", plain(&question.tool), cut(line, 80))
        }
        QuestionKind::Question => {
            let text = question.questions.first().map(|item| plain(&item.text));
            text.unwrap_or_else(|| "asks a question".into())
        }
    }
}

fn climb_title(question: &QuestionView) -> String {
    let to = question.climb().unwrap_or_default();
    format!("Climb to {}?", plain(to))
}

fn command(input: &Value) -> Option<String> {
    match &input["command"] {
        Value::String(command) => Some(command.clone()),
        Value::Array(words) => Some(
            words
                .iter()
                .filter_map(Value::as_str)
                .collect::<Vec<_>>()
                .join(" "),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Returns the call to approve: a command, or the whole input.
fn subject(question: &QuestionView) -> String {
    if question.climb().is_some() {
        return plain(&cut(&climb_facts(&question.input).join("\n"), INPUT));
    }
    if let Some(text) = question.about_step() {
        return plain(&cut(text, INPUT));
    }
    let text = command(&question.input)
        .unwrap_or_else(|| serde_json::to_string_pretty(&question.input).unwrap_or_default());
    plain(&cut(&text, INPUT))
}

/// Returns the body of an answer: a decision, or the chosen options with own words.
pub(super) fn answer(fields: &Fields) -> Value {
    let mut body = json!({"question_id": fields.get("question_id")});
    if let Some(decision) = fields.get("decision") {
        body["decision"] = json!(decision);
        if decision == "deny" {
            body["message"] = json!(fields.some("message"));
        }
        return body;
    }
    let mut answers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (id, label) in fields.under("answer.") {
        if !label.is_empty() {
            answers.entry(id).or_default().push(label);
        }
    }
    for (id, words) in fields.under("words.") {
        if !words.trim().is_empty() {
            answers.insert(id, vec![words.trim()]);
        }
    }
    body["answers"] = json!(answers);
    body
}
