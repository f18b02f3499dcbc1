//! Text of the answer, and of tool results.

use serde_json::Value;

use super::super::wire::{Block, Finished};

/// Complete main-thread text, in order.
#[derive(Default)]
pub(super) struct AnswerText {
    text: String,
    message: String,
    paused: bool,
}

impl AnswerText {
    /// Appends a block. Blocks of one message form one text (citations split it), unless a tool
    /// call separates them.
    pub(super) fn text(&mut self, message: &str, text: &str) {
        let same = self.message == message && !message.is_empty() && !self.paused;
        if !self.text.is_empty() && !same {
            self.text.push_str("\n\n");
        }
        self.text.push_str(text);
        message.clone_into(&mut self.message);
        self.paused = false;
    }

    pub(super) fn pause(&mut self) {
        self.paused = true;
    }

    /// Returns the answer. A built-in command of the CLI answers only in the `result`.
    pub(super) fn answer(&self, results: &[Finished]) -> String {
        if !self.text.is_empty() {
            return self.text.clone();
        }
        let said = results.iter().filter(|r| r.is_error == Some(false));
        said.filter_map(|r| r.result.as_deref())
            .filter(|t| !t.is_empty())
            .collect::<Vec<_>>()
            .join("\n\n")
    }
}

pub(super) fn plain(blocks: Vec<Block>) -> String {
    let text = |block| match block {
        Block::Text { text } => Some(text),
        Block::Thinking { .. }
        | Block::ToolUse { .. }
        | Block::ToolResult { .. }
        | Block::Other => None,
    };
    blocks
        .into_iter()
        .filter_map(text)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns a tool's output as text. Blocks other than text are shown as their type.
pub(in crate::claude) fn of_result(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let shown = |block: &Value| match block["text"].as_str() {
                Some(text) => text.to_owned(),
                None => format!("[{}]", block["type"].as_str().unwrap_or("?")),
            };
            blocks.iter().map(shown).collect::<Vec<_>>().join("\n")
        }
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => content.to_string(),
    }
}

/// Cuts a text at a character boundary and appends the number of omitted bytes.
pub(super) fn shorten(mut text: String, bytes: usize) -> String {
    if text.len() > bytes {
        let end = (0..=bytes)
            .rev()
            .find(|&at| text.is_char_boundary(at))
            .unwrap_or(0);
        let left = text.len() - end;
        text.truncate(end);
        return format!("{text}\n[{left} more bytes]");
    }
    text
}
