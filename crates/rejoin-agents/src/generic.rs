//! A CLI that the user describes in the configuration (`[agents.NAME] kind = "command"`): how it is
//! called, where in its lines things stand, where its sessions lie. What is not described is not
//! relied on: without a session file that can be read, nothing is resumed.

use std::path::PathBuf;

use rejoin_core::{Envelope, PermissionMode, Runtime, SessionId, TotalsScope, TurnPlan, Version};

use crate::adapter::{Adapter, ProofEnv, ProofSetup};
use crate::environment::EnvRules;
use crate::order::{CommandSpec, RunOrder};
use crate::session::{ChosenBy, Place, SessionAt, SessionReader, text_mark};
use crate::stream::StreamParser;

mod pick;
mod session;
mod stream;

pub use pick::Pick;

/// As configured.
#[derive(Debug, Clone, Default)]
pub struct GenericConfig {
    pub name: String,
    pub bin: String,
    /// Arguments of a first turn, and of one that goes on with `{session}`.
    pub start_args: Vec<String>,
    pub resume_args: Option<Vec<String>>,
    /// The prompt is the last argument instead of stdin.
    pub prompt_as_argument: bool,
    pub pty: bool,
    /// Arguments by permission; a mode that is not here cannot be asked for.
    pub permission: Vec<(PermissionMode, Vec<String>)>,
    /// Where the CLI says which session it is; none: it is told.
    pub session_from: Option<Pick>,
    /// Where its answer stands; none: all it prints.
    pub text_from: Vec<Pick>,
    pub error_from: Option<Pick>,
    pub input_from: Option<Pick>,
    pub output_from: Option<Pick>,
    pub cost_from: Option<Pick>,
    /// A line of this type must come, or it is no success.
    pub done_on: Option<String>,
    /// What it says of a session it does not know.
    pub refused: Option<String>,
    /// What its counts cover.
    pub totals: Option<TotalsScope>,
    /// `~/…/{session}.jsonl`, of which a folder may be `*`.
    pub session_file: Option<String>,
    /// Where prompts and answers stand in its lines.
    pub session_user: Option<Pick>,
    pub session_assistant: Option<Pick>,
}

/// One such CLI.
#[derive(Debug)]
pub struct Generic {
    name: &'static str,
    program: &'static str,
    config: GenericConfig,
}

impl Generic {
    /// Lives as long as the process: adapters are known by reference everywhere, and a
    /// configuration is read once.
    pub fn adapter(config: GenericConfig) -> &'static dyn Adapter {
        let keep = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
        Box::leak(Box::new(Self {
            name: keep(&config.name),
            program: keep(&config.bin),
            config,
        }))
    }

    /// The file of a session, as described: a folder beneath the home, and a name.
    fn file(&self) -> Option<(&str, &str)> {
        let described = self.config.session_file.as_deref()?;
        let beneath = described
            .strip_prefix("~/")
            .or_else(|| described.strip_prefix('/'))?;
        Some(beneath.rsplit_once('/').unwrap_or(("", beneath)))
    }
}

impl Adapter for Generic {
    fn name(&self) -> &'static str {
        self.name
    }

    fn has_terminal(&self) -> bool {
        false
    }

    fn program(&self) -> Option<&'static str> {
        Some(self.program)
    }

    fn install(&self) -> &'static str {
        "install it, or correct `bin` in its section of the configuration"
    }

    /// Whatever it says first is its version; the product is its name here.
    fn runtime(&self, version_output: &str) -> Option<Runtime> {
        let is_number = |word: &&str| {
            word.trim_start_matches('v')
                .starts_with(|c: char| c.is_ascii_digit())
        };
        let found = version_output.split_whitespace().find(is_number);
        Some(Runtime {
            product: self.name.into(),
            version: Version(found.unwrap_or("0").trim_start_matches('v').into()),
        })
    }

    fn probe(&self) -> Option<Vec<String>> {
        None
    }

    fn judge_probe(&self, _stdout: &str, _stderr: &str) -> Option<String> {
        None
    }

    fn proof(&self, _at: &ProofEnv<'_>) -> Option<ProofSetup> {
        None
    }

    fn cannot_resume(&self) -> Option<String> {
        let config = &self.config;
        let missing = if config.resume_args.is_none() {
            "resume_args"
        } else if self.file().is_none() {
            "session_file"
        } else if config.session_user.is_none() || config.session_assistant.is_none() {
            "session_user and session_assistant"
        } else {
            return None;
        };
        Some(format!("agents.{} does not set {missing}", self.name))
    }

    fn totals(&self) -> Option<TotalsScope> {
        self.config.totals
    }

    fn express(&self, envelope: &Envelope, _as_root: bool) -> Result<(), String> {
        let name = self.name;
        if envelope.tools.is_some() || !envelope.deny_tools.is_empty() {
            return Err(format!(
                "{name} is configured without tool lists; leave out --tools and --deny-tools"
            ));
        }
        let known = |mode| self.config.permission.iter().any(|(m, _)| *m == mode);
        if known(envelope.mode) {
            return Ok(());
        }
        let modes: Vec<String> = self
            .config
            .permission
            .iter()
            .map(|(mode, _)| mode.to_string())
            .collect();
        let can = if modes.is_empty() {
            "none".to_owned()
        } else {
            modes.join(", ")
        };
        Err(format!(
            "{name} cannot be held to `{}`: its configuration has arguments for {can} (agents.{name}.permission)",
            envelope.mode
        ))
    }

    fn command(&self, order: &RunOrder<'_>) -> CommandSpec {
        let config = &self.config;
        let prompt = prompt(order);
        let resume = config.resume_args.as_ref();
        let template = match (order.plan, resume) {
            (TurnPlan::Resume { .. }, Some(args)) => args,
            (TurnPlan::Resume { .. } | TurnPlan::Start { .. } | TurnPlan::Reseed { .. }, _) => {
                &config.start_args
            }
        };
        let mode = order.envelope.mode;
        let allowed = config.permission.iter().find(|(m, _)| *m == mode);
        let allowed = allowed.map(|(_, args)| args.as_slice()).unwrap_or_default();
        let mut args = vec![];
        for part in template.iter().chain(allowed).chain(order.extra_args) {
            match filled(part, order) {
                Some(arg) => args.push(arg),
                // The flag in front of it has lost its value.
                None if part == "{model}"
                    && args.last().is_some_and(|a: &String| a.starts_with('-')) =>
                {
                    args.pop();
                }
                None => {}
            }
        }
        if config.prompt_as_argument {
            // What begins like a flag is not to be one.
            let dash = if prompt.starts_with('-') { "\n" } else { "" };
            args.push(format!("{dash}{prompt}"));
        }
        CommandSpec {
            args,
            prompt_mark: Some(text_mark(&prompt)),
            stdin: if config.prompt_as_argument {
                String::new()
            } else {
                prompt
            },
            pty: config.pty,
            env: vec![("PWD".into(), order.folder.into())],
            ..CommandSpec::default()
        }
    }

    fn parser(&self) -> Box<dyn StreamParser> {
        Box::new(stream::Stream::new(self.name, self.config.clone()))
    }

    fn environment(&self) -> EnvRules {
        EnvRules::default()
    }

    fn home(&self, env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
        match &self.config.session_file {
            Some(file) if file.starts_with('/') => Some("/".into()),
            Some(_) | None => env("HOME").map(PathBuf::from),
        }
    }

    fn chosen_by(&self) -> ChosenBy {
        match self.config.session_from {
            Some(_) => ChosenBy::TheCli,
            None => ChosenBy::Us,
        }
    }

    /// Any name that is safe in a path and not taken for a flag, which an id is by its type.
    fn is_session_id(&self, _id: &SessionId) -> bool {
        true
    }

    fn place(&self, at: &SessionAt<'_>) -> Place {
        let Some((folder, name)) = self.file() else {
            return Place::Find {
                folders: vec![],
                begins: String::new(),
                ends: String::new(),
            };
        };
        let name = name.replace("{session}", at.session.as_str());
        match (folder.contains('*'), name.split_once('*')) {
            (false, None) => Place::At(if folder.is_empty() {
                name
            } else {
                format!("{folder}/{name}")
            }),
            (_, parts) => {
                let (begins, ends) = parts.unwrap_or(("", name.as_str()));
                Place::Find {
                    folders: vec![folder.to_owned()],
                    begins: begins.to_owned(),
                    ends: ends.to_owned(),
                }
            }
        }
    }

    fn reader(&self, cursor: Option<&str>) -> Box<dyn SessionReader> {
        Box::new(session::Reader::new(&self.config, cursor))
    }
}

fn prompt(order: &RunOrder<'_>) -> String {
    match &order.composed.context {
        Some(context) => format!("{context}\n\n{}", order.composed.message),
        None => order.composed.message.clone(),
    }
}

/// None: it names something that this turn does not have.
fn filled(part: &str, order: &RunOrder<'_>) -> Option<String> {
    if part.contains("{model}") && order.model.is_none() {
        return None;
    }
    Some(
        part.replace("{session}", order.session().as_str())
            .replace("{folder}", order.folder)
            .replace("{model}", order.model.unwrap_or_default()),
    )
}
