//! Tool calls, their effects, and the list of denied calls.

use std::collections::BTreeMap;

use rejoin_core::{EventBody, ToolNote};
use serde_json::Value;

use super::super::tool_note;
use super::super::wire::ErrorBody;
use crate::stream::Denied;

/// Maximum size of a tool's output in an event, and of a denied call's input.
const RESULT_BYTES: usize = 64 * 1024;
const INPUT_BYTES: usize = 2 * 1024;

#[derive(Default)]
pub(in crate::gemini) struct Tools {
    /// Calls in order.
    calls: Vec<Call>,
}

struct Call {
    id: String,
    input: Value,
    note: ToolNote,
    denied: bool,
    waits: bool,
}

impl Tools {
    pub(in crate::gemini) fn call(
        &mut self,
        id: String,
        tool: String,
        input: Value,
    ) -> Vec<EventBody> {
        if self.calls.iter().any(|call| call.id == id) {
            return vec![];
        }
        let note = tool_note::begun(&tool, &input);
        self.calls.push(Call {
            id: id.clone(),
            input: input.clone(),
            note,
            denied: false,
            waits: false,
        });
        vec![EventBody::ToolCall {
            id,
            tool,
            input,
            parent_tool: None,
            kind: None,
            subject: None,
        }]
    }

    pub(in crate::gemini) fn result(
        &mut self,
        id: &str,
        failed: bool,
        output: String,
        error: Option<&ErrorBody>,
    ) -> Vec<EventBody> {
        let said = error.map_or("", |error| error.message.as_str());
        let text = if output.is_empty() {
            said.to_owned()
        } else {
            output
        };
        let mut events = vec![EventBody::ToolResult {
            id: id.to_owned(),
            is_error: failed,
            text: shorten(text, RESULT_BYTES),
            exit_code: None,
        }];
        let Some(call) = self.calls.iter_mut().find(|call| call.id == id) else {
            return events;
        };
        call.note.finished = true;
        let kind = error.and_then(|error| error.kind.as_deref());
        let by_itself = failed && tool_note::is_denial(&call.note.tool, kind);
        call.denied |= by_itself;
        if by_itself {
            events.push(EventBody::Answered {
                id: id.to_owned(),
                question_id: None,
                decision: "deny".into(),
                message: error.map(|error| error.message.clone()),
                answers: BTreeMap::new(),
                by: None,
            });
        } else if !failed && tool_note::edits(&call.note.tool) {
            call.note.changed_file = true;
            events.extend(
                call.input["file_path"]
                    .as_str()
                    .map(|path| EventBody::FileChanged {
                        path: path.to_owned(),
                        tool: call.note.tool.clone(),
                    }),
            );
        }
        events
    }

    /// Marks a call as denied, because a person refused it or none was available.
    pub(in crate::gemini) fn deny(&mut self, id: &str) {
        for call in self.calls.iter_mut().filter(|call| call.id == id) {
            call.denied = true;
        }
    }

    pub(super) fn run(&self) -> u64 {
        self.calls.len() as u64
    }

    pub(super) fn denied(&self) -> Vec<Denied> {
        let denied = self.calls.iter().filter(|call| call.denied);
        let listed = denied.map(|call| Denied {
            tool: call.note.tool.clone(),
            id: call.id.clone(),
            input: shorten(call.input.to_string(), INPUT_BYTES),
        });
        listed.collect()
    }

    /// Records whether a call waits for the decision of a person.
    pub(in crate::gemini) fn wait(&mut self, id: &str, waits: bool) {
        for call in self.calls.iter_mut().filter(|call| call.id == id) {
            call.waits = waits;
        }
    }

    /// Returns the calls that still wait for a person.
    pub(super) fn withheld(&self) -> Vec<ToolNote> {
        let waiting = self.calls.iter().filter(|call| call.waits && !call.denied);
        waiting.map(|call| call.note.clone()).collect()
    }

    /// Returns all calls except denied ones.
    pub(super) fn trail(&self) -> Vec<ToolNote> {
        let done = self.calls.iter().filter(|call| !call.denied);
        done.map(|call| call.note.clone()).collect()
    }
}

fn shorten(mut text: String, most: usize) -> String {
    if text.len() > most {
        let end = (0..=most).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
    text
}
