//! Parser of the CLI's output, line by line.

use rejoin_core::EventBody;

use super::wire::Line;
use crate::stream::{ProcessEnd, RunReport, StreamParser};

mod state;
mod tools;

pub(super) use state::RunState;

#[derive(Default)]
pub(super) struct Stream {
    told: RunState,
}

impl StreamParser for Stream {
    fn line(&mut self, line: &[u8]) -> Vec<EventBody> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return vec![];
        }
        match serde_json::from_slice::<Line>(line) {
            Ok(line) => self.read(line),
            Err(_) => self.told.unknown(line),
        }
    }

    fn stderr(&mut self, line: &[u8]) {
        self.told.stderr(line);
    }

    /// Produces the report. A headless run asks no questions.
    fn finish(self: Box<Self>, end: &ProcessEnd) -> RunReport {
        self.told.finish(end)
    }
}

impl Stream {
    fn read(&mut self, line: Line) -> Vec<EventBody> {
        let told = &mut self.told;
        match line {
            Line::Init { session_id, model } => told.started(session_id, model, None),
            Line::Message { role, content } if role.as_deref() == Some("assistant") => {
                told.says(content)
            }
            // The prompt, as it was sent.
            Line::Message { .. } => vec![],
            Line::ToolUse {
                tool_name,
                tool_id,
                parameters,
            } => {
                let mut events = told.close();
                events.extend(told.tools.call(tool_id, tool_name, parameters));
                events
            }
            Line::ToolResult {
                tool_id,
                status,
                output,
                error,
            } => {
                let failed = status.as_deref() != Some("success");
                let mut events = told.close();
                let output = output.unwrap_or_default();
                events.extend(told.tools.result(&tool_id, failed, output, error.as_ref()));
                events
            }
            Line::Error { severity, message } => told.trouble(severity.as_deref(), message),
            Line::Result(result) => told.result(result),
        }
    }
}
