//! Questions that an agent asks a person during a turn, and the answers to them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::QuestionId;
use crate::reason::words;

/// Maximum length of an answer, in bytes.
const LONGEST: usize = 100_000;
/// Maximum length of a call's input in a sentence, in characters.
const SUBJECT: usize = 200;

/// May it do something, or does it want to know something?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum QuestionKind {
    Approval,
    Question,
}

words!(QuestionKind {
    Approval => "approval",
    Question => "question",
});

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum QuestionState {
    Pending,
    Answered,
    /// The process that asked is gone; what one says now is a new message.
    Gone,
}

words!(QuestionState {
    Pending => "pending",
    Answered => "answered",
    Gone => "gone",
});

/// The decision of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum Choice {
    Allow,
    /// Also the next time, as long as this process of the agent lives.
    Always,
    Deny,
}

words!(Choice {
    Allow => "allow",
    Always => "always",
    Deny => "deny",
});

/// A question of an agent, as parsed by its adapter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// Id chosen by the agent, unique within its run.
    pub call_id: String,
    pub kind: QuestionKind,
    pub tool: String,
    pub input: Value,
    /// Empty for an approval.
    pub questions: Vec<QuestionItem>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QuestionItem {
    pub id: String,
    pub text: String,
    #[serde(default)]
    pub options: Vec<QuestionOption>,
    /// Several options may be chosen.
    #[serde(default)]
    pub multi: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QuestionOption {
    pub label: String,
    #[serde(default)]
    pub description: String,
}

/// An answer to a question, not checked yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AnswerRequest {
    /// The question; none: the only pending one.
    pub question_id: Option<QuestionId>,
    pub decision: Option<Choice>,
    pub message: Option<String>,
    /// By the ids of the items; labels, or other words.
    pub answers: Option<BTreeMap<String, Vec<String>>>,
    /// The name of the person who answers.
    #[serde(skip)]
    pub by: String,
    /// Idempotency key: a repeated key is the same answer.
    #[serde(skip)]
    pub client_key: Option<String>,
}

/// A checked answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Given {
    pub decision: Choice,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub answers: BTreeMap<String, Vec<String>>,
}

/// Reason for rejecting an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoAnswer(pub String);

impl Asked {
    /// Checks an answer. Returns it in normal form, or the reason for rejecting it.
    pub fn check(&self, answer: &AnswerRequest) -> Result<Given, NoAnswer> {
        let message = answer.message.clone().filter(|m| !m.trim().is_empty());
        let answers = answer.answers.clone().unwrap_or_default();
        let said = answers.values().flatten().chain(&message);
        if said.map(String::len).sum::<usize>() > LONGEST {
            return Err(NoAnswer(format!(
                "an answer has at most {LONGEST} bytes; send the rest as a message"
            )));
        }
        let given = |decision, answers| Given {
            decision,
            message: message.clone(),
            answers,
        };
        match (self.kind, answer.decision) {
            (QuestionKind::Approval, Some(choice)) if answers.is_empty() => {
                Ok(given(choice, BTreeMap::new()))
            }
            (QuestionKind::Approval, _) => Err(NoAnswer(
                "it asks for permission: the answer is allow, always or deny".into(),
            )),
            (QuestionKind::Question, Some(Choice::Deny)) => {
                Ok(given(Choice::Deny, BTreeMap::new()))
            }
            (QuestionKind::Question, Some(Choice::Always)) => Err(NoAnswer(
                "`always` is for permissions; this is a question".into(),
            )),
            (QuestionKind::Question, Some(Choice::Allow) | None) => {
                self.complete(&answers)?;
                Ok(given(Choice::Allow, answers))
            }
        }
    }

    /// Checks that every item has an answer, and that every answer belongs to an item.
    fn complete(&self, answers: &BTreeMap<String, Vec<String>>) -> Result<(), NoAnswer> {
        let ids = || {
            let ids: Vec<_> = self.questions.iter().map(|q| q.id.as_str()).collect();
            ids.join(", ")
        };
        let known = |id: &String| self.questions.iter().any(|q| q.id == *id);
        if let Some(unknown) = answers.keys().find(|id| !known(id)) {
            let ids = ids();
            return Err(NoAnswer(format!(
                "there is no question `{unknown}`; they are: {ids}"
            )));
        }
        for item in &self.questions {
            let said = answers.get(&item.id).map_or(&[][..], Vec::as_slice);
            if said.is_empty() || said.iter().any(|s| s.trim().is_empty()) {
                return Err(NoAnswer(format!("`{}` has no answer", item.text)));
            }
            if said.len() > 1 && !item.multi {
                return Err(NoAnswer(format!("`{}` takes one answer only", item.text)));
            }
        }
        Ok(())
    }

    /// Formats question and answer as a message to an agent that does not remember asking.
    pub fn in_words(&self, given: &Given) -> String {
        let told = |decision: &str| match &given.message {
            Some(message) => format!("{decision}: {message}"),
            None => format!("{decision}."),
        };
        match (self.kind, given.decision) {
            (QuestionKind::Question, Choice::Deny) => {
                let asked: Vec<_> = self.questions.iter().map(|q| q.text.as_str()).collect();
                let no = told("I do not want to answer that");
                format!("You had asked: {}\n{no}", asked.join(" "))
            }
            (QuestionKind::Question, Choice::Allow | Choice::Always) => {
                let answer = |item: &QuestionItem| {
                    let said = given.answers.get(&item.id).map_or(&[][..], Vec::as_slice);
                    format!(
                        "You had asked: {}\nMy answer: {}",
                        item.text,
                        said.join(", ")
                    )
                };
                let answers: Vec<_> = self.questions.iter().map(answer).collect();
                answers.join("\n\n")
            }
            (QuestionKind::Approval, choice) => {
                let decision = match choice {
                    Choice::Allow | Choice::Always => "Yes, do it",
                    Choice::Deny => "No, do not do it",
                };
                let subject = self.subject();
                let tool = &self.tool;
                format!(
                    "You had asked whether you may use {tool}: {subject}\n{}",
                    told(decision)
                )
            }
        }
    }

    /// Returns the subject of the call in one line.
    pub fn subject(&self) -> String {
        let known = [
            "command",
            "file_path",
            "filePath",
            "path",
            "url",
            "query",
            "plan",
        ];
        let text = known.iter().find_map(|key| self.input[*key].as_str());
        let text = text.map_or_else(|| self.input.to_string(), str::to_owned);
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let short: String = line.chars().take(SUBJECT).collect();
        if short.len() < line.len() {
            format!("{short}…")
        } else {
            short
        }
    }
}

impl Given {
    /// Formats the answer in a few words, for a caller whose answer came too late.
    pub fn told(&self) -> String {
        let said: Vec<_> = self
            .answers
            .values()
            .flatten()
            .map(String::as_str)
            .collect();
        if said.is_empty() {
            self.decision.to_string()
        } else {
            said.join(", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn item(id: &str, text: &str, multi: bool) -> QuestionItem {
        let option = |label: &str| QuestionOption {
            label: label.into(),
            description: String::new(),
        };
        QuestionItem {
            id: id.into(),
            text: text.into(),
            options: ["Blue", "Red"].map(option).to_vec(),
            multi,
        }
    }

    fn asked(kind: QuestionKind, questions: Vec<QuestionItem>) -> Asked {
        Asked {
            call_id: "c".into(),
            kind,
            tool: "Bash".into(),
            input: json!({"command": "touch\n x"}),
            questions,
        }
    }

    fn answer(json: Value) -> AnswerRequest {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn an_approval_wants_a_decision() {
        let asked = asked(QuestionKind::Approval, vec![]);
        for (word, choice) in [
            ("allow", Choice::Allow),
            ("always", Choice::Always),
            ("deny", Choice::Deny),
        ] {
            let given = asked.check(&answer(json!({"decision": word, "message": " "})));
            let given = given.unwrap();
            assert_eq!((given.decision, given.message), (choice, None));
        }
        for bad in [
            json!({}),
            json!({"message": "x"}),
            json!({"answers": {"1": ["x"]}}),
            json!({"decision": "allow", "answers": {"1": ["x"]}}),
        ] {
            assert!(asked.check(&answer(bad)).is_err());
        }
    }

    #[test]
    fn a_question_wants_an_answer_to_each_item() {
        let two = vec![item("1", "Which colour?", false), item("2", "Sizes?", true)];
        let asked = asked(QuestionKind::Question, two);
        let good = json!({"answers": {"1": ["green as grass"], "2": ["Blue", "Red"]}});
        let given = asked.check(&answer(good)).unwrap();
        assert_eq!(given.told(), "green as grass, Blue, Red");
        assert!(
            asked
                .in_words(&given)
                .contains("Sizes?\nMy answer: Blue, Red")
        );
        let denied = asked.check(&answer(json!({"decision": "deny"}))).unwrap();
        assert_eq!(denied.told(), "deny");
        for bad in [
            json!({}),
            json!({"decision": "allow"}),
            json!({"decision": "always", "answers": {"1": ["Blue"], "2": ["Red"]}}),
            json!({"answers": {"1": ["Blue"]}}),
            json!({"answers": {"1": ["Blue"], "2": [""]}}),
            json!({"answers": {"1": ["Blue", "Red"], "2": ["Red"]}}),
            json!({"answers": {"1": ["Blue"], "2": ["Red"], "3": ["x"]}}),
            json!({"answers": {"1": ["x".repeat(LONGEST)], "2": ["Red"]}}),
        ] {
            assert!(asked.check(&answer(bad)).is_err());
        }
    }

    #[test]
    fn what_is_said_late_names_what_was_asked() {
        let asked = asked(QuestionKind::Approval, vec![]);
        let given = asked.check(&answer(json!({"decision": "deny", "message": "not now"})));
        assert_eq!(
            asked.in_words(&given.unwrap()),
            "You had asked whether you may use Bash: touch x\nNo, do not do it: not now"
        );
    }
}
