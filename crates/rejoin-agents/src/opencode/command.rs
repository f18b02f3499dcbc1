//! The call of the CLI for one turn.

use std::collections::BTreeMap;

use rejoin_core::{PermissionMode, TurnPlan};
use serde_json::Value;
use serde_json::value::RawValue;

use super::permission::{self, Rules};
use super::{repository, serve};
use crate::order::{CommandSpec, RunOrder};
use crate::repository::{Memory, RepositoryConfig};
use crate::session::text_mark;

/// Of every run. Without a title a new session costs one more request.
const FLAGS: &[&str] = &[
    "run",
    "--format",
    "json",
    "--title",
    "rejoin",
    // That its model failed and is asked again is said nowhere else.
    "--print-logs",
    "--log-level",
    "INFO",
];

/// What the CLI takes a whole configuration from, laid over its files.
const CONTENT: &str = "OPENCODE_CONFIG_CONTENT";

/// A session remembers its model and nothing else, so everything is said again on every run. The
/// prompt goes by stdin, to its end: an argument with a space in it arrives in quotes.
pub(super) fn command(order: &RunOrder<'_>) -> CommandSpec {
    if order.envelope.mode == PermissionMode::Ask || order.stays {
        return serve::command(order);
    }
    let mut args: Vec<String> = FLAGS.iter().map(|&flag| flag.to_owned()).collect();
    let mut add = |flag: &str, value: &str| args.extend([flag.to_owned(), value.to_owned()]);
    add("--dir", order.folder);
    add("--agent", &agent(order));
    if let Some(model) = order.model {
        add("-m", model);
    }
    match order.plan {
        TurnPlan::Resume { session, .. } => add("-s", session.id().as_str()),
        TurnPlan::Start { .. } | TurnPlan::Reseed { .. } => {}
    }
    args.extend(permission::flags(order.envelope));
    args.extend(order.extra_args.iter().cloned());
    let stdin = prompt(order);
    CommandSpec {
        args,
        prompt_mark: Some(text_mark(&stdin)),
        stdin,
        env: env(order),
        ..CommandSpec::default()
    }
}

/// The CLI gives no part of it a meaning: commands need a flag, files another (1.18.33; part of the
/// proof of a binary). So `--raw` changes nothing.
pub(super) fn prompt(order: &RunOrder<'_>) -> String {
    match &order.composed.context {
        Some(context) => format!("{context}\n\n{}", order.composed.message),
        None => order.composed.message.clone(),
    }
}

pub(super) fn env(order: &RunOrder<'_>) -> Vec<(String, String)> {
    let scene = Scene {
        agent: &agent(order),
        rules: &permission::rules(order.envelope),
        folder: order.folder,
        database: order.place.map(|place| format!("{}/{place}", order.home)),
        guard: None,
        env: order.env,
        repository: order.repository,
        memory: order.memory,
    };
    scene.variables()
}

/// A name that no configuration knows: the rules of an agent come after all others, so those that a
/// file has for `build` would win over the turn's, and those for any other name be mixed with them.
pub(super) fn agent(order: &RunOrder<'_>) -> String {
    format!("rejoin-{}", order.turn)
}

/// What the CLI finds when it starts, in a turn or at a terminal.
pub(super) struct Scene<'a> {
    pub(super) agent: &'a str,
    pub(super) rules: &'a Rules,
    pub(super) folder: &'a str,
    pub(super) database: Option<String>,
    /// A plugin of ours, as an address.
    pub(super) guard: Option<String>,
    /// The environment it will get, but for this.
    pub(super) env: &'a [(String, String)],
    pub(super) repository: RepositoryConfig,
    pub(super) memory: &'a Memory,
}

impl Scene<'_> {
    pub(super) fn variables(self) -> Vec<(String, String)> {
        let mut variables = vec![
            // It overrides the folder the process is really in.
            ("PWD".to_owned(), self.folder.to_owned()),
            ("OPENCODE_PERMISSION".to_owned(), self.rules.to_string()),
            (CONTENT.to_owned(), self.content()),
        ];
        let database = self.database.map(|file| ("OPENCODE_DB".to_owned(), file));
        variables.extend(database);
        variables.extend(repository::env(self.repository));
        variables
    }

    /// The user's own content, with the agent in it.
    fn content(&self) -> String {
        let own = self.env.iter().find(|(name, _)| name == CONTENT);
        let mut content: Raw = own.map_or_else(Raw::new, |(_, text)| parsed(text));
        let mut agents: Raw = content
            .get("agent")
            .map_or_else(Raw::new, |own| parsed(own.get()));
        let rules = format!(r#"{{"mode":"primary","permission":{}}}"#, self.rules);
        agents.extend(raw(&rules).map(|rules| (self.agent.to_owned(), rules)));
        // Read anyway, though the rest of what a repository says about the CLI is not.
        let above = self.memory.files.iter().map(|file| file.path.clone());
        let notes = above.chain([format!("{}/AGENTS.md", self.folder)]);
        let mut changed = vec![
            ("agent", serde_json::to_string(&agents)),
            ("instructions", listed(&content, "instructions", notes)),
        ];
        if let Some(guard) = &self.guard {
            // Where a call was denied the model is told so and goes on; else the turn would end there.
            let mut experimental: Raw = content
                .get("experimental")
                .map_or_else(Raw::new, |own| parsed(own.get()));
            experimental.extend(raw("true").map(|yes| ("continue_loop_on_deny".to_owned(), yes)));
            changed.push(("experimental", serde_json::to_string(&experimental)));
            changed.push(("plugin", listed(&content, "plugin", [guard.clone()])));
        }
        for (key, value) in changed {
            let value = value.ok().and_then(|text| raw(&text));
            content.extend(value.map(|value| (key.to_owned(), value)));
        }
        serde_json::to_string(&content).unwrap_or_default()
    }
}

/// The user's list under this key, with more behind it.
fn listed(
    content: &Raw,
    key: &str,
    more: impl IntoIterator<Item = String>,
) -> serde_json::Result<String> {
    let own = content.get(key);
    let mut listed: Vec<Value> = own
        .and_then(|own| serde_json::from_str(own.get()).ok())
        .unwrap_or_default();
    listed.extend(more.into_iter().map(Value::from));
    serde_json::to_string(&listed)
}

/// As written: the order of rules counts.
type Raw = BTreeMap<String, Box<RawValue>>;

fn parsed(text: &str) -> Raw {
    serde_json::from_str(text).unwrap_or_default()
}

fn raw(text: &str) -> Option<Box<RawValue>> {
    serde_json::from_str(text).ok()
}
