//! Requests of the server for approval, the answers to them, and a list of all denied calls.
//!
//! A denial cannot carry a message. The message follows as a note to the model, which the server
//! inserts behind the result of the call, in the same request (0.166.0).

use std::collections::{BTreeMap, HashMap};

use rejoin_core::{Asked, Choice, EventBody, Given, QuestionItem, QuestionKind};
use serde_json::{Value, json};

use super::wire::{ApprovalParams, Item};
use crate::denial::{NOT_ALLOWED, NOT_ANSWERED, UNWILLING};
use crate::stream::{Denied, Reply, Say};

/// Text that the model receives from the server.
const DENIED: &str = "rejected by user";

/// Maximum length of a denied call's input.
const INPUT_CHARS: usize = 4096;

#[derive(Default)]
pub(super) struct Approvals {
    asked: Vec<Asked>,
    says: Vec<Say>,
    /// Requests so far, by the id of their call.
    wanted: BTreeMap<String, PendingCall>,
    /// Changes of each patch, from an earlier notification.
    changes: HashMap<String, Value>,
    denied: Vec<Denied>,
    /// True if a person allowed similar calls without further questions.
    always: bool,
}

struct PendingCall {
    /// Id of the request.
    id: Value,
    thread: String,
    asked: Asked,
    /// True if an answer was sent, by a person or on their behalf.
    decided: bool,
}

impl Approvals {
    /// Stores the changes of a patch, because the request contains only its id.
    pub(super) fn told(&mut self, id: &str, changes: &Value) {
        self.changes.insert(id.to_owned(), changes.clone());
    }

    pub(super) fn request(
        &mut self,
        id: Value,
        method: &str,
        about: Option<ApprovalParams>,
    ) -> Vec<EventBody> {
        let asked = about.and_then(|about| {
            let thread = about.thread_id.clone();
            Some((thread, self.understood(method, about)?))
        });
        // The server must not wait for an answer that will never be sent.
        let Some((thread, mut asked)) = asked else {
            let error = format!("rejoin does not answer requests of the kind {method}");
            let line = json!({"id": id, "error": {"code": -32601, "message": error}});
            self.says.push(Say {
                key: format!("error {id}"),
                line: format!("{line}\n"),
            });
            return vec![EventBody::notice(error)];
        };
        // A second request about the same call is a question of its own.
        if asked.call_id.is_empty() || self.wanted.contains_key(&asked.call_id) {
            asked.call_id = format!("request {id}");
        }
        self.asked.push(asked.clone());
        let wanted = PendingCall {
            id,
            thread,
            asked,
            decided: false,
        };
        self.wanted.insert(wanted.asked.call_id.clone(), wanted);
        vec![]
    }

    fn understood(&self, method: &str, about: ApprovalParams) -> Option<Asked> {
        let (tool, input, questions) = match method {
            "item/commandExecution/requestApproval" => {
                let tool = match about.kind.as_deref() {
                    Some("writeStdin") => "write_stdin",
                    Some(_) | None => "exec_command",
                };
                let command = about.command.as_deref()?;
                let mut input = json!({"command": unwrapped(command).unwrap_or(command)});
                input["folder"] = json!(about.cwd);
                input["reason"] = json!(about.reason);
                (tool, input, vec![])
            }
            "item/fileChange/requestApproval" => {
                let changes = self.changes.get(&about.item_id).cloned();
                let changes = changes.unwrap_or_default();
                let paths = changes.as_array().into_iter().flatten();
                let paths: Vec<_> = paths.filter_map(|change| change["path"].as_str()).collect();
                let input = json!({
                    "path": paths.join("\n"), "changes": changes, "reason": about.reason,
                });
                ("apply_patch", input, vec![])
            }
            "item/tool/requestUserInput" if !about.questions.is_empty() => {
                let questions = about.questions.into_iter().map(question).collect();
                ("request_user_input", Value::Null, questions)
            }
            _ => return None,
        };
        Some(Asked {
            call_id: about.item_id,
            kind: if questions.is_empty() {
                QuestionKind::Approval
            } else {
                QuestionKind::Question
            },
            tool: tool.into(),
            input: without_nulls(input),
            questions,
        })
    }

    pub(super) fn reply(&mut self, call_id: &str, given: Option<&Given>) -> Option<Reply> {
        let wanted = self.wanted.get_mut(call_id)?;
        wanted.decided = true;
        let kind = wanted.asked.kind;
        let (message, note) = refusal(kind, given);
        let result = match (kind, given) {
            (QuestionKind::Question, Some(given)) if message.is_none() => answers(given),
            (QuestionKind::Question, _) => json!({"answers": {}}),
            (QuestionKind::Approval, _) => json!({"decision": decision(&wanted.asked, given)}),
        };
        let note = note.map_or_else(String::new, |note| wanted.note(&note));
        let line = format!("{note}{}\n", json!({"id": wanted.id, "result": result}));
        self.always |= given.is_some_and(|given| given.decision == Choice::Always);
        if message.is_some() {
            let asked = wanted.asked.clone();
            self.note(&asked);
        }
        Some(Reply { line, message })
    }

    /// True if a call still waits for a person.
    pub(super) fn waits(&self, call_id: &str) -> bool {
        self.wanted
            .get(call_id)
            .is_some_and(|wanted| !wanted.decided)
    }

    /// True if no person was asked about this call, and none allowed calls in general.
    pub(super) fn passed_by(&self, call_id: &str) -> bool {
        !self.always && !self.wanted.contains_key(call_id)
    }

    pub(super) fn take_asked(&mut self) -> Vec<Asked> {
        std::mem::take(&mut self.asked)
    }

    pub(super) fn take_says(&mut self) -> Vec<Say> {
        std::mem::take(&mut self.says)
    }

    pub(super) fn denied(&self) -> Vec<Denied> {
        self.denied.clone()
    }

    fn note(&mut self, asked: &Asked) {
        if self.denied.iter().any(|known| known.id == asked.call_id) {
            return;
        }
        let input = asked.input.to_string().chars().take(INPUT_CHARS).collect();
        self.denied.push(Denied {
            tool: asked.tool.clone(),
            id: asked.call_id.clone(),
            input,
        });
    }
}

impl PendingCall {
    /// Formats a note to the model. It is not a user message, so that the session contains no
    /// prompts but those of rejoin.
    fn note(&self, text: &str) -> String {
        let content = json!([{"type": "input_text", "text": text}]);
        let item = json!({"type": "message", "role": "developer", "content": content});
        let params = json!({"threadId": self.thread, "items": [item]});
        let id = format!("rejoin-note {}", self.id);
        let note = json!({"id": id, "method": "thread/inject_items", "params": params});
        format!("{note}\n")
    }
}

fn question(item: Item) -> QuestionItem {
    QuestionItem {
        id: item.id,
        text: item.question,
        options: item.options.unwrap_or_default(),
        multi: false,
    }
}

/// Returns the reason of a denial for people, and the note for the model if it needs one. Both are
/// none if the call is allowed.
fn refusal(kind: QuestionKind, given: Option<&Given>) -> (Option<String>, Option<String>) {
    let both = |text: &str| (Some(text.to_owned()), Some(text.to_owned()));
    match (given, kind) {
        (None, QuestionKind::Approval) => both(NOT_ALLOWED),
        (None, QuestionKind::Question) => both(NOT_ANSWERED),
        (Some(given), _) if given.decision != Choice::Deny => (None, None),
        (Some(given), kind) => match (&given.message, kind) {
            (Some(said), _) => (Some(said.clone()), Some(format!("The user says: {said}"))),
            (None, QuestionKind::Question) => both(UNWILLING),
            (None, QuestionKind::Approval) => (Some(DENIED.into()), None),
        },
    }
}

/// Returns the decision for the server. `acceptForSession` covers this exact command, or these
/// files, until the process ends. The decision that writes a rule into the user's own rules is
/// never used.
fn decision(asked: &Asked, given: Option<&Given>) -> &'static str {
    match given.map(|given| given.decision) {
        Some(Choice::Always) if asked.tool != "write_stdin" => "acceptForSession",
        Some(Choice::Allow | Choice::Always) => "accept",
        Some(Choice::Deny) | None => "decline",
    }
}

fn answers(given: &Given) -> Value {
    let answers = given.answers.iter();
    let answers: serde_json::Map<String, Value> = answers
        .map(|(id, said)| (id.clone(), json!({"answers": said})))
        .collect();
    json!({"answers": answers})
}

fn without_nulls(mut input: Value) -> Value {
    if let Some(fields) = input.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    input
}

/// Removes the login shell that the CLI puts around a command. None if the command has any other
/// form, because a person decides by this text.
fn unwrapped(command: &str) -> Option<&str> {
    let (shell, script) = command.split_once(" -lc '")?;
    let script = script.strip_suffix('\'')?;
    let plain = |text: &str| !text.contains(['\'', '\\', '"']) && !text.is_empty();
    (shell.starts_with('/') && !shell.contains(' ') && plain(shell) && !script.contains('\''))
        .then_some(script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_is_run() {
        for (command, shown) in [
            ("/bin/bash -lc 'touch x'", Some("touch x")),
            ("/bin/bash -lc 'a \"b\" \\n $(c)'", Some("a \"b\" \\n $(c)")),
            ("/bin/bash -lc ls", None),
            ("/bin/bash -lc \"it's\"", None),
            ("/bin/bash -lc 'a' 'b'", None),
            ("/bin/bash -c 'rm x; true -lc '\\''ls'\\'''", None),
            ("rm -r x; /bin/bash -lc 'ls'", None),
            ("", None),
        ] {
            assert_eq!(unwrapped(command), shown, "{command}");
        }
    }
}
