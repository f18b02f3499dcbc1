//! Lines of a session file (a "rollout"), limited to the fields that are used.

use rejoin_core::SessionId;
use serde::Deserialize;
use serde_json::Value;

use super::wire::Tokens;
use crate::session::moment;
use crate::tool_note::one_line;

#[derive(Deserialize)]
pub(super) struct Line {
    /// Contiguous numbers. A fork continues the numbering of its parent.
    pub(super) ordinal: Option<u64>,
    timestamp: Option<String>,
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) payload: Value,
}

impl Line {
    pub(super) fn at(&self) -> Option<i64> {
        self.timestamp.as_deref().and_then(moment)
    }
}

/// Replaces the id in the line that identifies the session, and leaves the rest unchanged. The CLI
/// relies on this line alone: the id in other lines does not matter (0.166.0). None if it is
/// another line.
pub(super) fn rename_header(line: &[u8], to: &SessionId) -> Option<Vec<u8>> {
    let first: Line = serde_json::from_slice(line).ok()?;
    let id = first.payload["id"].as_str()?;
    let quoted = |id: &str| format!("\"{id}\"");
    let text = std::str::from_utf8(line).ok()?;
    (first.kind == "session_meta").then(|| text.replace(&quoted(id), &quoted(to.as_str())).into())
}

#[derive(Deserialize)]
pub(super) struct Spoken {
    pub(super) role: String,
    #[serde(default)]
    content: Vec<Part>,
    #[serde(rename = "internal_chat_message_metadata_passthrough")]
    about: Option<About>,
}

#[derive(Deserialize)]
struct Part {
    text: Option<String>,
}

#[derive(Deserialize)]
struct About {
    #[serde(default)]
    content_item_kinds: Vec<String>,
}

/// Prefixes of user messages that the CLI wrote itself, for versions that do not mark them.
const CONTEXT: &[&str] = &[
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "<skill>",
    "<user_shell_command>",
    "<subagent_notification>",
    "# AGENTS.md instructions",
    "Another language model started to solve this problem",
];

impl Spoken {
    pub(super) fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|part| part.text.as_deref());
        texts.collect()
    }

    /// True for a prompt of a person, false for context of the CLI. 0.166.0 marks them:
    /// `user.text`, as opposed to `environments.environment_context`,
    /// `skills.selected_skill_instructions`, …
    pub(super) fn by_a_person(&self) -> bool {
        let kinds = self.about.as_ref().map(|about| &about.content_item_kinds);
        let mut said = kinds
            .into_iter()
            .flatten()
            .filter(|kind| *kind != "unknown");
        match said.next() {
            Some(first) => first.starts_with("user") || said.any(|k| k.starts_with("user")),
            None => {
                let text = self.text();
                !CONTEXT
                    .iter()
                    .any(|start| text.trim_start().starts_with(start))
            }
        }
    }
}

/// A tool call, or its output.
#[derive(Deserialize)]
pub(super) struct Call {
    #[serde(rename = "call_id")]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) name: String,
    /// JSON as text. `apply_patch` and similar tools use `input` instead.
    arguments: Option<String>,
    input: Option<String>,
    #[serde(default)]
    pub(super) output: Value,
}

impl Call {
    /// Returns a short form of the command or arguments.
    pub(super) fn subject(&self) -> String {
        let arguments = self.arguments.as_deref().unwrap_or_default();
        let parsed: Value = serde_json::from_str(arguments).unwrap_or_default();
        let command = parsed["cmd"].as_str().or(self.input.as_deref());
        one_line(command.unwrap_or(arguments))
    }

    /// Returns the files that a patch names, for sessions that do not record which files it
    /// changed.
    pub(super) fn patched(&self) -> Option<String> {
        let patch = self.input.as_deref()?;
        let named = patch.lines().filter_map(|line| {
            let line = line.strip_prefix("*** ")?;
            let kinds = ["Add File: ", "Update File: ", "Delete File: "];
            kinds.iter().find_map(|kind| line.strip_prefix(kind))
        });
        let named: Vec<&str> = named.collect();
        (!named.is_empty()).then(|| one_line(&named.join(" ")))
    }

    /// Returns the output: a text, or the joined text blocks.
    pub(super) fn said(&self) -> String {
        match &self.output {
            Value::String(text) => text.clone(),
            Value::Array(blocks) => {
                let texts = blocks.iter().filter_map(|block| block["text"].as_str());
                texts.collect::<Vec<_>>().join("\n")
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Counted {
    pub(super) total_token_usage: Tokens,
    pub(super) last_token_usage: Tokens,
    pub(super) model_context_window: Option<u64>,
}
