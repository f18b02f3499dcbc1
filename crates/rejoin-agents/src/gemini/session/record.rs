//! One line of a session, and one message.

use std::collections::HashMap;

use rejoin_core::ToolNote;
use serde::Deserialize;
use serde_json::Value;

use super::super::{neutral, note, permission};
use crate::session::moment;
use crate::stream::Denied;

/// How it ends the sentence in which it says so to the model.
const NOT_FOUND: &str = "not found in registry.";

pub(in crate::gemini) enum Record {
    /// The first line; again when a resume falls into the minute in which the file was made.
    Header {
        session: Option<String>,
        messages: Vec<Message>,
    },
    Message(Message),
    /// The whole list anew.
    Messages(Vec<Message>),
    /// That message and all after it are taken back.
    Rewind(String),
    Other,
}

/// Whether calls went well, by their ids.
pub(super) type Returned = HashMap<String, bool>;

/// As it stands in the file.
pub(in crate::gemini) struct Message(Value);

/// What somebody said. Texts are as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::gemini) enum Said {
    Prompt { mark: String, text: String },
    Answer { text: String },
}

/// None: not a line that can be read. What the CLI itself ignores is no damage.
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

    /// None: nothing that anybody said.
    pub(in crate::gemini) fn said(&self) -> Option<Said> {
        let text = text_of(&self.0["content"]);
        if text.trim().is_empty() {
            return None;
        }
        if self.is_model() {
            return Some(Said::Answer { text });
        }
        let context = text.trim_start().starts_with("<session_context>");
        if !self.is_user() || context {
            return None;
        }
        // A mentioned file is added to what was typed, which then stands beside it.
        let typed = text_of(&self.0["displayContent"]);
        let typed = if typed.is_empty() { &text } else { &typed };
        Some(Said::Prompt {
            mark: neutral::mark(typed),
            text,
        })
    }

    /// The folder that the CLI told the model it works in.
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

    /// Whose model wrote it.
    pub(super) fn model(&self) -> Option<&str> {
        self.0["model"].as_str().filter(|_| self.is_model())
    }

    /// What its tools did. Once it was resumed, calls stand among the words, and what became of them
    /// in a later message.
    pub(super) fn did(&self, returned: &Returned) -> Vec<ToolNote> {
        let mut did: Vec<ToolNote> = self.tool_calls().filter_map(note::of_session).collect();
        let noted: Vec<String> = self.tool_calls().filter_map(id_of).collect();
        for part in self.0["content"].as_array().into_iter().flatten() {
            let call = &part["functionCall"];
            if let Some(id) = id_of(call).filter(|id| !noted.contains(id)) {
                did.extend(note::of_part(call, returned.get(&id).copied()));
            }
        }
        did
    }

    /// Did the calls go well whose results are in this message?
    pub(super) fn returned(&self) -> impl Iterator<Item = (String, bool)> {
        let parts = self.0["content"].as_array().into_iter().flatten();
        parts.filter_map(|part| {
            let response = &part["functionResponse"];
            Some((id_of(response)?, response["response"]["error"].is_null()))
        })
    }

    /// How many of the tokens that were read for it came from a cache.
    pub(super) fn cached(&self) -> u64 {
        self.0["tokens"]["cached"].as_u64().unwrap_or(0)
    }

    /// Tools that were called and are not allowed: over its protocol the CLI says nothing of them.
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

    /// Ids of the tools this message calls.
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

    /// Ids of the calls whose results it holds: with the calls, or as a message of its own.
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

/// All text of a message but its thoughts.
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
