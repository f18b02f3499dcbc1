//! A run over the Agent Client Protocol, in which the CLI asks before it writes or runs anything.
//!
//! Seen on 0.61.0: `session/load` replays the history as updates that look like those of a turn, and
//! answers before it has ended. There is never more than one of them on its way, though: so if none
//! comes between the answers to two requests, there are no more, and only then the prompt is said.

use rejoin_core::{Asked, EventBody, Given};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::classify::NOT_RESUMED;
use super::stream::Told;
use super::wire::{Finished, Stats, Trouble};
use crate::rpc::Message;
use crate::stream::{End, Ran, Reply, Say, StreamParser};

mod asks;
mod call;
mod stay;
mod wire;

pub(super) use stay::Stays;

use asks::Asks;
use wire::{Asking, Call, Update, refusal, request};

/// Names of our requests.
const HELLO: &str = "rejoin-hello";
const SESSION: &str = "rejoin-session";
const QUIET: &str = "rejoin-quiet";
const PROMPT: &str = "rejoin-prompt";
const BYE: &str = "rejoin-bye";

/// The mode in which the CLI asks; the only one these runs are in.
const MODE: &str = "default";
/// An update that is not of the history.
const COMMANDS: &str = "available_commands_update";
/// Said in the model's stead when the mode changes.
const MODE_CHANGED: &str = "[MODE_UPDATE] ";

const NOT_RAW: &str = "where Gemini CLI asks it knows neither @files nor its commands in a message: it was sent as text";

/// What its reader has to know.
#[derive(Serialize, Deserialize, Default)]
pub(super) struct Opening {
    pub(super) folder: String,
    /// The session to go on with.
    pub(super) session: Option<String>,
    pub(super) prompt: String,
    /// It was to keep its meaning for the CLI.
    pub(super) raw: bool,
    /// The process is there, with the session.
    #[serde(default)]
    pub(super) live: bool,
}

/// Is answered at once, and changes nothing.
fn quiet(session: &Value) -> String {
    let params = json!({"sessionId": session, "modeId": MODE});
    request(QUIET, "session/set_mode", &params)
}

impl Opening {
    /// The first line said.
    pub(super) fn first(&self) -> String {
        if let (true, Some(session)) = (self.live, &self.session) {
            return quiet(&json!(session));
        }
        let nothing =
            json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false});
        let params = json!({"protocolVersion": 1, "clientCapabilities": nothing});
        request(HELLO, "initialize", &params)
    }

    /// Lines after which nothing more is said.
    pub(super) fn last_words() -> Vec<String> {
        [PROMPT, BYE].map(|id| format!("id:{id}")).into()
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
    /// The history may still be on its way.
    Opening,
    Prompted,
    Over,
}

pub(super) struct Dialogue {
    opening: Opening,
    phase: Phase,
    session: Option<String>,
    /// Something of the history came since the last answer.
    replayed: bool,
    rounds: u32,
    says: Vec<Say>,
    asks: Asks,
    told: Told,
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
            asks: Asks::default(),
            told: Told::default(),
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
        self.asks.take()
    }

    fn reply(&mut self, call_id: &str, given: Option<&Given>) -> Option<Reply> {
        let reply = self.asks.reply(call_id, given)?;
        self.told.tools.wait(call_id, false);
        if reply.message.is_some() {
            self.told.tools.deny(call_id);
        }
        Some(reply)
    }

    fn says(&mut self) -> Vec<Say> {
        std::mem::take(&mut self.says)
    }

    fn finish(self: Box<Self>, end: &End) -> Ran {
        self.told.finish(end)
    }
}

impl Dialogue {
    /// None: not understood.
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
            (BYE, _) => Some(vec![]),
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
        // One that was just begun has no history, and one that is there does not tell it.
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

    /// The prompt, once nothing of the history can come any more.
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

    /// It does not come to a turn. What is said now has no meaning but that it will be answered, and
    /// stdin closed then.
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
        self.say(BYE, request(BYE, "rejoin/bye", &json!({})));
        vec![]
    }

    fn over(&mut self, result: &Value, error: Option<&Value>) -> Vec<EventBody> {
        self.phase = Phase::Over;
        let mut finished = match (error, result["stopReason"].as_str()) {
            (Some(error), _) => failed(trouble(error)),
            // Blocked, or only thoughts.
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
        let Ok(asking) = Asking::deserialize(params) else {
            let error = json!("rejoin does not understand what is asked");
            self.say(format!("error {id}"), refusal(&id, &error));
            return None;
        };
        let asked = self.asks.ask(id, &asking, &self.opening.folder);
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
            Update::Said { content } if content.text.starts_with(MODE_CHANGED) => {
                vec![EventBody::warning(content.text)]
            }
            Update::Said { content } => self.told.says(content.text),
            Update::Thought { content } => {
                vec![EventBody::Thinking { text: content.text }]
            }
            Update::Called(call) => self.called(&call),
            Update::Other => vec![],
        })
    }

    /// A call begins or ends; one that the CLI denies is heard of only then.
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
            let denied = call.is_denied().then(|| Trouble {
                kind: Some("policy_violation".to_owned()),
                message: call.text(),
                status: None,
            });
            events.extend(tools.result(&call.id, failed, call.text(), denied.as_ref()));
        }
        events
    }
}

fn failed(error: Trouble) -> Finished {
    Finished {
        status: Some("error".to_owned()),
        error: Some(error),
        ..Finished::default()
    }
}

fn said(message: &str) -> Trouble {
    Trouble {
        message: message.to_owned(),
        ..Trouble::default()
    }
}

fn of_kind(kind: &str) -> Trouble {
    Trouble {
        kind: Some(kind.to_owned()),
        ..Trouble::default()
    }
}

/// A failure of the API has its status for a code.
fn trouble(error: &Value) -> Trouble {
    let message = error["data"]["details"].as_str();
    let message = message.or_else(|| error["message"].as_str());
    let status = match error["code"].as_i64() {
        // No login.
        Some(-32000) => Some(401),
        code => code.and_then(|code| u64::try_from(code).ok()),
    };
    Trouble {
        kind: None,
        message: message.unwrap_or_default().to_owned(),
        status,
    }
}

/// Of this prompt alone. What came from a cache is not told apart.
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
