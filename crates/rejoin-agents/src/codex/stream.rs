//! Parser of the CLI's output, line by line. The CLI prints only complete answers, and neither its
//! model nor the context use, which are in the session.

use rejoin_core::{EventBody, SessionId, Usage};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::classify;
use super::wire::{
    ErrorBody, Item, ItemLine, LineHeader, ThreadStarted, TurnCompleted, TurnFailed,
};
use crate::stream::{Denied, ProcessEnd, RunReport, StreamParser};

mod tools;

pub(super) use tools::Tools;

/// Number of stderr lines that are kept to explain an end without a result.
const STDERR_LINES: usize = 40;

#[derive(Default)]
pub(super) struct Stream {
    seen: classify::RunFacts,
    texts: Vec<String>,
    tools: Tools,
    /// Tokens of the whole thread.
    usage: Usage,
    denied: Vec<Denied>,
    unknown: u64,
}

impl StreamParser for Stream {
    fn line(&mut self, line: &[u8]) -> Vec<EventBody> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return vec![];
        }
        self.read(line).unwrap_or_else(|| {
            self.unknown += 1;
            vec![EventBody::Raw {
                line: String::from_utf8_lossy(line).into_owned(),
            }]
        })
    }

    fn stderr(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line).trim().to_owned();
        self.denied.extend(rejected(&text));
        if !text.is_empty() && self.seen.stderr.len() < STDERR_LINES {
            self.seen.stderr.push(text);
        }
    }

    fn finish(self: Box<Self>, end: &ProcessEnd) -> RunReport {
        let judged = classify::judge(&self.seen, end);
        let session = self.seen.thread.as_deref();
        RunReport {
            outcome: judged.outcome,
            refused: judged.refused,
            text: self.texts.join("\n\n"),
            session: session.and_then(|id| SessionId::new(id).ok()),
            model: None,
            version: None,
            usage: self.usage,
            total: None,
            context: None,
            used: None,
            tools_run: self.tools.run(),
            trail: self.tools.trail(&self.denied),
            denied: self.denied,
            withheld: vec![],
            compacted: false,
            unknown_lines: self.unknown,
        }
    }
}

impl Stream {
    /// Parses a line. None if it is not understood.
    fn read(&mut self, line: &[u8]) -> Option<Vec<EventBody>> {
        let head: LineHeader = parse(line)?;
        match head.kind.as_str() {
            "thread.started" => Some(self.started(parse(line)?)),
            "turn.started" => Some(vec![]),
            "item.started" | "item.updated" => Some(self.begun(&parse::<ItemLine>(line)?.item)),
            "item.completed" => self.done(parse::<ItemLine>(line)?.item),
            "turn.completed" => Some(self.completed(&parse(line)?)),
            "turn.failed" => Some(self.failed(parse(line)?)),
            "error" => Some(self.trouble(parse(line)?)),
            _ => None,
        }
    }

    fn started(&mut self, thread: ThreadStarted) -> Vec<EventBody> {
        if let Some(known) = &self.seen.thread {
            self.seen.moved |= *known != thread.thread_id;
            return vec![];
        }
        self.seen.thread = Some(thread.thread_id.clone());
        vec![EventBody::TurnStarted {
            session_id: Some(thread.thread_id),
            model: None,
            version: None,
            tools: vec![],
            permission: None,
        }]
    }

    fn begun(&mut self, item: &Item) -> Vec<EventBody> {
        match item.kind.as_str() {
            // Reported when they are complete.
            "agent_message" | "reasoning" | "error" => vec![],
            "todo_list" => vec![todo(item)],
            _ => self.tools.call(item),
        }
    }

    fn done(&mut self, item: Item) -> Option<Vec<EventBody>> {
        match item.kind.as_str() {
            "agent_message" => {
                let text = item.text?;
                self.texts.push(text.clone());
                Some(vec![EventBody::Text {
                    text,
                    parent_tool: None,
                }])
            }
            "reasoning" => Some(vec![EventBody::Thinking { text: item.text? }]),
            "error" => Some(vec![EventBody::warning(item.message?)]),
            "todo_list" => Some(vec![todo(&item)]),
            // An unknown kind is a tool if it was begun, or has a status.
            _ if self.tools.knows(&item) || item.status.is_some() => {
                let mut events = self.tools.call(&item);
                let (results, denied) = self.tools.result(&item);
                events.extend(results);
                self.denied.extend(denied);
                Some(events)
            }
            "web_search" => {
                let mut events = self.tools.call(&item);
                events.extend(self.tools.result(&item).0);
                Some(events)
            }
            _ => None,
        }
    }

    /// Records the token counts without an event: they cover the whole thread, and the share of
    /// this turn is known only with the earlier counts of the thread.
    fn completed(&mut self, completed: &TurnCompleted) -> Vec<EventBody> {
        self.seen.completed = true;
        self.usage = completed.usage.map(Usage::from).unwrap_or_default();
        vec![]
    }

    fn failed(&mut self, failed: TurnFailed) -> Vec<EventBody> {
        let message = failed.error.message;
        let told = self.seen.trouble.as_ref() == Some(&message);
        self.seen.failed = Some(message.clone());
        if told {
            vec![]
        } else {
            vec![EventBody::warning(message)]
        }
    }

    /// Records an error that is not the end: "Reconnecting…" is one as well.
    fn trouble(&mut self, error: ErrorBody) -> Vec<EventBody> {
        self.seen.trouble = Some(error.message.clone());
        vec![EventBody::warning(error.message)]
    }
}

fn todo(item: &Item) -> EventBody {
    let list = item.rest["items"].as_array().cloned().unwrap_or_default();
    let shown = list.iter().map(|entry| {
        let status = if entry["completed"] == true {
            "completed"
        } else {
            "pending"
        };
        json!({"text": entry["text"], "status": status})
    });
    EventBody::Todo {
        items: shown.collect(),
    }
}

/// Parses `… ERROR codex_core::tools::router: error=patch rejected: writing is blocked by read-only
/// sandbox …`, the only trace of a call that was rejected.
fn rejected(line: &str) -> Option<Denied> {
    let said = line.split_once("tools::router: error=")?.1;
    let tool = if said.starts_with("patch rejected") {
        "apply_patch"
    } else if said.contains("reject command") || said.contains("rejected:") {
        "exec_command"
    } else {
        return None;
    };
    Some(Denied {
        tool: tool.into(),
        id: String::new(),
        input: said.chars().take(300).collect(),
    })
}

fn parse<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    serde_json::from_slice(line).ok()
}
