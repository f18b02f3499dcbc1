//! What the CLI prints, line by line.

use rejoin_core::{EventBody, SessionId};

use super::classify;
use super::wire::{Finished, Line, Trouble};
use crate::stream::{Answer, End, Ran, StreamParser};

mod tools;

use tools::Tools;

/// Lines of stderr that are kept to explain an end without a result: it is never empty.
const STDERR_LINES: usize = 60;

#[derive(Default)]
pub(super) struct Stream {
    seen: classify::Seen,
    model: Option<String>,
    text: String,
    /// What was said since the last tool call.
    open: String,
    tools: Tools,
    unknown: u64,
}

impl StreamParser for Stream {
    fn line(&mut self, line: &[u8]) -> Vec<EventBody> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return vec![];
        }
        match serde_json::from_slice::<Line>(line) {
            Ok(line) => self.read(line),
            Err(_) => {
                self.unknown += 1;
                vec![EventBody::Raw {
                    line: String::from_utf8_lossy(line).into_owned(),
                }]
            }
        }
    }

    fn stderr(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line).trim().to_owned();
        if !text.is_empty() && self.seen.stderr.len() < STDERR_LINES {
            self.seen.stderr.push(text);
        }
    }

    /// A headless run asks nothing.
    fn answers(&mut self) -> Vec<Answer> {
        vec![]
    }

    fn finish(mut self: Box<Self>, end: &End) -> Ran {
        self.close();
        let judged = classify::judge(&self.seen, end);
        let stats = self.seen.result.as_ref().map(|result| &result.stats);
        Ran {
            outcome: judged.outcome,
            refused: judged.refused,
            session: self
                .seen
                .session
                .as_deref()
                .and_then(|id| SessionId::new(id).ok()),
            usage: stats.map(super::wire::Stats::usage).unwrap_or_default(),
            model: self.spoke(),
            version: None,
            total: None,
            context: None,
            used: None,
            denied: self.tools.denied(),
            tools_run: self.tools.run(),
            trail: self.tools.trail(),
            compacted: false,
            unknown_lines: self.unknown,
            text: self.text,
        }
    }
}

impl Stream {
    fn read(&mut self, line: Line) -> Vec<EventBody> {
        match line {
            Line::Init { session_id, model } => self.init(session_id, model),
            Line::Message { role, content } if role.as_deref() == Some("assistant") => {
                self.open.push_str(&content);
                vec![EventBody::TextDelta { text: content }]
            }
            // The prompt, as it was sent.
            Line::Message { .. } => vec![],
            Line::ToolUse {
                tool_name,
                tool_id,
                parameters,
            } => {
                let mut events = self.close();
                events.extend(self.tools.call(tool_id, tool_name, parameters));
                events
            }
            Line::ToolResult {
                tool_id,
                status,
                output,
                error,
            } => {
                let failed = status.as_deref() != Some("success");
                let mut events = self.close();
                let output = output.unwrap_or_default();
                events.extend(self.tools.result(&tool_id, failed, output, error.as_ref()));
                events
            }
            Line::Error { severity, message } => self.trouble(severity.as_deref(), message),
            Line::Result(result) => self.result(result),
        }
    }

    fn init(&mut self, session: Option<String>, model: Option<String>) -> Vec<EventBody> {
        if self.seen.init {
            return vec![];
        }
        self.seen.init = true;
        self.seen.session.clone_from(&session);
        self.model.clone_from(&model);
        vec![EventBody::TurnStarted {
            session_id: session,
            model,
            version: None,
            tools: vec![],
            permission: None,
        }]
    }

    /// Pieces of text belong together until a tool is called.
    fn close(&mut self) -> Vec<EventBody> {
        let text = std::mem::take(&mut self.open);
        if text.is_empty() {
            return vec![];
        }
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(&text);
        vec![EventBody::Text {
            text,
            parent_tool: None,
        }]
    }

    fn trouble(&mut self, severity: Option<&str>, message: String) -> Vec<EventBody> {
        let event = EventBody::warning(message.clone());
        self.seen.notes.push(Trouble {
            kind: severity.map(str::to_owned),
            message,
        });
        vec![event]
    }

    fn result(&mut self, result: Finished) -> Vec<EventBody> {
        let mut events = self.close();
        events.push(EventBody::Usage {
            usage: result.stats.usage(),
            context: None,
        });
        self.seen.result = Some(result);
        events
    }

    /// `init` names the model that was asked for, which may be `auto`, or be replaced on the way.
    fn spoke(&self) -> Option<String> {
        let models = self.seen.result.as_ref().map(|result| &result.stats.models);
        let asked = self.model.clone();
        let Some(models) = models.filter(|models| !models.is_empty()) else {
            return asked;
        };
        if asked.as_ref().is_some_and(|name| models.contains_key(name)) {
            return asked;
        }
        let most = models.iter().max_by_key(|(_, stats)| stats.output_tokens);
        most.map(|(name, _)| name.clone()).or(asked)
    }
}
