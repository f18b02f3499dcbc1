//! Parser of the CLI's output, line by line.

use rejoin_core::{Asked, EventBody, Given, SessionId};
use serde::de::DeserializeOwned;

use super::classify;
use super::hook::Call;
use super::wire::{
    Block, Boundary, Denial, Finished, Init, LineHeader, MessageLine, Partial, PartialEvent,
    RateLimit, SYNTHETIC,
};
use crate::stream::{ProcessEnd, Reply, RunReport, Say, StreamParser};

mod control;
mod money;
mod notices;
mod text;
mod tools;

use control::Control;
use money::Money;
use text::AnswerText;
use tools::Tools;

pub(super) use text::of_result;

/// Number of stderr lines that are kept to explain an end without a result.
const STDERR_LINES: usize = 20;

/// Maximum size of a tool's output in an event.
const RESULT_BYTES: usize = 64 * 1024;

#[derive(Default)]
pub(super) struct Stream {
    seen: classify::RunFacts,
    model: Option<String>,
    version: Option<String>,
    words: AnswerText,
    tools: Tools,
    money: Money,
    control: Control,
    compacted: bool,
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
        if !text.is_empty() && self.seen.stderr.len() < STDERR_LINES {
            self.seen.stderr.push(text);
        }
    }

    fn aside(&mut self, line: &[u8]) {
        if let Some(call) = Call::read(line) {
            self.control.held(call);
        }
    }

    fn has_aside(&self) -> bool {
        true
    }

    fn deferred(&self) -> Option<String> {
        let last = self.seen.results.last()?;
        let call = Call::of(last.deferred_tool_use.as_ref()?)?;
        classify::is_deferred(last).then_some(call.id)
    }

    fn asked(&mut self) -> Vec<Asked> {
        self.control.take_asked()
    }

    fn reply(&mut self, call_id: &str, given: Option<&Given>) -> Option<Reply> {
        self.control.reply(call_id, given)
    }

    fn says(&mut self) -> Vec<Say> {
        self.control.take_says()
    }

    fn finish(self: Box<Self>, end: &ProcessEnd) -> RunReport {
        let judged = classify::judge(&self.seen, end);
        let results = &self.seen.results;
        RunReport {
            outcome: judged.outcome,
            refused: judged.refused,
            text: self.words.answer(results),
            session: self
                .seen
                .session
                .as_deref()
                .and_then(|id| SessionId::new(id).ok()),
            version: self.version,
            usage: self.money.usage(),
            total: self.money.total(results),
            context: self.money.context(self.model.as_deref(), results),
            used: None,
            model: self.model,
            tools_run: self.tools.run(|id| self.control.gave_up(id)),
            trail: self.tools.trail(|id| self.control.is_denied(id)),
            withheld: self.tools.withheld(|id| self.control.waits(id)),
            denied: self.control.denied(),
            compacted: self.compacted,
            unknown_lines: self.unknown,
        }
    }
}

impl Stream {
    /// Parses a line. None if it is not understood.
    fn read(&mut self, line: &[u8]) -> Option<Vec<EventBody>> {
        let head: LineHeader = parse(line)?;
        match (head.kind.as_str(), head.subtype.as_deref()) {
            ("assistant", _) => Some(self.assistant(parse(line)?)),
            ("user", _) => Some(self.user(parse(line)?)),
            ("result", _) => Some(self.result(parse(line)?)),
            ("stream_event", _) => Some(self.partial(parse(line)?)),
            ("control_request", _) => Some(self.control.asked(parse(line)?)),
            ("system", Some("init")) => Some(self.init(parse(line)?)),
            ("system", Some("compact_boundary")) => Some(self.boundary(parse(line)?)),
            ("system", Some("api_retry")) => Some(vec![notices::retry(&parse(line)?)]),
            ("system", Some("permission_denied")) => Some(self.denied(&parse(line)?)),
            ("rate_limit_event", _) => Some(self.limit(parse(line)?)),
            (kind, subtype) => notices::is_quiet(kind, subtype).then(Vec::new),
        }
    }

    /// Handles an `init`, which the CLI prints again at the start of every turn of a process.
    fn init(&mut self, init: Init) -> Vec<EventBody> {
        let first = !self.seen.init;
        self.seen.init = true;
        if first {
            self.seen.session.clone_from(&init.session_id);
        } else if self.seen.session != init.session_id {
            self.seen.moved = true;
        }
        self.model = init.model.or(self.model.take());
        self.version = init.claude_code_version.or(self.version.take());
        if !first {
            return vec![];
        }
        vec![EventBody::TurnStarted {
            session_id: self.seen.session.clone(),
            model: self.model.clone(),
            version: self.version.clone(),
            tools: init.tools.unwrap_or_default(),
            permission: init.permission_mode,
        }]
    }

    /// Handles an `assistant` line. Each line has one content block; the blocks of one message
    /// share its id.
    fn assistant(&mut self, said: MessageLine) -> Vec<EventBody> {
        let parent = said.parent_tool_use_id;
        let failed = said.error.is_some() || said.is_api_error_message == Some(true);
        if failed || said.message.model.as_deref() == Some(SYNTHETIC) {
            let text = text::plain(said.message.blocks());
            if failed && parent.is_none() {
                self.seen.api = Some(classify::ApiError {
                    word: said.error,
                    status: said.api_error_status,
                    text: text.clone(),
                });
            }
            return if text.is_empty() {
                vec![]
            } else {
                vec![EventBody::warning(text)]
            };
        }
        let id = said.message.id.clone().unwrap_or_default();
        if let Some(usage) = said.message.usage {
            self.money.call(
                parent.as_deref(),
                &id,
                said.message.model.as_deref(),
                usage.into(),
            );
        }
        let mut events = vec![];
        for block in said.message.blocks() {
            match block {
                Block::Text { text } => {
                    if parent.is_none() {
                        self.words.text(&id, &text);
                    }
                    events.push(EventBody::Text {
                        text,
                        parent_tool: parent.clone(),
                    });
                }
                Block::Thinking { thinking } => {
                    if !thinking.is_empty() && parent.is_none() {
                        events.push(EventBody::Thinking { text: thinking });
                    }
                }
                Block::ToolUse { id, name, input } => {
                    if parent.is_none() {
                        self.words.pause();
                    }
                    self.control.called(&id, &input);
                    events.extend(self.tools.call(id, name, input, parent.clone()));
                }
                Block::ToolResult { .. } | Block::Other => {}
            }
        }
        events
    }

    /// Handles tool results. Text in these lines comes from the CLI or from a sub-agent's prompt,
    /// never from a person.
    fn user(&mut self, said: MessageLine) -> Vec<EventBody> {
        let structured = said.tool_use_result.unwrap_or_default();
        let mut events = vec![];
        for block in said.message.blocks() {
            match block {
                Block::ToolResult {
                    tool_use_id,
                    content,
                    is_error,
                } => {
                    self.money.sub_agent_ended(&tool_use_id, &structured);
                    let is_error = is_error.unwrap_or(false);
                    let text = text::shorten(text::of_result(&content), RESULT_BYTES);
                    let more = self.tools.result(&tool_use_id, is_error, &structured);
                    let tool = self.tools.name(&tool_use_id).filter(|_| is_error);
                    events.extend(
                        tool.and_then(|tool| self.control.unheard(tool, &tool_use_id, &text)),
                    );
                    events.push(EventBody::ToolResult {
                        id: tool_use_id,
                        is_error,
                        exit_code: exit_code(&text),
                        text,
                    });
                    events.extend(more);
                }
                Block::Text { .. }
                | Block::Thinking { .. }
                | Block::ToolUse { .. }
                | Block::Other => {}
            }
        }
        events
    }

    /// Handles a `result`. There may be several: a background task that ends starts another round.
    fn result(&mut self, result: Finished) -> Vec<EventBody> {
        self.money.result(&result);
        let mut denials = vec![];
        for denial in result.permission_denials.as_deref().unwrap_or_default() {
            denials.extend(self.control.refused(denial));
        }
        // The note of the hook may not have been read.
        if let Some(call) = result.deferred_tool_use.as_ref().and_then(Call::of) {
            self.control.held(call);
        }
        self.seen.results.push(result);
        let context = self
            .money
            .context(self.model.as_deref(), &self.seen.results);
        denials.push(EventBody::Usage {
            usage: self.money.usage(),
            context,
        });
        denials
    }

    fn partial(&mut self, partial: Partial) -> Vec<EventBody> {
        match partial.event {
            PartialEvent::ContentBlockDelta {
                delta: super::wire::Delta::TextDelta { text },
            } if partial.parent_tool_use_id.is_none() => {
                vec![EventBody::TextDelta { text }]
            }
            PartialEvent::MessageDelta { usage: Some(usage) }
                if partial.parent_tool_use_id.is_none() =>
            {
                self.money.output(usage.into());
                vec![]
            }
            PartialEvent::ContentBlockDelta { .. }
            | PartialEvent::MessageDelta { .. }
            | PartialEvent::Other => vec![],
        }
    }

    fn boundary(&mut self, boundary: Boundary) -> Vec<EventBody> {
        self.compacted = true;
        let seen = boundary.compact_metadata;
        vec![EventBody::Compacted {
            trigger: seen.trigger.unwrap_or_else(|| "unknown".into()),
            before: seen.pre_tokens,
            after: seen.post_tokens,
        }]
    }

    fn denied(&mut self, denial: &Denial) -> Vec<EventBody> {
        self.control.refused(denial).into_iter().collect()
    }

    fn limit(&mut self, limit: RateLimit) -> Vec<EventBody> {
        let (resets, event) = notices::limit(limit.rate_limit_info);
        self.seen.resets = resets.or(self.seen.resets.take());
        event.into_iter().collect()
    }
}

fn parse<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    serde_json::from_slice(line).ok()
}

/// Returns the exit code at the beginning of a failed command's output (`Exit code 3`, 2.1.197).
fn exit_code(text: &str) -> Option<i64> {
    let first = text.strip_prefix("Exit code ")?.lines().next()?;
    first.trim().parse().ok()
}
