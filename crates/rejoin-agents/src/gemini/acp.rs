//! A run over the Agent Client Protocol, in which the CLI asks before it writes or runs anything.
//!
//! RunFacts on 0.61.0: `session/load` replays the history as updates that look like those of a turn,
//! and responds before the replay has ended. But only one update is in flight at a time: if none
//! arrives between the responses to two requests, the replay is over. Only then the prompt is sent.

use rejoin_core::{Asked, EventBody, Given};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::classify::NOT_RESUMED;
use super::stream::RunState;
use super::wire::{ErrorBody, Finished, Stats};
use crate::rpc::Message;
use crate::stream::{ProcessEnd, Reply, RunReport, Say, StreamParser};

mod approvals;
mod call;
mod turn_end;
mod wire;

pub(super) use turn_end::TurnEnd;

use approvals::Approvals;
use wire::{Call, PermissionRequest, Update, refusal, request};

/// Ids of rejoin's requests.
const HELLO: &str = "rejoin-hello";
const SESSION: &str = "rejoin-session";
const QUIET: &str = "rejoin-quiet";
const PROMPT: &str = "rejoin-prompt";
const END_REQUEST: &str = "rejoin-bye";

/// Mode in which the CLI asks; the only mode of these runs.
const MODE: &str = "default";
/// Kind of update that is not part of the history.
const COMMANDS: &str = "available_commands_update";
/// Prefix of a text that the CLI inserts in the model's name when the mode changes.
const MODE_CHANGED: &str = "[MODE_UPDATE] ";

const NOT_RAW: &str = "where Gemini CLI asks it knows neither @files nor its commands in a message: it was sent as text";

/// Data with which the parser conducts the dialogue.
#[derive(Serialize, Deserialize, Default)]
pub(super) struct Opening {
    pub(super) folder: String,
    /// Session to resume.
    pub(super) session: Option<String>,
    pub(super) prompt: String,
    /// True if the user wanted the prompt to keep its CLI meaning.
    pub(super) raw: bool,
    /// True if the process is already running, with the session loaded.
    #[serde(default)]
    pub(super) live: bool,
}

/// Formats a request that is answered at once and changes nothing.
fn quiet(session: &Value) -> String {
    let params = json!({"sessionId": session, "modeId": MODE});
    request(QUIET, "session/set_mode", &params)
}

impl Opening {
    /// Returns the first line to send.
    pub(super) fn first(&self) -> String {
        if let (true, Some(session)) = (self.live, &self.session) {
            return quiet(&json!(session));
        }
        let nothing =
            json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false});
        let params = json!({"protocolVersion": 1, "clientCapabilities": nothing});
        request(HELLO, "initialize", &params)
    }

    /// Returns the lines after which rejoin sends nothing more.
    pub(super) fn last_words() -> Vec<String> {
        [PROMPT, END_REQUEST].map(|id| format!("id:{id}")).into()
    }

    fn session(&self) -> String {
        let mut params = json!({"cwd": self.folder, "mcpServers": []});
        let method = match &self.session {
            Some(id) => {
                params["sessionId"] = json!(id);
                "session/load"
            }
            None => "session/new",
        };
        request(SESSION, method, &params)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The history may still be arriving.
    Opening,
    Prompted,
    Over,
}

pub(super) struct Dialogue {
    opening: Opening,
    phase: Phase,
    session: Option<String>,
    /// True if part of the history arrived since the last response.
    replayed: bool,
    rounds: u32,
    says: Vec<Say>,
    approvals: Approvals,
    told: RunState,
}

impl Dialogue {
    pub(super) fn new(dialogue: &str) -> Self {
        let opening: Opening = serde_json::from_str(dialogue).unwrap_or_default();
        let session = opening.session.clone().filter(|_| opening.live);
        Self {
            opening,
            phase: Phase::Opening,
            session,
            replayed: false,
            rounds: 0,
            says: vec![],
            approvals: Approvals::default(),
            told: RunState::default(),
        }
    }
}

impl StreamParser for Dialogue {
    fn line(&mut self, line: &[u8]) -> Vec<EventBody> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return vec![];
        }
        let read = serde_json::from_slice(line).ok();
        let read = read.and_then(|heard| self.heard(heard));
        read.unwrap_or_else(|| self.told.unknown(line))
    }

    fn stderr(&mut self, line: &[u8]) {
        self.told.stderr(line);
    }

    fn asked(&mut self) -> Vec<Asked> {
        self.approvals.take()
    }

    fn reply(&mut self, call_id: &str, given: Option<&Given>) -> Option<Reply> {
        let reply = self.approvals.reply(call_id, given)?;
        self.told.tools.wait(call_id, false);
        if reply.message.is_some() {
            self.told.tools.deny(call_id);
        }
        Some(reply)
    }

    fn says(&mut self) -> Vec<Say> {
        std::mem::take(&mut self.says)
    }

    fn finish(self: Box<Self>, end: &ProcessEnd) -> RunReport {
        self.told.finish(end)
    }
}

impl Dialogue {
    /// Handles a message. None if it is not understood.
    fn heard(&mut self, heard: Message) -> Option<Vec<EventBody>> {
        match (heard.method.as_deref(), heard.id) {
            (Some("session/update"), None) => self.update(&heard.params),
            (Some("session/request_permission"), Some(id)) => self.permission(id, &heard.params),
            (Some(method), Some(id)) => {
                let said = format!("rejoin does not answer requests of the kind {method}");
                let error = json!({"code": -32601, "message": said});
                self.say(format!("error {id}"), refusal(&id, &error));
                Some(vec![EventBody::notice(said)])
            }
            (None, Some(Value::String(id))) => self.answer(&id, &heard.result, heard.error),
            (Some(_) | None, _) => None,
        }
    }

    fn say(&mut self, key: impl Into<String>, line: String) {
        let key = key.into();
        self.says.push(Say { key, line });
    }

    fn answer(&mut self, id: &str, result: &Value, error: Option<Value>) -> Option<Vec<EventBody>> {
        let quiet = id == QUIET;
        match (id, error) {
            (END_REQUEST, _) => Some(vec![]),
            (PROMPT, error) if self.phase == Phase::Prompted => {
                Some(self.over(result, error.as_ref()))
            }
            (HELLO | SESSION | QUIET, Some(error)) if self.phase == Phase::Opening => {
                Some(self.fails(id, &error))
            }
            (HELLO, None) if self.phase == Phase::Opening => {
                let version = result["agentInfo"]["version"].as_str();
                self.told.version = version.map(str::to_owned);
                self.say(SESSION, self.opening.session());
                Some(vec![])
            }
            (SESSION | QUIET, None) if self.phase == Phase::Opening => {
                let is_open = quiet && !self.opening.live;
                let events = if is_open { vec![] } else { self.opened(result) };
                self.go_on();
                Some(events)
            }
            _ => None,
        }
    }

    fn opened(&mut self, result: &Value) -> Vec<EventBody> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let known = self.opening.session.clone();
        // A new session has no history, and a session that is already loaded is not replayed.
        self.replayed = known.is_some() && !self.opening.live;
        self.session = known.or_else(|| text(&result["sessionId"]));
        let model = text(&result["models"]["currentModelId"]);
        let mode = text(&result["modes"]["currentModeId"]);
        let mut events = self.told.started(self.session.clone(), model, mode);
        if self.opening.raw {
            events.push(EventBody::notice(NOT_RAW));
        }
        events
    }

    /// Sends the prompt once the replay of the history is over. Until then, sends another request.
    fn go_on(&mut self) {
        let session = json!(self.session);
        if std::mem::take(&mut self.replayed) {
            self.rounds += 1;
            self.say(format!("{QUIET} {}", self.rounds), quiet(&session));
        } else {
            let prompt = [json!({"type": "text", "text": self.opening.prompt})];
            let params = json!({"sessionId": session, "prompt": prompt});
            self.phase = Phase::Prompted;
            self.say(PROMPT, request(PROMPT, "session/prompt", &params));
        }
    }

    /// Handles a failure before the turn. The request that follows has no purpose but its response,
    /// on which stdin is closed.
    fn fails(&mut self, id: &str, error: &Value) -> Vec<EventBody> {
        self.phase = Phase::Over;
        let trouble = trouble(error);
        if id == SESSION && self.opening.session.is_some() && trouble.status.is_none() {
            self.told
                .seen
                .stderr
                .insert(0, format!("{NOT_RESUMED} {}", trouble.message));
        } else {
            self.told.seen.result = Some(failed(trouble));
        }
        self.say(END_REQUEST, request(END_REQUEST, "rejoin/bye", &json!({})));
        vec![]
    }

    fn over(&mut self, result: &Value, error: Option<&Value>) -> Vec<EventBody> {
        self.phase = Phase::Over;
        let mut finished = match (error, result["stopReason"].as_str()) {
            (Some(error), _) => failed(trouble(error)),
            // The answer was blocked, or contains only thoughts.
            (None, Some("end_turn")) if self.told.is_silent() => failed(said("an empty response")),
            (None, Some("end_turn")) => Finished {
                status: Some("success".to_owned()),
                ..Finished::default()
            },
            (None, Some("max_turn_requests")) => failed(of_kind("FatalTurnLimitedError")),
            (None, Some("max_tokens")) => failed(said("the context window would overflow")),
            (None, Some("cancelled")) => failed(of_kind("FatalCancellationError")),
            (None, other) => failed(said(&format!(
                "it stopped for the reason {}",
                other.unwrap_or("none")
            ))),
        };
        finished.stats = stats(&result["_meta"]["quota"]);
        self.told.result(finished)
    }

    fn permission(&mut self, id: Value, params: &Value) -> Option<Vec<EventBody>> {
        let Ok(asking) = PermissionRequest::deserialize(params) else {
            let error = json!("rejoin does not understand what is asked");
            self.say(format!("error {id}"), refusal(&id, &error));
            return None;
        };
        let asked = self.approvals.ask(id, &asking, &self.opening.folder);
        let mut events = self.told.close();
        let tools = &mut self.told.tools;
        let call_id = asked.call_id.clone();
        events.extend(tools.call(asked.call_id, asked.tool, asked.input));
        tools.wait(&call_id, true);
        Some(events)
    }

    fn update(&mut self, params: &Value) -> Option<Vec<EventBody>> {
        let update = &params["update"];
        let ours = params["sessionId"].as_str() == self.session.as_deref();
        if self.phase != Phase::Prompted || !ours {
            self.replayed |= update["sessionUpdate"] != COMMANDS && self.phase == Phase::Opening;
            return Some(vec![]);
        }
        Some(match Update::deserialize(update).ok()? {
            Update::StoredText { content } if content.text.starts_with(MODE_CHANGED) => {
                vec![EventBody::warning(content.text)]
            }
            Update::StoredText { content } => self.told.says(content.text),
            Update::Thought { content } => {
                vec![EventBody::Thinking { text: content.text }]
            }
            Update::Called(call) => self.called(&call),
            Update::Other => vec![],
        })
    }

    /// Handles the beginning or end of a call. A call that the CLI denies is first reported at its
    /// end.
    fn called(&mut self, call: &Call) -> Vec<EventBody> {
        let mut events = self.told.close();
        let tools = &mut self.told.tools;
        events.extend(tools.call(
            call.id.clone(),
            call.tool(),
            call.input(&self.opening.folder),
        ));
        if call.has_ended() {
            let failed = call.status.as_deref() == Some("failed");
            let denied = call.is_denied().then(|| ErrorBody {
                kind: Some("policy_violation".to_owned()),
                message: call.text(),
                status: None,
            });
            events.extend(tools.result(&call.id, failed, call.text(), denied.as_ref()));
        }
        events
    }
}

fn failed(error: ErrorBody) -> Finished {
    Finished {
        status: Some("error".to_owned()),
        error: Some(error),
        ..Finished::default()
    }
}

fn said(message: &str) -> ErrorBody {
    ErrorBody {
        message: message.to_owned(),
        ..ErrorBody::default()
    }
}

fn of_kind(kind: &str) -> ErrorBody {
    ErrorBody {
        kind: Some(kind.to_owned()),
        ..ErrorBody::default()
    }
}

/// Converts an error. The code of an API failure is its HTTP status.
fn trouble(error: &Value) -> ErrorBody {
    let message = error["data"]["details"].as_str();
    let message = message.or_else(|| error["message"].as_str());
    let status = match error["code"].as_i64() {
        // The login is missing.
        Some(-32000) => Some(401),
        code => code.and_then(|code| u64::try_from(code).ok()),
    };
    ErrorBody {
        kind: None,
        message: message.unwrap_or_default().to_owned(),
        status,
    }
}

/// Converts the token counts, which cover this prompt alone. Cached tokens are not reported
/// separately.
fn stats(quota: &Value) -> Stats {
    let count = |of: &Value, name: &str| of["token_count"][name].as_u64().unwrap_or(0);
    let models = quota["model_usage"].as_array().into_iter().flatten();
    let models = models.filter_map(|used| {
        let name = used["model"].as_str()?.to_owned();
        Some((name, count(used, "output_tokens")))
    });
    let (input, output) = (count(quota, "input_tokens"), count(quota, "output_tokens"));
    Stats::of(input, output, models)
}
