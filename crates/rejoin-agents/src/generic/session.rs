//! Session file of a described CLI: lines of JSON, some of which are prompts and answers.

use rejoin_core::strip;
use serde_json::Value;

use super::{GenericConfig, JsonPath};
use crate::session::{ReadEntry, Reading, SessionReader, text_mark};

pub(super) struct Reader {
    user: Option<JsonPath>,
    assistant: Option<JsonPath>,
    lines: u64,
    reading: Reading,
}

impl Reader {
    /// Creates a reader. The cursor is the number of lines read before; a hash of the file confirms
    /// their content.
    pub(super) fn new(config: &GenericConfig, cursor: Option<&str>) -> Self {
        Self {
            user: config.session_user.clone(),
            assistant: config.session_assistant.clone(),
            lines: cursor.and_then(|c| c.parse().ok()).unwrap_or(0),
            reading: Reading {
                connected: true,
                ..Reading::default()
            },
        }
    }
}

impl SessionReader for Reader {
    fn line(&mut self, line: &[u8]) {
        self.lines += 1;
        let Ok(value) = serde_json::from_slice::<Value>(line) else {
            self.reading.damaged_lines += 1;
            return;
        };
        let text = |pick: &Option<JsonPath>| pick.as_ref().and_then(|p| p.text(&value));
        if let Some(said) = text(&self.user) {
            let id = text_mark(&said);
            self.reading.prompts.push(id.clone());
            self.reading.entries.push(ReadEntry::Prompt {
                id,
                text: strip(&said),
                at: None,
            });
        } else if let Some(text) = text(&self.assistant) {
            self.reading
                .entries
                .push(ReadEntry::Answer { text, at: None });
        }
    }

    fn finish(mut self: Box<Self>) -> Reading {
        self.reading.cursor = Some(self.lines.to_string());
        self.reading
    }
}
