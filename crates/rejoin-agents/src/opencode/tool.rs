//! A tool call, as it stands in the stream and in the session.

use rejoin_core::{EventBody, ToolNote};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::stream::Denied;

/// How the error of a call that was not allowed begins: by a rule, because nobody was there to ask,
/// because the tool is not offered at all.
const NOT_ALLOWED: &[&str] = &[
    "The user has specified a rule which prevents",
    "The user rejected permission",
    "Model tried to call unavailable tool",
];

/// Stands for a call that cannot be made: of a tool that is not there, or with wrong arguments.
const INVALID: &str = "invalid";

/// Tools that change the file they name.
pub(super) const EDITORS: &[&str] = &["apply_patch", "edit", "multiedit", "patch", "write"];

/// Where a call says what it is about, by rank.
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
const SUBJECT_CHARS: usize = 120;

/// Of a denied call's input, and of a tool's output in an event.
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

    /// Its input is complete, and it waits for a permission or works.
    pub(super) fn runs(&self) -> bool {
        self.state.status == "running"
    }

    pub(super) fn ended(&self) -> bool {
        matches!(self.state.status.as_str(), "completed" | "error")
    }

    /// The tool that was meant, and what was wrong with the call.
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

    /// Set if it was not allowed. A tool that does not exist looks the same: nothing was run.
    pub(super) fn denied(&self) -> Option<Denied> {
        let (tool, why) = self.meant();
        let denied = NOT_ALLOWED.iter().any(|words| why.contains(words));
        denied.then(|| Denied {
            tool: tool.to_owned(),
            id: self.id.clone(),
            input: shorten(self.state.input.to_string(), INPUT_BYTES),
        })
    }

    /// What the next turn must know it did; none: nothing was run.
    pub(super) fn note(&self) -> Option<ToolNote> {
        if self.tool == INVALID || self.denied().is_some() {
            return None;
        }
        let named = |field: &&str| self.state.input[*field].as_str();
        let subject = SUBJECTS.iter().find_map(named).unwrap_or_default();
        Some(ToolNote {
            tool: self.tool.clone(),
            subject: one_line(subject),
            changed_file: self.changed_file(),
            finished: self.ended(),
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
            },
            EventBody::ToolResult {
                id: self.id,
                is_error: denied || status != "completed",
                text: shorten(said, OUTPUT_BYTES),
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

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= SUBJECT_CHARS {
        return line;
    }
    line.chars().take(SUBJECT_CHARS - 1).chain(['…']).collect()
}

/// Cut at a character, saying so.
fn shorten(mut text: String, bytes: usize) -> String {
    if text.len() <= bytes {
        return text;
    }
    let end = (0..=bytes).rev().find(|&at| text.is_char_boundary(at));
    let left = text.len() - end.unwrap_or(0);
    text.truncate(end.unwrap_or(0));
    format!("{text}\n[{left} more bytes]")
}
