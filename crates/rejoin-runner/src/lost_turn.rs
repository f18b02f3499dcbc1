//! Ends a turn whose place disappeared in the middle of it. Its committed events tell how far it
//! got; it is never tried again.

use std::collections::BTreeSet;

use rejoin_core::{Choice, Class, Cost, EventBody, Failure, ToolNote, TurnStatus};
use rejoin_hub::{Claimed, PinEnd};
use rejoin_store::Attempt;
use serde_json::Value;

use crate::error::Result;
use crate::finish::without_run;
use crate::turn::Runner;

/// Number of events to read at once; a turn has at most some thousands.
const EVENTS: i64 = 10_000;
/// Number of characters of a tool's input that are kept, for people and models.
const SUBJECT: usize = 120;

impl Runner {
    /// Ends the turn as `lost`: it is unknown if it ran, so it is not tried again.
    pub(crate) async fn lose(&self, claimed: &Claimed) -> Result<()> {
        let failure = Failure {
            class: Class::Lost,
            message: "the machine was restarted while it was being started".into(),
        };
        let mut settled = without_run(TurnStatus::Lost, failure, None, PinEnd::None);
        settled.cost = Cost::Unknown;
        self.finish(claimed, &settled).await
    }

    /// Ends a turn of another machine as `lost`, with the tools of which its events tell.
    pub(crate) async fn lose_elsewhere(&self, claimed: &Claimed, attempt: &Attempt) -> Result<()> {
        let machine = &claimed.turn.machine;
        let failure = Failure {
            class: Class::Lost,
            message: format!("where it ran ({machine}) was not heard of any more"),
        };
        let pin = PinEnd::Lost {
            id: attempt.pin,
            why: format!("what it holds lies on {machine}, which was not heard of any more"),
        };
        let mut settled = without_run(TurnStatus::Lost, failure, Some(attempt.n), pin);
        settled.cost = Cost::Unknown;
        settled.record = claimed.turn.record.clone();
        (settled.trail, settled.ended_at) = self.heard_of(claimed).await?;
        settled.record.tools_run = settled.trail.len() as u64;
        self.finish(claimed, &settled).await
    }

    /// Returns the tools that began, and the time of the turn's last event.
    async fn heard_of(&self, claimed: &Claimed) -> Result<(Vec<ToolNote>, Option<i64>)> {
        let mut tools = Tools::default();
        let mut heard = None;
        let mut after = 0;
        loop {
            let events = self.hub.events_of(claimed.turn.id, after, EVENTS).await?;
            let Some(last) = events.last() else {
                return Ok((tools.begun(), heard));
            };
            after = last.seq;
            heard = Some(last.at);
            for event in &events {
                tools.hear(&event.body);
            }
        }
    }
}

/// Tool calls by their id, in order, and the ids of calls that a person did not allow.
#[derive(Default)]
struct Tools(Vec<(String, ToolNote)>, BTreeSet<String>);

impl Tools {
    fn begun(self) -> Vec<ToolNote> {
        let Self(calls, withheld) = self;
        let begun = calls.into_iter().filter(|(id, _)| !withheld.contains(id));
        begun.map(|(_, note)| note).collect()
    }

    fn hear(&mut self, event: &EventBody) {
        if let EventBody::ToolCall {
            id, tool, input, ..
        } = event
        {
            let note = ToolNote {
                tool: tool.clone(),
                subject: subject(input),
                changed_file: false,
                finished: false,
            };
            self.0.push((id.clone(), note));
        }
        if let EventBody::ToolResult { id, .. } = event {
            let started = self.0.iter_mut().filter(|(started, _)| started == id);
            started.for_each(|(_, note)| note.finished = true);
        }
        if let EventBody::Approval { id, .. } = event {
            self.1.insert(id.clone());
        }
        if let EventBody::Answered { id, decision, .. } = event {
            if decision == Choice::Deny.as_str() {
                self.1.insert(id.clone());
            } else {
                self.1.remove(id);
            }
        }
        if let EventBody::FileChanged { path, tool } = event {
            let same = |note: &ToolNote| note.tool == *tool && note.subject.ends_with(path);
            let changed = self.0.iter_mut().map(|(_, note)| note);
            changed
                .filter(|note| same(note))
                .for_each(|note| note.changed_file = true);
        }
    }
}

/// Returns the command or file of a tool call, or else the first text in its input.
fn subject(input: &Value) -> String {
    let known = ["command", "file_path", "path", "filePath"].map(|name| &input[name]);
    let first = input.as_object().into_iter().flat_map(|map| map.values());
    let text = known.into_iter().chain(first).find_map(Value::as_str);
    text.unwrap_or_default().chars().take(SUBJECT).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_started_is_listed_with_its_end() {
        let call = |id: &str, input: Value| EventBody::ToolCall {
            id: id.into(),
            tool: "Bash".into(),
            input,
            parent_tool: None,
            kind: None,
            subject: None,
        };
        let mut tools = Tools::default();
        tools.hear(&call("1", json!({"description": "x", "command": "make"})));
        tools.hear(&EventBody::ToolResult {
            id: "1".into(),
            is_error: false,
            text: String::new(),
            exit_code: None,
        });
        tools.hear(&call("2", json!({"file_path": "/w/a.rs"})));
        tools.hear(&EventBody::FileChanged {
            path: "a.rs".into(),
            tool: "Bash".into(),
        });
        tools.hear(&call("3", json!([1])));
        // One without an answer, one denied, one allowed.
        for (id, decision) in [("4", None), ("5", Some("deny")), ("6", Some("allow"))] {
            tools.hear(&call(id, json!({"command": id})));
            tools.hear(&EventBody::Approval {
                id: id.into(),
                question_id: None,
                tool: "Bash".into(),
                input: Value::Null,
            });
            if let Some(decision) = decision {
                tools.hear(&EventBody::Answered {
                    id: id.into(),
                    question_id: None,
                    decision: decision.into(),
                    message: None,
                    answers: BTreeMap::new(),
                    by: None,
                });
            }
        }
        let begun = tools.begun();
        let said: Vec<_> = begun
            .iter()
            .map(|n| (n.subject.as_str(), n.finished, n.changed_file))
            .collect();
        assert_eq!(
            said,
            [
                ("make", true, false),
                ("/w/a.rs", false, true),
                ("", false, false),
                ("6", false, false)
            ]
        );
    }
}
