//! Tool calls, from the items that represent them.

use std::collections::HashMap;

use rejoin_core::{EventBody, ToolNote};
use serde_json::{Value, json};

use super::super::wire::Item;
use crate::stream::Denied;
use crate::tool_note::one_line;

/// Maximum size of a tool's output in an event.
const RESULT_BYTES: usize = 64 * 1024;

/// Message about a call of an MCP server that needs approval, which no person can give in a
/// headless run.
const NEEDS_APPROVAL: &str = "requires approval";

#[derive(Default)]
pub(in crate::codex) struct Tools {
    /// Calls in order.
    calls: Vec<(String, ToolNote)>,
    by_id: HashMap<String, usize>,
}

impl Tools {
    pub(in crate::codex) fn knows(&self, item: &Item) -> bool {
        self.by_id.contains_key(&item.id)
    }

    /// Records a call. A call that is printed twice counts once.
    pub(in crate::codex) fn call(&mut self, item: &Item) -> Vec<EventBody> {
        if self.knows(item) {
            return vec![];
        }
        self.by_id.insert(item.id.clone(), self.calls.len());
        let tool = name(item);
        let note = ToolNote {
            tool: tool.clone(),
            subject: one_line(&subject(item)),
            changed_file: false,
            finished: false,
        };
        self.calls.push((item.id.clone(), note));
        vec![EventBody::ToolCall {
            id: item.id.clone(),
            tool,
            input: input(item),
            parent_tool: None,
            kind: None,
            subject: None,
        }]
    }

    pub(in crate::codex) fn result(&mut self, item: &Item) -> (Vec<EventBody>, Option<Denied>) {
        let tool = name(item);
        let status = item.status.as_deref().unwrap_or_default();
        let error = item.rest["error"]["message"].as_str();
        let exit = item.rest["exit_code"].as_i64().unwrap_or(0);
        let is_error = matches!(status, "failed" | "declined") || error.is_some() || exit != 0;
        let denied =
            status == "declined" || error.is_some_and(|said| said.contains(NEEDS_APPROVAL));
        let output = item.rest["aggregated_output"].as_str().or(error);
        let text = match output {
            Some(text) => text.to_owned(),
            None => words(&item.rest["result"]),
        };
        let mut events = vec![EventBody::ToolResult {
            id: item.id.clone(),
            is_error,
            text: shorten(text),
            exit_code: item.rest["exit_code"].as_i64(),
        }];
        let mut changed = vec![];
        if item.kind == "file_change" && !is_error {
            changed = paths(item);
            events.extend(changed.iter().map(|path| EventBody::FileChanged {
                path: path.clone(),
                tool: tool.clone(),
            }));
        }
        let at = self.by_id.get(&item.id).copied();
        if let Some((_, note)) = at.and_then(|at| self.calls.get_mut(at)) {
            note.finished = true;
            note.changed_file = !changed.is_empty();
        }
        let denied = denied.then(|| Denied {
            tool,
            id: item.id.clone(),
            input: input(item).to_string().chars().take(300).collect(),
        });
        (events, denied)
    }

    pub(in crate::codex) fn run(&self) -> u64 {
        self.calls.len() as u64
    }

    /// Returns the calls that wait for a person (`wanted`).
    pub(in crate::codex) fn withheld(&self, wanted: impl Fn(&str) -> bool) -> Vec<ToolNote> {
        let waiting = self.calls.iter().filter(|(id, _)| wanted(id));
        waiting.map(|(_, note)| note.clone()).collect()
    }

    /// Returns all calls except denied ones.
    pub(in crate::codex) fn trail(&self, denied: &[Denied]) -> Vec<ToolNote> {
        let allowed = |id: &String| !denied.iter().any(|d| d.id == *id);
        let done = self.calls.iter().filter(|(id, _)| allowed(id));
        done.map(|(_, note)| note.clone()).collect()
    }
}

/// Returns the tool name that the model uses.
fn name(item: &Item) -> String {
    match item.kind.as_str() {
        "command_execution" => "exec_command".into(),
        "file_change" => "apply_patch".into(),
        "mcp_tool_call" => {
            let part = |field: &str| item.rest[field].as_str().unwrap_or_default().to_owned();
            format!("mcp__{}__{}", part("server"), part("tool"))
        }
        kind => match item.rest["tool"].as_str() {
            Some(tool) => tool.to_owned(),
            None => kind.to_owned(),
        },
    }
}

fn input(item: &Item) -> Value {
    let field = match item.kind.as_str() {
        "command_execution" => "command",
        "file_change" => "changes",
        "mcp_tool_call" => return item.rest["arguments"].clone(),
        "web_search" => "query",
        _ => return item.rest.clone(),
    };
    json!({field: item.rest[field]})
}

fn subject(item: &Item) -> String {
    match item.kind.as_str() {
        "command_execution" => command(item.rest["command"].as_str().unwrap_or_default()),
        "file_change" => paths(item).join(" "),
        "mcp_tool_call" => item.rest["arguments"].to_string(),
        _ => item.rest["query"].as_str().unwrap_or_default().to_owned(),
    }
}

/// Removes the shell that the CLI puts around a command.
fn command(text: &str) -> String {
    let inner = text.split_once(" -lc ").map_or(text, |(_, inner)| inner);
    let quoted = inner.len() >= 2 && inner.starts_with('\'') && inner.ends_with('\'');
    if quoted {
        return inner[1..inner.len() - 1].replace("'\\''", "'");
    }
    inner.to_owned()
}

fn paths(item: &Item) -> Vec<String> {
    let changes = item.rest["changes"].as_array().into_iter().flatten();
    let paths = changes.filter_map(|change| change["path"].as_str());
    paths.map(str::to_owned).collect()
}

/// Returns the text blocks of an MCP tool's result. Other blocks are omitted.
fn words(result: &Value) -> String {
    let blocks = result["content"].as_array().into_iter().flatten();
    let texts = blocks.filter_map(|block| block["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

/// Cuts a text at a character boundary and appends the number of omitted bytes.
fn shorten(mut text: String) -> String {
    if text.len() <= RESULT_BYTES {
        return text;
    }
    let end = text.floor_char_boundary(RESULT_BYTES);
    let left = text.len() - end;
    text.truncate(end);
    format!("{text}\n[{left} more bytes]")
}
