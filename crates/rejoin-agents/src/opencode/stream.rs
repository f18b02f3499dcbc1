//! Parser of the CLI's output, line by line. The CLI prints no line about its end, and none for a
//! tool that has only begun.

use std::time::Duration;

use rejoin_core::{Counts, EventBody, Micros, SessionId, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::classify::{self, ApiError, Retries, RunFacts};
use super::probe::plain;
use super::tool::ToolPart;
use crate::stream::{Denied, ProcessEnd, RunReport, Spent, StreamParser};

mod log;
mod text;

use log::Logged;
use text::AnswerText;

/// Number of stderr lines that are kept to explain an end.
const STDERR_LINES: usize = 20;

/// Number of consecutive steps without a reason after which the run is stopped. The CLI asks its
/// model again forever, three times a second (after a stream that was cut off).
const UNKNOWN_STEPS: u64 = 3;
/// Number of answers after which the run is stopped. The CLI answers forever if messages are dated
/// in the future. A correct run has at most one answer, a summary and its continuation.
const ANSWERS: u64 = 12;

#[derive(Default)]
pub(super) struct Stream {
    seen: RunFacts,
    words: AnswerText,
    denied: Vec<Denied>,
    trail: Vec<rejoin_core::ToolNote>,
    tools: u64,
    usage: Usage,
    used: Option<u64>,
    dollars: Option<f64>,
    /// True if the last step ended with tool calls.
    goes_on: bool,
    unknown: u64,
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    #[serde(rename = "sessionID")]
    session: Option<String>,
    #[serde(default)]
    part: Value,
    error: Option<Value>,
}

impl StreamParser for Stream {
    fn line(&mut self, line: &[u8]) -> Vec<EventBody> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return vec![];
        }
        self.read(line).unwrap_or_else(|| self.not_understood(line))
    }

    fn stderr(&mut self, line: &[u8]) {
        let text = plain(&String::from_utf8_lossy(line)).trim().to_owned();
        match log::read(&text) {
            Some(Logged::Asks(id)) => self.seen.retries.asks(id),
            Some(Logged::Failed(id, said)) => self.seen.retries.failed(id, said),
            None if !text.is_empty() && self.seen.stderr.len() < STDERR_LINES => {
                self.seen.stderr.push(text);
            }
            Some(Logged::Other) | None => {}
        }
    }

    fn hears_stderr(&self) -> bool {
        true
    }

    fn patience(&self) -> Option<Duration> {
        self.seen.retries.patience()
    }

    fn give_up(&mut self) {
        self.seen.retries.give_up();
    }

    fn stop(&self) -> Option<String> {
        let loops = self.seen.looping.then(|| classify::LOOPS.to_owned());
        loops.or_else(|| self.seen.retries.hopeless().map(|failure| failure.message))
    }

    fn spent(&self) -> Option<Spent> {
        Some(Spent {
            usage: self.usage,
            total: self.dollars.and_then(Micros::from_dollars),
            goes_on: self.goes_on,
        })
    }

    fn finish(self: Box<Self>, end: &ProcessEnd) -> RunReport {
        let text = self.words.answer();
        let judged = classify::judge(&self.seen, !text.trim().is_empty(), end);
        let session = self.seen.session.as_deref();
        RunReport {
            outcome: judged.outcome,
            refused: judged.refused,
            text,
            session: session.and_then(|id| SessionId::new(id).ok()),
            model: None,
            version: None,
            usage: self.usage,
            // A request that was refused before the end of its first step cost nothing.
            total: self
                .dollars
                .or(self.seen.error.is_some().then_some(0.0))
                .and_then(Micros::from_dollars),
            context: None,
            used: self.used,
            denied: self.denied,
            tools_run: self.tools,
            trail: self.trail,
            withheld: vec![],
            compacted: self.words.compacted(),
            unknown_lines: self.unknown,
        }
    }
}

impl Stream {
    pub(super) fn not_understood(&mut self, line: &[u8]) -> Vec<EventBody> {
        self.unknown += 1;
        vec![EventBody::Raw {
            line: String::from_utf8_lossy(line).into_owned(),
        }]
    }

    pub(super) fn has_failed(&self) -> bool {
        self.seen.error.is_some()
    }

    /// Parses a line. None if it is not understood.
    fn read(&mut self, line: &[u8]) -> Option<Vec<EventBody>> {
        let line: Line = serde_json::from_slice(line).ok()?;
        let mut events = self.session(line.session);
        events.extend(self.said(&line.kind, line.part, line.error.as_ref())?);
        Some(events)
    }

    /// Handles a line of this kind. None if it is not understood.
    pub(super) fn said(
        &mut self,
        kind: &str,
        part: Value,
        error: Option<&Value>,
    ) -> Option<Vec<EventBody>> {
        let mut events = vec![];
        match kind {
            "step_start" => self.words.step(),
            "text" => events.extend(self.text(&part)?),
            "reasoning" => events.push(EventBody::Thinking {
                text: part["text"].as_str()?.to_owned(),
            }),
            "tool_use" => {
                self.words.calls(message(&part));
                let part = ToolPart::deserialize(part).ok()?;
                self.tools += 1;
                self.denied.extend(part.denied());
                self.trail.extend(part.note());
                events.extend(part.events());
            }
            "step_finish" => events.push(self.step_finish(&part)),
            "error" => self.seen.error = Some(ApiError::read(error?)),
            _ => return None,
        }
        Some(events)
    }

    /// Returns the state of failed and retried requests.
    pub(super) fn retries(&mut self) -> &mut Retries {
        &mut self.seen.retries
    }

    /// Records the session, which every line names. The first line is the earliest report of it.
    pub(super) fn session(&mut self, named: Option<String>) -> Vec<EventBody> {
        let Some(named) = named else { return vec![] };
        match &self.seen.session {
            Some(known) => {
                self.seen.moved |= *known != named;
                vec![]
            }
            None => {
                self.seen.session = Some(named.clone());
                vec![EventBody::TurnStarted {
                    session_id: Some(named),
                    model: None,
                    version: None,
                    tools: vec![],
                    permission: None,
                }]
            }
        }
    }

    fn text(&mut self, part: &Value) -> Option<Vec<EventBody>> {
        let text = part["text"].as_str()?.to_owned();
        if part["synthetic"] == true {
            let compacted = part["metadata"]["compaction_continue"] == true;
            return Some(compacted.then(|| self.compacted()).into_iter().collect());
        }
        self.words.text(message(part), &text);
        Some(vec![EventBody::Text {
            text,
            parent_tool: None,
        }])
    }

    fn compacted(&mut self) -> EventBody {
        self.words.summarised();
        EventBody::Compacted {
            trigger: "auto".into(),
            before: None,
            after: None,
        }
    }

    /// Handles the end of a step, whose token counts cover the step alone. The run's counts are
    /// their sum.
    fn step_finish(&mut self, part: &Value) -> EventBody {
        let reason = part["reason"].as_str().unwrap_or("unknown");
        self.words.finished(message(part), reason);
        self.goes_on = reason == "tool-calls";
        self.seen.step(reason, UNKNOWN_STEPS, ANSWERS);
        let tokens = &part["tokens"];
        let count = |value: &Value| value.as_u64().unwrap_or(0);
        let (input, output) = (count(&tokens["input"]), count(&tokens["output"]));
        let (read, write) = (
            count(&tokens["cache"]["read"]),
            count(&tokens["cache"]["write"]),
        );
        let all = [input, output, read, write]
            .into_iter()
            .fold(0, u64::saturating_add);
        // Reasoning tokens are counted separately and charged as output, unless the total already
        // includes them.
        let apart = tokens["total"].as_u64().is_none_or(|total| total > all);
        let thought = if apart {
            count(&tokens["reasoning"])
        } else {
            0
        };
        self.used = Some(input.saturating_add(read).saturating_add(write));
        let cache = &tokens["cache"];
        self.usage.add(Usage::from(Counts {
            input: tokens["input"].as_u64(),
            cache_read: cache["read"].as_u64(),
            cache_write: cache["write"].as_u64(),
            output: tokens["output"]
                .as_u64()
                .map(|it| it.saturating_add(thought)),
        }));
        if let Some(cost) = part["cost"].as_f64() {
            self.dollars = Some(self.dollars.unwrap_or(0.0) + cost);
        }
        EventBody::Usage {
            usage: self.usage,
            context: None,
        }
    }
}

/// Returns the id of the message that a part belongs to.
fn message(part: &Value) -> &str {
    part["messageID"].as_str().unwrap_or_default()
}
