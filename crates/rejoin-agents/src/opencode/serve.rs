//! A turn that asks, or whose process is kept for the next. `run` can do neither, so the CLI's server is
//! started, and a hidden command of rejoin (the bridge, `rejoin/src/opencode_bridge.rs`) speaks with it
//! over loopback: it is told what to do in its first line of stdin, prints what the server reports as
//! lines, and takes answers, and further turns, as further lines. Here are the words of both sides.
//!
//! Measured on 1.18.33. `opencode acp` was left: it cannot be asked questions, a denial ends the turn
//! without a word, and its usage is that of the last step alone.

use rejoin_core::{PermissionMode, TurnPlan};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::command::{self, Scene, agent, prompt};
use super::permission;
use crate::denial::NOT_ALLOWED;
use crate::order::{CommandSpec, RunOrder};
use crate::session::text_mark;

mod desk;
mod stay;

pub use desk::{Desk, Pending};
pub(super) use stay::Stays;

/// The hidden command.
pub const BRIDGE: &str = "opencode-bridge";

/// Printed by the bridge itself: which session it is, and that there is nothing more to come.
pub const SESSION: &str = "rejoin.session";
pub const END: &str = "rejoin.end";

/// What the bridge says on stderr of a server that could not be had.
pub const NO_SERVER: &str = "opencode serve did not come up";

/// Port 0: any that is free.
const FLAGS: &[&str] = &[
    "serve",
    "--hostname",
    "127.0.0.1",
    "--port",
    "0",
    "--mdns=false",
];

/// What is told to whoever reads the run.
const ASKS: &str = "serve";
pub(super) const ASKS_NOBODY: &str = "serve, alone";

const GUARD: &str = include_str!("guard.js");
/// Beneath the CLI's home. Another content needs another name.
const GUARD_FILE: &str = "rejoin/guard-1.js";
pub(super) const GUARD_TOLD: &str = "REJOIN_OPENCODE_GUARD";

/// A turn: the first line, and each further one that is no answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServeOrder {
    pub folder: String,
    /// The session to go on with; none: a new one.
    pub session: Option<String>,
    /// With a copy of it.
    pub fork: bool,
    /// The body of the request for a new session.
    pub begin: Value,
    /// The body of the request that holds the prompt.
    pub prompt: Value,
    pub decides: Decides,
    /// Said to what is asked when nobody is there, or not any more: stdin was closed.
    pub nobody: String,
}

/// Who decides what the rules leave open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decides {
    /// Whoever writes to stdin.
    Person,
    Nobody,
    /// Everything is allowed.
    Yes,
}

impl Decides {
    fn of(mode: PermissionMode) -> Self {
        match mode {
            PermissionMode::Ask => Self::Person,
            PermissionMode::Full => Self::Yes,
            PermissionMode::ReadOnly | PermissionMode::Edit => Self::Nobody,
        }
    }
}

/// Each other line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServeAnswer {
    pub to: AnswerTo,
    pub id: String,
    pub body: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AnswerTo {
    Permission,
    Question,
}

impl AnswerTo {
    /// As the server's addresses begin.
    pub fn path(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Question => "question",
        }
    }
}

/// Everything is said again on every run, as in `run`: the agent and its rules, the model.
pub(super) fn command(order: &RunOrder<'_>) -> CommandSpec {
    let mut args: Vec<String> = FLAGS.iter().map(|&flag| flag.to_owned()).collect();
    args.extend(order.extra_args.iter().cloned());
    let text = prompt(order);
    let agent = agent(order);
    let asks = order.envelope.mode == PermissionMode::Ask;
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
        // Without a title it costs one more request.
        begin: json!({"title": "rejoin"}),
        prompt: body,
        decides: Decides::of(order.envelope.mode),
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
    if order.envelope.mode != PermissionMode::Ask {
        return command::env(order);
    }
    let mut rules = permission::rules_in_dialogue(order.envelope, order.asks);
    // Given back by the plugin, if that is there.
    let bash = rules.withhold("bash");
    let scene = Scene {
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
    // As written: the order of rules counts.
    let bash = bash.unwrap_or_else(|| "null".to_owned());
    let told = format!(r#"{{"agent":{},"bash":{bash}}}"#, Value::from(agent));
    variables.push((GUARD_TOLD.to_owned(), told));
    variables
}

/// A file as an address.
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
