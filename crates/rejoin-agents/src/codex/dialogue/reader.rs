//! Parser that conducts the dialogue with the server, line by line.

use rejoin_core::{Asked, EventBody, Given, SessionId, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::classify;
use super::super::stream::Tools;
use super::super::wire::Item;
use super::approvals::Approvals;
use super::wire::{ApprovalParams, ErrorBody, Opened, RpcError, TokenUsageUpdate, Turn, WithTurn};
use super::{Dialogue, END, HELLO, POLICY, REVIEWER, THREAD, TURN, UNHEARD, items};
use crate::rpc::Message;
use crate::stream::{Denied, ProcessEnd, Reply, RunReport, Say, Spent, StreamParser};
use crate::tool_note::one_line;

/// Number of stderr lines that are kept to explain an end without a result.
const STDERR_LINES: usize = 40;

/// Warning that the server always prints. It then uses its own bubblewrap.
const NO_NEWS: &str = "could not find bubblewrap";

/// Notifications about the server itself, not about the turn.
const QUIET: &[&str] = &[
    "configWarning",
    "deprecationNotice",
    "item/autoApprovalReview/completed",
    "item/autoApprovalReview/started",
    "item/commandExecution/terminalInteraction",
    "item/mcpToolCall/progress",
    "mcpServer/startupStatus/updated",
    "remoteControl/status/changed",
    "serverRequest/resolved",
    "skills/changed",
    "thread/goal/cleared",
    "thread/goal/updated",
    "thread/name/updated",
    "thread/settings/updated",
    "thread/started",
];

#[derive(Default)]
pub(crate) struct Reader {
    led_by: Dialogue,
    seen: classify::RunFacts,
    model: Option<String>,
    /// Id of the turn that rejoin requested, once the server has named it.
    turn: Option<String>,
    texts: Vec<String>,
    tools: Tools,
    approvals: Approvals,
    says: Vec<Say>,
    /// Tokens of the whole thread.
    usage: Usage,
    /// True if a tool was called since the model last wrote text.
    called: bool,
    compacted: bool,
    unknown: u64,
}

impl StreamParser for Reader {
    fn line(&mut self, line: &[u8]) -> Vec<EventBody> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return vec![];
        }
        let message = serde_json::from_slice(line).ok();
        message.and_then(|it| self.read(it)).unwrap_or_else(|| {
            self.unknown += 1;
            vec![EventBody::Raw {
                line: String::from_utf8_lossy(line).into_owned(),
            }]
        })
    }

    fn stderr(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line).trim().to_owned();
        let news = !text.is_empty() && !text.contains(NO_NEWS);
        if news && self.seen.stderr.len() < STDERR_LINES {
            self.seen.stderr.push(text);
        }
    }

    fn asked(&mut self) -> Vec<Asked> {
        self.approvals.take_asked()
    }

    fn reply(&mut self, call_id: &str, given: Option<&Given>) -> Option<Reply> {
        self.approvals.reply(call_id, given)
    }

    fn says(&mut self) -> Vec<Say> {
        let mut says = std::mem::take(&mut self.says);
        says.extend(self.approvals.take_says());
        says
    }

    fn spent(&self) -> Option<Spent> {
        Some(Spent {
            usage: self.usage,
            total: None,
            goes_on: self.called && !self.seen.completed,
        })
    }

    fn finish(self: Box<Self>, end: &ProcessEnd) -> RunReport {
        let judged = classify::judge(&self.seen, end);
        let session = self.seen.thread.as_deref();
        let denied = self.approvals.denied();
        RunReport {
            outcome: judged.outcome,
            refused: judged.refused,
            text: self.texts.join("\n\n"),
            session: session.and_then(|id| SessionId::new(id).ok()),
            model: self.model,
            version: None,
            usage: self.usage,
            total: None,
            context: None,
            used: None,
            tools_run: self.tools.run(),
            trail: self.tools.trail(&denied),
            withheld: self.tools.withheld(|id| self.approvals.waits(id)),
            denied,
            compacted: self.compacted,
            unknown_lines: self.unknown,
        }
    }
}

impl Reader {
    pub(crate) fn led_by(dialogue: &str) -> Self {
        Self {
            led_by: serde_json::from_str(dialogue).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Handles a message. None if it is not understood.
    fn read(&mut self, message: Message) -> Option<Vec<EventBody>> {
        match (message.method, message.id) {
            (Some(method), Some(id)) => {
                let about = ApprovalParams::deserialize(message.params).ok();
                self.called = true;
                Some(self.approvals.request(id, &method, about))
            }
            (Some(method), None) => self.told(&method, message.params),
            (None, Some(id)) => {
                let error = message.error.map(RpcError::deserialize);
                let error = error.map(Result::unwrap_or_default);
                self.answered(id.as_str()?, message.result, error)
            }
            (None, None) => None,
        }
    }

    fn say(&mut self, id: &str, method: &str, params: &Value) {
        let line = json!({"id": id, "method": method, "params": params});
        self.says.push(Say {
            key: id.to_owned(),
            line: format!("{line}\n"),
        });
    }

    /// Handles a response to a request of rejoin.
    fn answered(
        &mut self,
        id: &str,
        result: Value,
        error: Option<RpcError>,
    ) -> Option<Vec<EventBody>> {
        if let Some(error) = error {
            return Some(self.failed_at(id, &error));
        }
        match id {
            THREAD => Some(self.opened(Opened::deserialize(result).ok()?)),
            TURN => {
                self.turn = Some(WithTurn::deserialize(result).ok()?.turn.id);
                Some(vec![])
            }
            _ => Some(vec![]),
        }
    }

    fn failed_at(&mut self, id: &str, error: &RpcError) -> Vec<EventBody> {
        let mut said = error.message.clone();
        if !error.data.is_null() {
            said = format!("{said} {}", error.data);
        }
        match id {
            TURN => self.seen.failed = Some(said),
            // `exec` prints the reason why a session is not loaded in the same form.
            HELLO | THREAD => self.seen.stderr.insert(0, format!("Error: {said}")),
            END => return vec![],
            _ => {
                let lost = format!("what was said to the agent did not reach it: {said}");
                return vec![EventBody::warning(lost)];
            }
        }
        self.end();
        vec![]
    }

    /// Ends the run: rejoin sends no more requests.
    fn end(&mut self) {
        self.say(END, "thread/loaded/list", &json!({}));
    }

    /// Sends the prompt if the server opened the requested session with the requested permissions.
    fn opened(&mut self, opened: Opened) -> Vec<EventBody> {
        if self.seen.thread.is_some() {
            return vec![];
        }
        let thread = opened.thread.id.clone();
        let elsewhere = |asked: &String| !asked.eq_ignore_ascii_case(&thread);
        let wrong = self.led_by.session.as_ref().is_some_and(elsewhere);
        self.seen.thread = Some(thread.clone());
        self.model.clone_from(&opened.model);
        self.seen.wider = wider(&opened);
        if wrong || self.seen.wider.is_some() || self.led_by.prompt.is_empty() {
            self.end();
        } else {
            let input = json!([{"type": "text", "text": self.led_by.prompt}]);
            self.say(
                TURN,
                "turn/start",
                &json!({"threadId": thread, "input": input}),
            );
        }
        vec![EventBody::TurnStarted {
            session_id: Some(thread),
            model: opened.model,
            version: None,
            tools: vec![],
            permission: opened.approval_policy.as_str().map(str::to_owned),
        }]
    }

    fn told(&mut self, method: &str, params: Value) -> Option<Vec<EventBody>> {
        if QUIET.contains(&method) || UNHEARD.contains(&method) {
            return Some(vec![]);
        }
        let thread = params["threadId"].as_str();
        if thread.is_some() && thread != self.seen.thread.as_deref() {
            // Notification of a sub-agent.
            return Some(vec![]);
        }
        match method {
            // The response to rejoin's request says which turn is its own.
            "turn/started" => Some(vec![]),
            "item/started" => Some(self.begun(&items::as_printed(&params["item"])?)),
            "item/completed" => self.done(items::as_printed(&params["item"])?),
            "item/agentMessage/delta" => Some(vec![EventBody::TextDelta {
                text: params["delta"].as_str()?.to_owned(),
            }]),
            "turn/plan/updated" => Some(vec![todo(&params["plan"])]),
            "thread/tokenUsage/updated" => {
                let counted = TokenUsageUpdate::deserialize(params).ok()?;
                // When a session is opened, the server reports its earlier usage.
                if self.turn.as_ref() == Some(&counted.turn_id) {
                    self.usage = counted.token_usage.total.into();
                }
                Some(vec![])
            }
            "thread/compacted" => Some(self.was_compacted()),
            "turn/completed" => Some(self.completed(WithTurn::deserialize(params).ok()?.turn)),
            "error" => {
                let trouble = ErrorBody::deserialize(&params["error"]).ok()?;
                self.seen.trouble = Some(trouble.message.clone());
                Some(vec![EventBody::warning(trouble.message)])
            }
            "warning" | "guardianWarning" => {
                Some(vec![EventBody::warning(params["message"].as_str()?)])
            }
            _ => None,
        }
    }

    fn begun(&mut self, item: &Item) -> Vec<EventBody> {
        match item.kind.as_str() {
            // Reported when they are complete.
            "agent_message" | "reasoning" | "user_message" | "plan" | "context_compaction" => {
                vec![]
            }
            kind => {
                if kind == "file_change" {
                    self.approvals.told(&item.id, &item.rest["changes"]);
                }
                self.called = true;
                self.tools.call(item)
            }
        }
    }

    fn done(&mut self, item: Item) -> Option<Vec<EventBody>> {
        match item.kind.as_str() {
            "agent_message" => {
                let text = item.text?;
                self.called = false;
                self.texts.push(text.clone());
                Some(vec![EventBody::Text {
                    text,
                    parent_tool: None,
                }])
            }
            "reasoning" => {
                let thought = items::thoughts(&item).map(|text| EventBody::Thinking { text });
                Some(thought.into_iter().collect())
            }
            "user_message" | "plan" => Some(vec![]),
            "context_compaction" => Some(self.was_compacted()),
            _ => {
                let mut events = self.tools.call(&item);
                events.extend(self.unasked(&item));
                // Denials are known from the answers.
                let (results, _denied): (_, Option<Denied>) = self.tools.result(&item);
                events.extend(results);
                Some(events)
            }
        }
    }

    /// Returns a warning for a command that a rule of the user allowed, because the user wanted to
    /// be asked.
    fn unasked(&self, item: &Item) -> Option<EventBody> {
        let asked_about = matches!(item.kind.as_str(), "command_execution" | "file_change");
        let done = matches!(item.status.as_deref(), Some("completed" | "failed"));
        (asked_about && done && self.approvals.passed_by(&item.id)).then(|| {
            let what = one_line(item.rest["command"].as_str().unwrap_or("a patch"));
            EventBody::warning(format!(
                "Codex did not ask about this: {what}. A rule of yours allows it."
            ))
        })
    }

    fn was_compacted(&mut self) -> Vec<EventBody> {
        if std::mem::replace(&mut self.compacted, true) {
            return vec![];
        }
        vec![EventBody::Compacted {
            trigger: "auto".into(),
            before: None,
            after: None,
        }]
    }

    fn completed(&mut self, turn: Turn) -> Vec<EventBody> {
        if self.turn.as_ref().is_some_and(|ours| *ours != turn.id) {
            return vec![];
        }
        match (turn.status.as_str(), turn.error) {
            ("completed", None) => self.seen.completed = true,
            (_, Some(error)) => {
                let told = self.seen.trouble.as_ref() == Some(&error.message);
                self.seen.failed = Some(error.message.clone());
                if !told {
                    return vec![EventBody::warning(error.message)];
                }
            }
            // The turn was interrupted.
            (_, None) => {}
        }
        vec![]
    }
}

/// Returns in which way the effective permissions are wider than requested. None if they are not.
fn wider(opened: &Opened) -> Option<String> {
    let sandbox = &opened.sandbox["type"];
    for (what, is, should) in [
        ("approval policy", &opened.approval_policy, POLICY),
        (
            "reviewer of approvals",
            &opened.approvals_reviewer,
            REVIEWER,
        ),
        ("sandbox", sandbox, "workspaceWrite"),
    ] {
        if is != should && !(what == "sandbox" && is == "readOnly") {
            return Some(format!("its {what} is {is}, not {should}"));
        }
    }
    None
}

fn todo(plan: &Value) -> EventBody {
    let list = plan.as_array().cloned().unwrap_or_default();
    let shown = list.iter().map(|entry| {
        let status = match entry["status"].as_str() {
            Some("completed") => "completed",
            Some("inProgress") => "in_progress",
            Some(_) | None => "pending",
        };
        json!({"text": entry["step"], "status": status})
    });
    EventBody::Todo {
        items: shown.collect(),
    }
}
