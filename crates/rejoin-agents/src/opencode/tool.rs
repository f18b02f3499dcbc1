//! A tool call, in the form that the stream and the session share.

use rejoin_core::{EventBody, ToolNote};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::stream::Denied;
use crate::tool_note;

/// Texts in the error of a call that was not allowed: denied by a rule, no person available to ask,
/// or a tool that is not offered.
const NOT_ALLOWED: &[&str] = &[
    "The user has specified a rule which prevents",
    "The user rejected permission",
    "Model tried to call unavailable tool",
];

/// Tool name for a call that cannot be made: of an unknown tool, or with wrong arguments.
const INVALID: &str = "invalid";

/// Tools that change the file they name.
pub(super) const EDITORS: &[&str] = &["apply_patch", "edit", "multiedit", "patch", "write"];

/// Input fields that contain the subject of a call, in order of preference.
const SUBJECTS: &[&str] = &[
    "filePath",
    "command",
    "path",
    "pattern",
    "url",
    "query",
    "name",
    "description",
];

/// Maximum size of a denied call's input, and of a tool's output in an event.
const INPUT_BYTES: usize = 4096;
const OUTPUT_BYTES: usize = 64 * 1024;

#[derive(Deserialize)]
pub(super) struct ToolPart {
    tool: String,
    #[serde(rename = "callID", default)]
    id: String,
    #[serde(default)]
    state: State,
}

#[derive(Deserialize, Default)]
struct State {
    #[serde(default)]
    status: String,
    #[serde(default)]
    input: Value,
    output: Option<Value>,
    error: Option<Value>,
}

impl ToolPart {
    pub(super) fn name(&self) -> &str {
        &self.tool
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn input(&self) -> &Value {
        &self.state.input
    }

    /// True if the input is complete and the call is running or waits for a permission.
    pub(super) fn runs(&self) -> bool {
        self.state.status == "running"
    }

    pub(super) fn ended(&self) -> bool {
        matches!(self.state.status.as_str(), "completed" | "error")
    }

    /// Returns the intended tool, and the error of the call.
    fn meant(&self) -> (&str, String) {
        let said = |value: &Option<Value>| value.as_ref().map(text).unwrap_or_default();
        if self.tool != INVALID {
            return (&self.tool, said(&self.state.error));
        }
        let tool = self.state.input["tool"].as_str().unwrap_or(INVALID);
        let why = self.state.input["error"].as_str();
        (
            tool,
            why.map_or_else(|| said(&self.state.error), str::to_owned),
        )
    }

    /// Returns the call if it was not allowed. A tool that does not exist looks the same: nothing
    /// ran.
    pub(super) fn denied(&self) -> Option<Denied> {
        let (tool, why) = self.meant();
        let denied = NOT_ALLOWED.iter().any(|words| why.contains(words));
        denied.then(|| Denied {
            tool: tool.to_owned(),
            id: self.id.clone(),
            input: shorten(self.state.input.to_string(), INPUT_BYTES),
        })
    }

    /// Summarises the call for the next turn. None if nothing ran.
    pub(super) fn note(&self) -> Option<ToolNote> {
        if self.tool == INVALID || self.denied().is_some() {
            return None;
        }
        Some(ToolNote {
            changed_file: self.changed_file(),
            finished: self.ended(),
            ..tool_note::begun(&self.tool, &self.state.input, SUBJECTS)
        })
    }

    fn changed_file(&self) -> bool {
        EDITORS.contains(&self.tool.as_str()) && self.state.status == "completed"
    }

    pub(super) fn events(self) -> Vec<EventBody> {
        let denied = self.denied().is_some();
        let changed = self.changed_file();
        let tool = self.meant().0.to_owned();
        let State {
            status,
            input,
            output,
            error,
        } = self.state;
        let path = input["filePath"].as_str().map(str::to_owned);
        let todo = todos(&tool, &input);
        let said = output.or(error).as_ref().map(text).unwrap_or_default();
        let mut events = vec![
            EventBody::ToolCall {
                id: self.id.clone(),
                tool: tool.clone(),
                input,
                parent_tool: None,
                kind: None,
                subject: None,
            },
            EventBody::ToolResult {
                id: self.id,
                is_error: denied || status != "completed",
                text: shorten(said, OUTPUT_BYTES),
                exit_code: None,
            },
        ];
        if denied {
            events.push(EventBody::warning(format!("{tool} was not allowed.")));
        }
        if let Some(path) = path.filter(|_| changed) {
            events.push(EventBody::FileChanged { path, tool });
        }
        events.extend(todo);
        events
    }
}

fn todos(tool: &str, input: &Value) -> Option<EventBody> {
    let listed = input["todos"].as_array().filter(|_| tool == "todowrite")?;
    let item = |todo: &Value| json!({"text": todo["content"], "status": todo["status"]});
    Some(EventBody::Todo {
        items: listed.iter().map(item).collect(),
    })
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Cuts a text at a character boundary and appends the number of omitted bytes.
fn shorten(mut text: String, bytes: usize) -> String {
    if text.len() <= bytes {
        return text;
    }
    let end = (0..=bytes).rev().find(|&at| text.is_char_boundary(at));
    let left = text.len() - end.unwrap_or(0);
    text.truncate(end.unwrap_or(0));
    format!("{text}\n[{left} more bytes]")
}
