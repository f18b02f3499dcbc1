//! Command line of the CLI for one turn.

use std::collections::BTreeMap;

use rejoin_core::{PermissionMode, TurnPlan};
use serde_json::Value;
use serde_json::value::RawValue;

use super::permission::{self, Rules};
use super::{repository, serve};
use crate::order::{CommandSpec, RunOrder};
use crate::repository::{Memory, RepositoryConfig};
use crate::session::text_mark;

/// Flags of every run. Without a title a new session costs one more request.
const FLAGS: &[&str] = &[
    "run",
    "--format",
    "json",
    "--title",
    "rejoin",
    // Only the log reports that a request to the model failed and is retried.
    "--print-logs",
    "--log-level",
    "INFO",
];

/// Variable with a whole configuration, which overrides the CLI's files.
const CONTENT: &str = "OPENCODE_CONFIG_CONTENT";

/// Builds the command. A session remembers only its model, so every run passes everything again.
/// The prompt is passed on stdin, up to EOF: an argument with a space in it would arrive in quotes.
pub(super) fn command(order: &RunOrder<'_>) -> CommandSpec {
    if order.permissions.mode == PermissionMode::Ask || order.stays {
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
    args.extend(permission::flags(order.permissions));
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

/// Builds the prompt. The CLI interprets no part of it: commands and files need flags (1.18.33; the
/// proof of a binary checks this). So `--raw` has no effect.
pub(super) fn prompt(order: &RunOrder<'_>) -> String {
    match &order.composed.context {
        Some(context) => format!("{context}\n\n{}", order.composed.message),
        None => order.composed.message.clone(),
    }
}

pub(super) fn env(order: &RunOrder<'_>) -> Vec<(String, String)> {
    let scene = LaunchContext {
        agent: &agent(order),
        rules: &permission::rules(order.permissions),
        folder: order.folder,
        database: order.place.map(|place| format!("{}/{place}", order.home)),
        guard: None,
        env: order.env,
        repository: order.repository,
        memory: order.memory,
    };
    scene.variables()
}

/// Returns a name for the agent that no configuration uses. The rules of an agent follow all
/// others: a file's rules for `build` would override those of the turn, and rules for any other
/// known name would be mixed with them.
pub(super) fn agent(order: &RunOrder<'_>) -> String {
    format!("rejoin-{}", order.turn)
}

/// Configuration and environment of the CLI, in a turn or at a terminal.
pub(super) struct LaunchContext<'a> {
    pub(super) agent: &'a str,
    pub(super) rules: &'a Rules,
    pub(super) folder: &'a str,
    pub(super) database: Option<String>,
    /// Address of rejoin's plugin.
    pub(super) guard: Option<String>,
    /// Environment of the CLI, without these variables.
    pub(super) env: &'a [(String, String)],
    pub(super) repository: RepositoryConfig,
    pub(super) memory: &'a Memory,
}

impl LaunchContext<'_> {
    pub(super) fn variables(self) -> Vec<(String, String)> {
        let mut variables = vec![
            // The variable overrides the real working folder of the process.
            ("PWD".to_owned(), self.folder.to_owned()),
            ("OPENCODE_PERMISSION".to_owned(), self.rules.to_string()),
            (CONTENT.to_owned(), self.content()),
        ];
        let database = self.database.map(|file| ("OPENCODE_DB".to_owned(), file));
        variables.extend(database);
        variables.extend(repository::env(self.repository));
        variables
    }

    /// Returns the user's own configuration, with the agent added.
    fn content(&self) -> String {
        let own = self.env.iter().find(|(name, _)| name == CONTENT);
        let mut content: Raw = own.map_or_else(Raw::new, |(_, text)| parsed(text));
        let mut agents: Raw = content
            .get("agent")
            .map_or_else(Raw::new, |own| parsed(own.get()));
        let rules = format!(r#"{{"mode":"primary","permission":{}}}"#, self.rules);
        agents.extend(raw(&rules).map(|rules| (self.agent.to_owned(), rules)));
        // Memory files are read anyway, although the rest of a repository's configuration is not.
        let above = self.memory.files.iter().map(|file| file.path.clone());
        let notes = above.chain([format!("{}/AGENTS.md", self.folder)]);
        let mut changed = vec![
            ("agent", serde_json::to_string(&agents)),
            ("instructions", listed(&content, "instructions", notes)),
        ];
        if let Some(guard) = &self.guard {
            // The model is informed about a denied call and continues. Otherwise the turn would end
            // there.
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

/// Returns the user's list under this key, with more entries appended.
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

/// Unparsed values, because the order of rules counts.
type Raw = BTreeMap<String, Box<RawValue>>;

fn parsed(text: &str) -> Raw {
    serde_json::from_str(text).unwrap_or_default()
}

fn raw(text: &str) -> Option<Box<RawValue>> {
    serde_json::from_str(text).ok()
}
