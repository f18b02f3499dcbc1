//! Tool calls, their effects, and the to-do list.

use std::collections::HashMap;

use rejoin_core::{EventBody, ToolNote};
use serde_json::{Value, json};

use super::super::tool_note;

#[derive(Default)]
pub(super) struct Tools {
    /// Calls in order.
    calls: Vec<Call>,
    by_id: HashMap<String, usize>,
    todo: Vec<Value>,
}

struct Call {
    id: String,
    name: String,
    input: Value,
    note: ToolNote,
    succeeded: bool,
}

impl Tools {
    /// Records a call. A call that is printed twice counts once.
    pub(super) fn call(
        &mut self,
        id: String,
        tool: String,
        input: Value,
        parent_tool: Option<String>,
    ) -> Vec<EventBody> {
        if self.by_id.contains_key(&id) {
            return vec![];
        }
        self.by_id.insert(id.clone(), self.calls.len());
        let note = tool_note::begun(&tool, &input);
        self.calls.push(Call {
            id: id.clone(),
            name: tool.clone(),
            input: input.clone(),
            note,
            succeeded: false,
        });
        vec![EventBody::ToolCall {
            id,
            tool,
            input,
            parent_tool,
            kind: None,
            subject: None,
        }]
    }

    pub(super) fn result(
        &mut self,
        id: &str,
        is_error: bool,
        structured: &Value,
    ) -> Vec<EventBody> {
        let Some(call) = self.by_id.get(id).and_then(|&at| self.calls.get_mut(at)) else {
            return vec![];
        };
        call.note.finished = true;
        if is_error {
            return vec![];
        }
        call.succeeded = true;
        if tool_note::edits(&call.name) {
            call.note.changed_file = true;
            let path = ["file_path", "notebook_path"]
                .iter()
                .find_map(|f| call.input[f].as_str());
            let tool = call.name.clone();
            return path
                .map(|path| EventBody::FileChanged {
                    path: path.to_owned(),
                    tool,
                })
                .into_iter()
                .collect();
        }
        let listed = match call.name.as_str() {
            "TodoWrite" => call.input["todos"]
                .as_array()
                .map(|todos| todos.iter().map(from_todo).collect()),
            "TaskList" => structured["tasks"]
                .as_array()
                .map(|tasks| tasks.iter().map(from_task).collect()),
            "TaskCreate" => {
                let mut list = self.todo.clone();
                list.push(from_task(&structured["task"]));
                Some(list)
            }
            "TaskUpdate" => Some(updated(&self.todo, &call.input)),
            _ => None,
        };
        let Some(list) = listed else { return vec![] };
        self.todo = list;
        vec![EventBody::Todo {
            items: Value::Array(self.todo.clone()),
        }]
    }

    pub(super) fn name(&self, id: &str) -> Option<&str> {
        self.by_id
            .get(id)
            .and_then(|&at| self.calls.get(at))
            .map(|call| call.name.as_str())
    }

    /// Counts the calls, without those that never began.
    pub(super) fn run(&self, never_began: impl Fn(&str) -> bool) -> u64 {
        let begun = self.calls.iter().filter(|call| !never_began(&call.id));
        begun.count() as u64
    }

    /// Returns all calls except denied ones.
    pub(super) fn trail(&self, denied: impl Fn(&str) -> bool) -> Vec<ToolNote> {
        self.calls
            .iter()
            .filter(|call| !denied(&call.id))
            .map(|call| call.note.clone())
            .collect()
    }
}

impl Tools {
    /// Returns the calls that waited for a person (`wanted`) and did not succeed.
    pub(super) fn withheld(&self, wanted: impl Fn(&str) -> bool) -> Vec<ToolNote> {
        let waiting = |call: &&Call| wanted(&call.id) && !call.succeeded;
        let calls = self.calls.iter().filter(waiting);
        calls.map(|call| call.note.clone()).collect()
    }
}

fn from_todo(todo: &Value) -> Value {
    json!({"text": todo["content"], "status": todo["status"]})
}

/// Converts a task. A new task is printed without its state.
fn from_task(task: &Value) -> Value {
    let status = task["status"].as_str().unwrap_or("pending");
    json!({"id": task["id"], "text": task["subject"], "status": status})
}

fn updated(list: &[Value], change: &Value) -> Vec<Value> {
    let mut list = list.to_vec();
    let status = change["status"].as_str();
    if status == Some("deleted") {
        list.retain(|item| item["id"] != change["taskId"]);
    }
    for item in list
        .iter_mut()
        .filter(|item| item["id"] == change["taskId"])
    {
        if let Some(status) = status {
            item["status"] = status.into();
        }
        if let Some(subject) = change["subject"].as_str() {
            item["text"] = subject.into();
        }
    }
    list
}
