//! Protocol of turns that ask, or whose process is kept for the next turn. `run` can do neither, so
//! rejoin starts the CLI's server. A hidden command of rejoin (the bridge,
//! `rejoin/src/opencode_bridge.rs`) talks to it over loopback: it receives its order in the first
//! line of stdin, prints the server's events as lines, and accepts answers and further turns as
//! further lines. This file defines the messages of both sides.
//!
//! Measured on 1.18.33. `opencode acp` is not used: it does not pass on questions, a denial ends
//! the turn without a message, and it reports the usage of the last step only.

use rejoin_core::{PermissionMode, TurnPlan};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::command::{self, LaunchContext, agent, prompt};
use super::permission;
use crate::denial::NOT_ALLOWED;
use crate::order::{CommandSpec, RunOrder};
use crate::session::text_mark;

mod pending;
mod turn_end;

pub use pending::PendingRequests;
pub(super) use turn_end::TurnEnd;

/// Name of the hidden command.
pub const BRIDGE: &str = "opencode-bridge";

/// Lines that the bridge itself prints: the id of the session, and the end of the turn.
pub const SESSION: &str = "rejoin.session";
/// Type of the line that ends the output of a run.
pub const END: &str = "rejoin.end";

/// Message of the bridge on stderr if the server did not start.
pub const NO_SERVER: &str = "opencode serve did not come up";

/// Arguments of the server. Port 0 selects any free port.
const FLAGS: &[&str] = &[
    "serve",
    "--hostname",
    "127.0.0.1",
    "--port",
    "0",
    "--mdns=false",
];

/// Dialogue data of the run: requests go to a person, or the bridge decides.
const ASKS: &str = "serve";
pub(super) const ASKS_NOBODY: &str = "serve, alone";

const GUARD: &str = include_str!("guard.js");
/// Path of the plugin beneath the CLI's home. Another content needs another name.
const GUARD_FILE: &str = "rejoin/guard-1.js";
pub(super) const GUARD_TOLD: &str = "REJOIN_OPENCODE_GUARD";

/// A turn: the first line, and each further line that is not an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServeOrder {
    /// Working folder.
    pub folder: String,
    /// Session to resume. None: a new session.
    pub session: Option<String>,
    /// True if a copy of the session is resumed.
    pub fork: bool,
    /// Body of the request for a new session.
    pub begin: Value,
    /// Body of the request with the prompt.
    pub prompt: Value,
    /// Side that decides about permission requests.
    pub decides: OpenRequestPolicy,
    /// Answer to requests if no person is available, or stdin was closed meanwhile.
    pub nobody: String,
}

/// Decision about requests that the rules leave open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OpenRequestPolicy {
    /// A person decides, on stdin.
    Person,
    /// No person is available: requests are denied.
    Nobody,
    /// Everything is allowed.
    Yes,
}

impl OpenRequestPolicy {
    fn of(mode: PermissionMode) -> Self {
        match mode {
            PermissionMode::Ask => Self::Person,
            PermissionMode::Full => Self::Yes,
            PermissionMode::ReadOnly | PermissionMode::Edit => Self::Nobody,
        }
    }
}

/// An answer: each line that is not a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServeAnswer {
    /// Kind of the request that the answer is for.
    pub to: AnswerTo,
    /// Id of the request.
    pub id: String,
    /// Body of the HTTP request that answers it.
    pub body: Value,
}

/// Kind of a request of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AnswerTo {
    /// Permission for a tool call.
    Permission,
    /// Question to a person.
    Question,
}

impl AnswerTo {
    /// Returns the first part of the server's path.
    pub fn path(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Question => "question",
        }
    }
}

/// Builds the command. As with `run`, every run passes everything again: the agent, its rules and
/// the model.
pub(super) fn command(order: &RunOrder<'_>) -> CommandSpec {
    let mut args: Vec<String> = FLAGS.iter().map(|&flag| flag.to_owned()).collect();
    args.extend(order.extra_args.iter().cloned());
    let text = prompt(order);
    let agent = agent(order);
    let asks = order.permissions.mode == PermissionMode::Ask;
    let mut body = json!({"agent": agent, "parts": [{"type": "text", "text": text}]});
    if let Some(model) = order.model {
        let (provider, model) = model.split_once('/').unwrap_or((model, ""));
        body["model"] = json!({"providerID": provider, "modelID": model});
    }
    let told = ServeOrder {
        folder: order.folder.to_owned(),
        session: match order.plan {
            TurnPlan::Resume { session, .. } => Some(session.id().to_string()),
            TurnPlan::Start { .. } | TurnPlan::Reseed { .. } => None,
        },
        fork: false,
        // Without a title a session costs one more request.
        begin: json!({"title": "rejoin"}),
        prompt: body,
        decides: OpenRequestPolicy::of(order.permissions.mode),
        nobody: NOT_ALLOWED.to_owned(),
    };
    CommandSpec {
        through: Some(BRIDGE),
        args,
        prompt_mark: Some(text_mark(&text)),
        stdin: line(&told),
        hold_stdin: true,
        close_stdin_on: vec![END.to_owned()],
        dialogue: Some(if asks { ASKS } else { ASKS_NOBODY }.to_owned()),
        env: env(order, &agent),
        files: if asks {
            vec![(GUARD_FILE.to_owned(), GUARD.to_owned())]
        } else {
            vec![]
        },
        ..CommandSpec::default()
    }
}

pub(super) fn forked(mut resume: CommandSpec) -> Option<CommandSpec> {
    let mut told: ServeOrder = serde_json::from_str(&resume.stdin).ok()?;
    told.fork = true;
    resume.stdin = line(&told);
    Some(resume)
}

fn env(order: &RunOrder<'_>, agent: &str) -> Vec<(String, String)> {
    if order.permissions.mode != PermissionMode::Ask {
        return command::env(order);
    }
    let mut rules = permission::rules_in_dialogue(order.permissions, order.asks);
    // The plugin restores this rule, if it is loaded.
    let bash = rules.withhold("bash");
    let scene = LaunchContext {
        agent,
        rules: &rules,
        folder: order.folder,
        database: order.place.map(|place| format!("{}/{place}", order.home)),
        guard: Some(address(&format!("{}/{GUARD_FILE}", order.home))),
        env: order.env,
        repository: order.repository,
        memory: order.memory,
    };
    let mut variables = scene.variables();
    // Unparsed, because the order of rules counts.
    let bash = bash.unwrap_or_else(|| "null".to_owned());
    let told = format!(r#"{{"agent":{},"bash":{bash}}}"#, Value::from(agent));
    variables.push((GUARD_TOLD.to_owned(), told));
    variables
}

/// Formats a path as a `file:` address.
fn address(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte);
    let escaped = path.bytes().map(|byte| {
        if plain(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    });
    format!("file://{}", escaped.collect::<String>())
}

pub(super) fn line(words: &impl Serialize) -> String {
    serde_json::to_string(words).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_as_an_address() {
        assert_eq!(address("/h/a b/é%#.js"), "file:///h/a%20b/%C3%A9%25%23.js");
    }
}
