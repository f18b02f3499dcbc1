//! What the CLI prints, line by line. It prints whole answers only, and says neither its model nor
//! how full the session is: that is in the session.

use rejoin_core::{EventBody, SessionId, Usage};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::classify;
use super::wire::{Completed, Failed, Head, Item, Message, Thread, WithItem};
use crate::stream::{Denied, End, Ran, StreamParser};

mod tools;

pub(super) use tools::Tools;

/// Lines of stderr that are kept to explain an end without a result.
const STDERR_LINES: usize = 40;

#[derive(Default)]
pub(super) struct Stream {
    seen: classify::Seen,
    texts: Vec<String>,
    tools: Tools,
    /// Over the whole thread.
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

    fn finish(self: Box<Self>, end: &End) -> Ran {
        let judged = classify::judge(&self.seen, end);
        let session = self.seen.thread.as_deref();
        Ran {
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
    /// None: not understood.
    fn read(&mut self, line: &[u8]) -> Option<Vec<EventBody>> {
        let head: Head = parse(line)?;
        match head.kind.as_str() {
            "thread.started" => Some(self.started(parse(line)?)),
            "turn.started" => Some(vec![]),
            "item.started" | "item.updated" => Some(self.begun(&parse::<WithItem>(line)?.item)),
            "item.completed" => self.done(parse::<WithItem>(line)?.item),
            "turn.completed" => Some(self.completed(&parse(line)?)),
            "turn.failed" => Some(self.failed(parse(line)?)),
            "error" => Some(self.trouble(parse(line)?)),
            _ => None,
        }
    }

    fn started(&mut self, thread: Thread) -> Vec<EventBody> {
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
            // Told when they are whole.
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
            // A kind nobody knows is a tool if it was begun, or says what became of it.
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

    /// There is no event of the tokens: these are the thread's, and what is the turn's own is known
    /// only to whoever knows the thread.
    fn completed(&mut self, completed: &Completed) -> Vec<EventBody> {
        self.seen.completed = true;
        self.usage = completed.usage.map(Usage::from).unwrap_or_default();
        vec![]
    }

    fn failed(&mut self, failed: Failed) -> Vec<EventBody> {
        let message = failed.error.message;
        let told = self.seen.trouble.as_ref() == Some(&message);
        self.seen.failed = Some(message.clone());
        if told {
            vec![]
        } else {
            vec![EventBody::warning(message)]
        }
    }

    /// Not the end: "Reconnecting…" is one as well.
    fn trouble(&mut self, error: Message) -> Vec<EventBody> {
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

/// `… ERROR codex_core::tools::router: error=patch rejected: writing is blocked by read-only
/// sandbox …`: all there is of a call that was turned down.
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
