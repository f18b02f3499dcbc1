//! Lines of a session, and their messages.

use std::collections::HashMap;

use rejoin_core::ToolNote;
use serde::Deserialize;
use serde_json::Value;

use super::super::{escape, permission, tool_note};
use crate::session::moment;
use crate::stream::Denied;

/// Suffix of the CLI's message to the model about an unknown tool.
const NOT_FOUND: &str = "not found in registry.";

pub(in crate::gemini) enum Record {
    /// The first line. Repeated if a resume happens in the minute in which the file was created.
    Header {
        session: Option<String>,
        messages: Vec<Message>,
    },
    Message(Message),
    /// The complete list, which replaces the earlier one.
    Messages(Vec<Message>),
    /// Takes back this message and all after it.
    Rewind(String),
    Other,
}

/// Results of calls by their ids: true if the call succeeded.
pub(super) type Returned = HashMap<String, bool>;

/// A message in the format of the file.
pub(in crate::gemini) struct Message(Value);

/// Text of a prompt or an answer, as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::gemini) enum StoredText {
    Prompt { mark: String, text: String },
    Answer { text: String },
}

/// Parses a line. None if it is damaged. Lines that the CLI itself ignores are not damaged.
pub(in crate::gemini) fn read(line: &[u8]) -> Option<Record> {
    let value: Value = serde_json::from_slice(line).ok()?;
    if let Some(id) = value["$rewindTo"].as_str() {
        return Some(Record::Rewind(id.to_owned()));
    }
    if value["id"].is_string() {
        return Some(Record::Message(Message(value)));
    }
    if let Value::Array(list) = &value["$set"]["messages"] {
        return Some(Record::Messages(messages(list)));
    }
    if value["sessionId"].is_string() {
        return Some(Record::Header {
            session: value["sessionId"].as_str().map(str::to_owned),
            messages: value["messages"]
                .as_array()
                .map_or_else(Vec::new, |m| messages(m)),
        });
    }
    Some(Record::Other)
}

/// Returns the reason why a session with this line is not continued: at a terminal the CLI takes the
/// folders that it names for its own.
pub(in crate::gemini) fn refuses(line: &[u8]) -> Option<&'static str> {
    let names = |text: &[u8]| line.windows(text.len()).any(|at| at == text);
    if !names(b"directories") && !names(b"\\u") {
        return None;
    }
    let value: Value = serde_json::from_slice(line).ok()?;
    let none = |folders: &Value| folders.is_null() || *folders == Value::Array(vec![]);
    let all = [&value["directories"], &value["$set"]["directories"]];
    (!all.into_iter().all(none)).then_some("it names other folders to work in")
}

fn messages(list: &[Value]) -> Vec<Message> {
    let named = list.iter().filter(|message| message["id"].is_string());
    named.map(|message| Message(message.clone())).collect()
}

#[derive(Deserialize)]
struct Called {
    id: String,
}

impl Message {
    pub(super) fn id(&self) -> &str {
        self.0["id"].as_str().unwrap_or_default()
    }

    pub(super) fn value(&self) -> &Value {
        &self.0
    }

    fn is_user(&self) -> bool {
        self.0["type"] == "user"
    }

    fn is_model(&self) -> bool {
        self.0["type"] == "gemini"
    }

    pub(super) fn is_said(&self) -> bool {
        self.said().is_some()
    }

    /// Returns the text of the message. None if it contains no prompt or answer.
    pub(in crate::gemini) fn said(&self) -> Option<StoredText> {
        let text = text_of(&self.0["content"]);
        if text.trim().is_empty() {
            return None;
        }
        if self.is_model() {
            return Some(StoredText::Answer { text });
        }
        let context = text.trim_start().starts_with("<session_context>");
        if !self.is_user() || context {
            return None;
        }
        // The CLI adds mentioned files to the text. The typed text is then stored separately.
        let typed = text_of(&self.0["displayContent"]);
        let typed = if typed.is_empty() { &text } else { &typed };
        Some(StoredText::Prompt {
            mark: escape::mark(typed),
            text,
        })
    }

    /// Returns the working folder that the CLI named to the model.
    pub(in crate::gemini) fn workspace(&self) -> Option<String> {
        let text = text_of(&self.0["content"]);
        let context = text.trim_start().strip_prefix("<session_context>")?;
        let (_, listed) = context.split_once("**Workspace Directories:**")?;
        let first = listed.lines().find_map(|l| l.trim().strip_prefix("- "))?;
        first.starts_with('/').then(|| first.to_owned())
    }

    pub(super) fn at(&self) -> Option<i64> {
        self.0["timestamp"].as_str().and_then(moment)
    }

    /// Returns the model that wrote the message.
    pub(super) fn model(&self) -> Option<&str> {
        self.0["model"].as_str().filter(|_| self.is_model())
    }

    /// Returns the tool calls of the message. After a resume, calls are stored among the text
    /// parts, and their results in a later message.
    pub(super) fn did(&self, returned: &Returned) -> Vec<ToolNote> {
        let mut did: Vec<ToolNote> = self
            .tool_calls()
            .filter_map(tool_note::of_session)
            .collect();
        let noted: Vec<String> = self.tool_calls().filter_map(id_of).collect();
        for part in self.0["content"].as_array().into_iter().flatten() {
            let call = &part["functionCall"];
            if let Some(id) = id_of(call).filter(|id| !noted.contains(id)) {
                did.extend(tool_note::of_part(call, returned.get(&id).copied()));
            }
        }
        did
    }

    /// Returns the ids of the calls whose results are in this message: true if the call succeeded.
    pub(super) fn returned(&self) -> impl Iterator<Item = (String, bool)> {
        let parts = self.0["content"].as_array().into_iter().flatten();
        parts.filter_map(|part| {
            let response = &part["functionResponse"];
            Some((id_of(response)?, response["response"]["error"].is_null()))
        })
    }

    /// Returns the number of input tokens that came from a cache.
    pub(super) fn cached(&self) -> u64 {
        self.0["tokens"]["cached"].as_u64().unwrap_or(0)
    }

    /// Returns calls of tools that are not allowed, which the CLI does not report over the
    /// protocol.
    pub(super) fn not_found(&self) -> impl Iterator<Item = Denied> {
        let parts = self.0["content"].as_array().into_iter().flatten();
        parts.filter_map(|part| {
            let response = &part["functionResponse"];
            let tool = response["name"].as_str()?;
            let said = response["response"]["error"].as_str()?;
            let denied = said.ends_with(NOT_FOUND) && permission::is_known(tool);
            denied.then(|| Denied {
                tool: tool.to_owned(),
                id: id_of(response).unwrap_or_default(),
                input: String::new(),
            })
        })
    }

    /// Returns the ids of the tool calls in this message.
    pub(super) fn calls(&self) -> Vec<String> {
        let noted = self.tool_calls().filter_map(id_of);
        let mut calls: Vec<String> = noted.collect();
        for id in parts(&self.0["content"], "functionCall") {
            if !calls.contains(&id) {
                calls.push(id);
            }
        }
        calls
    }

    /// Returns the ids of the calls whose results this message contains, beside the calls or as
    /// parts of its own.
    pub(super) fn results(&self) -> Vec<String> {
        let noted = self.tool_calls().flat_map(|call| match &call["result"] {
            Value::Null => vec![],
            list @ Value::Array(_) => parts(list, "functionResponse"),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                id_of(call).into_iter().collect()
            }
        });
        let mut results: Vec<String> = noted.collect();
        results.extend(parts(&self.0["content"], "functionResponse"));
        results
    }

    fn tool_calls(&self) -> impl Iterator<Item = &Value> {
        self.0["toolCalls"].as_array().into_iter().flatten()
    }
}

fn id_of(value: &Value) -> Option<String> {
    Called::deserialize(value).ok().map(|called| called.id)
}

fn parts(content: &Value, name: &str) -> Vec<String> {
    let parts = content.as_array().into_iter().flatten();
    parts.filter_map(|part| id_of(part.get(name)?)).collect()
}

/// Returns the text of a message without its thoughts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter(|part| part["thought"] != true);
            let texts = texts.filter_map(|part| part.as_str().or_else(|| part["text"].as_str()));
            texts.collect()
        }
        Value::Object(part) => part["text"].as_str().unwrap_or_default().to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}
