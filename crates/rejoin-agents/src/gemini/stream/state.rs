//! State of a run so far, for both the stream and the protocol.

use rejoin_core::{EventBody, SessionId};

use super::super::classify;
use super::super::wire::{ErrorBody, Finished, Stats};
use super::tools::Tools;
use crate::stream::{ProcessEnd, RunReport};

/// Number of stderr lines that are kept to explain an end without a result. stderr is never empty.
const STDERR_LINES: usize = 60;

#[derive(Default)]
pub(in crate::gemini) struct RunState {
    pub(in crate::gemini) seen: classify::RunFacts,
    pub(in crate::gemini) tools: Tools,
    pub(in crate::gemini) version: Option<String>,
    model: Option<String>,
    text: String,
    /// Text since the last tool call.
    open: String,
    unknown: u64,
}

impl RunState {
    pub(in crate::gemini) fn stderr(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line).trim().to_owned();
        if !text.is_empty() && self.seen.stderr.len() < STDERR_LINES {
            self.seen.stderr.push(text);
        }
    }

    /// Counts a line that is not understood.
    pub(in crate::gemini) fn unknown(&mut self, line: &[u8]) -> Vec<EventBody> {
        self.unknown += 1;
        vec![EventBody::Raw {
            line: String::from_utf8_lossy(line).into_owned(),
        }]
    }

    pub(in crate::gemini) fn started(
        &mut self,
        session: Option<String>,
        model: Option<String>,
        permission: Option<String>,
    ) -> Vec<EventBody> {
        if self.seen.init {
            return vec![];
        }
        self.seen.init = true;
        self.seen.session.clone_from(&session);
        self.model.clone_from(&model);
        vec![EventBody::TurnStarted {
            session_id: session,
            model,
            version: self.version.clone(),
            tools: vec![],
            permission,
        }]
    }

    pub(in crate::gemini) fn says(&mut self, text: String) -> Vec<EventBody> {
        self.open.push_str(&text);
        vec![EventBody::TextDelta { text }]
    }

    /// True if there is no text since the last tool call.
    pub(in crate::gemini) fn is_silent(&self) -> bool {
        self.open.is_empty()
    }

    /// Ends a text block: pieces of text belong together until a tool is called.
    pub(in crate::gemini) fn close(&mut self) -> Vec<EventBody> {
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

    pub(in crate::gemini) fn trouble(
        &mut self,
        severity: Option<&str>,
        message: String,
    ) -> Vec<EventBody> {
        let event = EventBody::warning(message.clone());
        self.seen.notes.push(ErrorBody {
            kind: severity.map(str::to_owned),
            message,
            status: None,
        });
        vec![event]
    }

    pub(in crate::gemini) fn result(&mut self, result: Finished) -> Vec<EventBody> {
        let mut events = self.close();
        events.push(EventBody::Usage {
            usage: result.stats.usage(),
            context: None,
        });
        self.seen.result = Some(result);
        events
    }

    pub(in crate::gemini) fn finish(mut self, end: &ProcessEnd) -> RunReport {
        self.close();
        let judged = classify::judge(&self.seen, end);
        let stats = self.seen.result.as_ref().map(|result| &result.stats);
        RunReport {
            outcome: judged.outcome,
            refused: judged.refused,
            session: self
                .seen
                .session
                .as_deref()
                .and_then(|id| SessionId::new(id).ok()),
            usage: stats.map(Stats::usage).unwrap_or_default(),
            model: self.spoke(),
            version: self.version,
            total: None,
            context: None,
            used: None,
            denied: self.tools.denied(),
            tools_run: self.tools.run(),
            trail: self.tools.trail(),
            withheld: self.tools.withheld(),
            compacted: false,
            unknown_lines: self.unknown,
            text: self.text,
        }
    }

    /// Returns the model that produced the answer. At its start the CLI names the requested model,
    /// which may be `auto`, or be replaced during the run.
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
