//! Parser of the events of the CLI's server, as the bridge prints them, for turns that use the
//! server. The parts of messages are the same as those that `run` prints, in other wrappers.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use rejoin_core::{Asked, EventBody, Given};
use serde::Deserialize;
use serde_json::Value;

use super::serve::{ASKS_NOBODY, END, SESSION};
use super::stream::Stream;
use super::tool::ToolPart;
use crate::stream::{ProcessEnd, Reply, RunReport, Spent, StreamParser};

mod asking;

use asking::PermissionRequest;

#[derive(Default)]
pub(super) struct Dialogue {
    /// True if the bridge decides about requests, not a person.
    alone: bool,
    stream: Stream,
    asking: PermissionRequest,
    /// Tools that have begun and not ended, by the id of their call.
    running: BTreeMap<String, ToolPart>,
    /// Ids of all observed calls.
    calls: HashSet<String>,
    /// Ids of complete parts, which may be reported again.
    done: HashSet<String>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    properties: Value,
}

impl StreamParser for Dialogue {
    fn line(&mut self, line: &[u8]) -> Vec<EventBody> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return vec![];
        }
        self.read(line)
            .unwrap_or_else(|| self.stream.not_understood(line))
    }

    fn stderr(&mut self, line: &[u8]) {
        self.stream.stderr(line);
    }

    fn asked(&mut self) -> Vec<Asked> {
        self.asking.take()
    }

    fn reply(&mut self, call_id: &str, given: Option<&Given>) -> Option<Reply> {
        self.asking.reply(call_id, given)
    }

    fn stop(&self) -> Option<String> {
        self.stream.stop()
    }

    fn patience(&self) -> Option<Duration> {
        self.stream.patience()
    }

    fn give_up(&mut self) {
        self.stream.give_up();
    }

    fn spent(&self) -> Option<Spent> {
        self.stream.spent()
    }

    fn finish(self: Box<Self>, end: &ProcessEnd) -> RunReport {
        let mut ran = Box::new(self.stream).finish(end);
        let begun = self.running.values().filter_map(ToolPart::note);
        ran.trail.extend(begun);
        let waits = |part: &&ToolPart| self.asking.waits(part.id());
        let waiting = self.running.values().filter(waits);
        ran.withheld = waiting.filter_map(ToolPart::note).collect();
        ran.tools_run = ran.tools_run.max(self.calls.len() as u64);
        ran.denied.extend(self.asking.unanswered());
        ran
    }
}

impl Dialogue {
    pub(super) fn of(dialogue: &str) -> Self {
        Self {
            alone: dialogue == ASKS_NOBODY,
            ..Self::default()
        }
    }

    /// Handles a line. None if it is not understood.
    fn read(&mut self, line: &[u8]) -> Option<Vec<EventBody>> {
        let Event {
            kind,
            mut properties,
        } = serde_json::from_slice(line).ok()?;
        match kind.as_str() {
            SESSION => {
                let named = properties["sessionID"].as_str()?.to_owned();
                Some(self.stream.session(Some(named)))
            }
            "message.part.updated" => self.part(properties["part"].take()),
            "permission.asked" | "question.asked" if self.alone => Some(vec![]),
            "permission.asked" => {
                let call = properties["tool"]["callID"].as_str().unwrap_or_default();
                self.asking.permission(&properties, self.running.get(call))
            }
            "question.asked" => self.asking.question(&properties),
            // If there are several, the first is the cause.
            "session.error" if self.stream.has_failed() => Some(vec![]),
            "session.error" => self
                .stream
                .said("error", Value::Null, properties.get("error")),
            "session.status" => {
                let id = properties["sessionID"].as_str().unwrap_or_default();
                Some(self.status(id, &properties["status"]))
            }
            "permission.replied" | "question.replied" | "question.rejected" | "session.idle"
            | END => Some(vec![]),
            _ => None,
        }
    }

    /// Handles the status of a session. A retry of a failed API call is reported, which `run` does
    /// silently.
    fn status(&mut self, id: &str, status: &Value) -> Vec<EventBody> {
        match status["type"].as_str() {
            Some("retry") => {
                let why = status["message"].as_str().unwrap_or("it did not say why");
                self.stream.retries().failed(id, why.to_owned());
                vec![EventBody::notice(format!(
                    "The API failed and is tried again ({}): {why}",
                    status["attempt"]
                ))]
            }
            Some("busy") => {
                self.stream.retries().asks(id);
                vec![]
            }
            Some(_) | None => vec![],
        }
    }

    /// Handles a part. It is reported at every change, but counts only when it is complete.
    fn part(&mut self, part: Value) -> Option<Vec<EventBody>> {
        let id = part["id"].as_str().unwrap_or_default().to_owned();
        let ended = !part["time"]["end"].is_null();
        let kind = match part["type"].as_str()? {
            "step-start" => "step_start",
            "step-finish" => "step_finish",
            "text" if ended => "text",
            "reasoning" if ended => "reasoning",
            "tool" => return self.tool(part, id),
            _ => return Some(vec![]),
        };
        if !self.done.insert(id) {
            return Some(vec![]);
        }
        self.stream.said(kind, part, None)
    }

    fn tool(&mut self, part: Value, id: String) -> Option<Vec<EventBody>> {
        let tool = ToolPart::deserialize(&part).ok()?;
        if tool.runs() {
            self.calls.insert(tool.id().to_owned());
            self.running.insert(tool.id().to_owned(), tool);
            return Some(vec![]);
        }
        if !tool.ended() || !self.done.insert(id) {
            return Some(vec![]);
        }
        self.running.remove(tool.id());
        self.stream.said("tool_use", part, None)
    }
}
