//! Parser of the output of a described CLI.

use rejoin_core::{Class, Counts, EventBody, Micros, Outcome, SessionId, TotalsScope, Usage};
use serde_json::Value;

use super::GenericConfig;
use crate::failure::{self, failed};
use crate::stream::{EndCause, ProcessEnd, RunReport, Spent, StreamParser};

pub(super) struct Stream {
    name: &'static str,
    config: GenericConfig,
    session: Option<SessionId>,
    /// True if the first line named the session.
    named_first: bool,
    lines: u64,
    text: String,
    usage: Usage,
    total: Option<Micros>,
    done: bool,
    error: Option<String>,
    stderr: Vec<String>,
    unknown_lines: u64,
}

/// Number of stderr lines that are kept, the last ones.
const KEPT: usize = 20;

impl Stream {
    pub(super) fn new(name: &'static str, config: GenericConfig) -> Self {
        Self {
            name,
            config,
            session: None,
            named_first: false,
            lines: 0,
            text: String::new(),
            usage: Usage::default(),
            total: None,
            done: false,
            error: None,
            stderr: vec![],
            unknown_lines: 0,
        }
    }

    fn json(&mut self, line: &Value) -> Vec<EventBody> {
        self.lines += 1;
        let config = &self.config;
        let mut events = vec![];
        let number = |pick: &Option<super::JsonPath>| pick.as_ref()?.find(line)?.as_u64();
        let named = config.session_from.as_ref().and_then(|p| p.text(line));
        if let Some(id) = named.and_then(|id| SessionId::new(id).ok())
            && self.session.is_none()
        {
            events.push(EventBody::TurnStarted {
                session_id: Some(id.to_string()),
                model: None,
                version: None,
                tools: vec![],
                permission: None,
            });
            self.named_first = self.lines == 1;
            self.session = Some(id);
        }
        for text in config.text_from.iter().filter_map(|p| p.text(line)) {
            self.text.push_str(&text);
            events.push(EventBody::Text {
                text,
                parent_tool: None,
            });
        }
        let adds_up = config.totals == Some(TotalsScope::Cumulative);
        let count = |before: u64, now: Option<u64>| match now {
            Some(now) if adds_up => now,
            Some(now) => before.saturating_add(now),
            None => before,
        };
        let (input, output) = (number(&config.input_from), number(&config.output_from));
        self.usage.input = count(self.usage.input, input);
        self.usage.output = count(self.usage.output, output);
        self.usage.add(Usage::from(Counts {
            input: input.map(|_| 0),
            output: output.map(|_| 0),
            ..Counts::default()
        }));
        let cost = config
            .cost_from
            .as_ref()
            .and_then(|p| p.find(line)?.as_f64());
        self.total = cost.and_then(Micros::from_dollars).or(self.total);
        self.error = config
            .error_from
            .as_ref()
            .and_then(|p| p.text(line))
            .or(self.error.take());
        let done = config.done_on.as_deref();
        self.done |= done.is_some() && line["type"].as_str() == done;
        events
    }

    /// True if the CLI refused the session. Only its first output counts, because the stream does
    /// not report tool calls.
    fn refused(&self, end: &ProcessEnd) -> bool {
        let said = self.config.refused.as_ref().is_some_and(|words| {
            let spoken = self.stderr.iter().chain(&self.error);
            self.text.is_empty()
                && self.lines <= 1
                && spoken.into_iter().any(|line| line.contains(words.as_str()))
        });
        let other = self.moved(end);
        said || (other && self.named_first)
    }

    fn moved(&self, end: &ProcessEnd) -> bool {
        match (&end.asked_session, &self.session) {
            (Some(asked), Some(opened)) => asked != opened,
            _ => false,
        }
    }

    fn outcome(&self, end: &ProcessEnd) -> Outcome {
        let name = self.name;
        if self.refused(end) {
            let message = format!("{name} does not know the session");
            return failed(Class::Refused, message);
        }
        if self.moved(end) {
            let message = format!("{name} went on in another session");
            return failed(Class::NotRecorded, message);
        }
        let whole = !end.torn || self.config.text_from.is_empty();
        let finished = self.config.done_on.is_none() || self.done;
        let seen = end.code == Some(0) || (end.cause == EndCause::Unseen && self.done);
        if seen && finished && whole && self.error.is_none() && !self.text.trim().is_empty() {
            return Outcome::Succeeded;
        }
        let last = self.stderr.last().cloned();
        let said = self.error.clone().or(last).unwrap_or_default();
        let explained = Some(said.clone()).filter(|said| !said.is_empty());
        if let Some(outcome) = failure::of_cause(end.cause, || explained) {
            return outcome;
        }
        let cause = match (end.cause, end.code, end.signal) {
            (EndCause::Unseen, _, _) => {
                let message = format!("{name} is gone and left no last word");
                return Outcome::Lost(failure::failure(Class::Lost, message));
            }
            (_, _, Some(signal)) => {
                let message = format!("{name} was ended by signal {signal}");
                return failed(Class::Crashed, message);
            }
            (_, Some(0), None) => "gave no answer".to_owned(),
            (_, code, None) => format!("ended with code {}", code.unwrap_or(-1)),
        };
        failed(Class::Unknown, format!("{name} {cause}. {said}").trim_end())
    }
}

impl StreamParser for Stream {
    fn line(&mut self, line: &[u8]) -> Vec<EventBody> {
        if self.config.text_from.is_empty() {
            // The whole output is the answer.
            let text = String::from_utf8_lossy(line)
                .trim_end_matches('\r')
                .to_owned()
                + "\n";
            self.text.push_str(&text);
            return vec![EventBody::Text {
                text,
                parent_tool: None,
            }];
        }
        match serde_json::from_slice::<Value>(line) {
            Ok(value) if value.is_object() => self.json(&value),
            Ok(_) | Err(_) => {
                self.unknown_lines += 1;
                vec![EventBody::Raw {
                    line: String::from_utf8_lossy(line).into_owned(),
                }]
            }
        }
    }

    /// Plain text may end without a newline.
    fn rest(&mut self, bytes: &[u8]) -> Vec<EventBody> {
        if self.config.text_from.is_empty() {
            return self.line(bytes);
        }
        vec![]
    }

    fn stderr(&mut self, line: &[u8]) {
        if self.stderr.len() == KEPT {
            self.stderr.remove(0);
        }
        self.stderr.push(String::from_utf8_lossy(line).into_owned());
    }

    fn spent(&self) -> Option<Spent> {
        Some(Spent {
            usage: self.usage,
            total: self.total,
            goes_on: !self.done,
        })
    }

    fn finish(self: Box<Self>, end: &ProcessEnd) -> RunReport {
        let (outcome, refused) = (self.outcome(end), self.refused(end));
        RunReport {
            outcome,
            refused,
            text: self.text.trim_end().to_owned(),
            // A CLI that receives its session id need not print it.
            session: self.session.or_else(|| end.asked_session.clone()),
            model: None,
            version: None,
            usage: self.usage,
            total: self.total,
            context: None,
            used: (self.usage.input > 0).then_some(self.usage.input),
            denied: vec![],
            tools_run: 0,
            trail: vec![],
            withheld: vec![],
            compacted: false,
            unknown_lines: self.unknown_lines,
        }
    }
}
