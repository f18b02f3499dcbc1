//! A CLI that the user describes in the configuration (`[agents.NAME] kind = "command"`): how to
//! call it, where its lines contain the required values, and where its sessions are stored. rejoin
//! relies only on described features: without a readable session file, nothing is resumed.

use std::path::PathBuf;

use rejoin_core::{PermissionMode, Permissions, Runtime, TotalsScope, TurnPlan, Version};

use crate::adapter::{Adapter, CostLimit, Env, IdForm, NamedTools, Profile, ReadHome};
use crate::capability::Capabilities;
use crate::environment::EnvRules;
use crate::order::{CommandSpec, RunOrder};
use crate::session::{ChosenBy, Moving, Records, SessionAt, SessionPath, SessionReader, text_mark};
use crate::stream::StreamParser;

mod json_path;
mod session;
mod stream;

pub use json_path::JsonPath;

/// Description of a CLI in the configuration.
#[derive(Debug, Clone, Default)]
pub struct GenericConfig {
    /// Name of the agent, as users write it.
    pub name: String,
    /// Name or path of the program.
    pub bin: String,
    /// Arguments of a first turn.
    pub start_args: Vec<String>,
    /// Arguments of a turn that resumes `{session}`. None: the CLI cannot resume.
    pub resume_args: Option<Vec<String>>,
    /// True if the prompt is the last argument instead of stdin.
    pub prompt_as_argument: bool,
    /// True if stdout must be a terminal.
    pub pty: bool,
    /// Arguments by permission mode. A mode that is missing here is refused.
    pub permission: Vec<(PermissionMode, Vec<String>)>,
    /// Location of the session id in the output. None: rejoin passes the id to the CLI.
    pub session_from: Option<JsonPath>,
    /// Locations of the answer. Empty: the whole output is the answer.
    pub text_from: Vec<JsonPath>,
    /// Location of the CLI's error message.
    pub error_from: Option<JsonPath>,
    /// Location of the number of input tokens.
    pub input_from: Option<JsonPath>,
    /// Location of the number of output tokens.
    pub output_from: Option<JsonPath>,
    /// Location of the cost in US dollars.
    pub cost_from: Option<JsonPath>,
    /// Type of a line that a success must contain.
    pub done_on: Option<String>,
    /// Message of the CLI about a session that it does not know.
    pub refused: Option<String>,
    /// Range that its totals cover.
    pub totals: Option<TotalsScope>,
    /// Path such as `~/…/{session}.jsonl`. A folder may be `*`.
    pub session_file: Option<String>,
    /// Locations of prompts and answers in the lines of the session.
    pub session_user: Option<JsonPath>,
    /// Location of answers in the lines of the session.
    pub session_assistant: Option<JsonPath>,
}

/// A CLI that the configuration describes.
#[derive(Debug)]
pub struct Generic {
    profile: Profile,
    config: GenericConfig,
}

impl Generic {
    /// Creates an adapter that lives as long as the process: adapters are passed by reference
    /// everywhere, and the configuration is read once.
    pub fn adapter(config: GenericConfig) -> &'static dyn Adapter {
        let keep = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
        let profile = Profile {
            name: keep(&config.name),
            program: Some(keep(&config.bin)),
            prelude: &[],
            install: "install it, or correct `bin` in its section of the configuration",
            login: None,
            allows: &[],
            named_tools: NamedTools::Permit(&[]),
            ids: IdForm::Any,
            chosen_by: match config.session_from {
                Some(_) => ChosenBy::TheCli,
                None => ChosenBy::Us,
            },
            records: Records::Lines,
            keeps_model: true,
            deletes_after_days: None,
            totals: config.totals,
            cannot_resume: config.cannot_resume().as_deref().map(keep),
        };
        Box::leak(Box::new(Self { profile, config }))
    }
}

impl GenericConfig {
    /// Explains why the described CLI can never resume. None if it can.
    fn cannot_resume(&self) -> Option<String> {
        let missing = if self.resume_args.is_none() {
            "resume_args"
        } else if self.file().is_none() {
            "session_file"
        } else if self.session_user.is_none() || self.session_assistant.is_none() {
            "session_user and session_assistant"
        } else {
            return None;
        };
        Some(format!("agents.{} does not set {missing}", self.name))
    }

    /// Returns the described session file: its folder beneath the home, and its name.
    fn file(&self) -> Option<(&str, &str)> {
        let described = self.session_file.as_deref()?;
        let beneath = described
            .strip_prefix("~/")
            .or_else(|| described.strip_prefix('/'))?;
        Some(beneath.rsplit_once('/').unwrap_or(("", beneath)))
    }
}

impl Adapter for Generic {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities::NONE
    }

    /// Takes the first word with a number as the version, or `0` without one. The product is the
    /// agent's name.
    fn runtime(&self, version_output: &str) -> Option<Runtime> {
        let is_number = |word: &&str| {
            word.trim_start_matches('v')
                .starts_with(|c: char| c.is_ascii_digit())
        };
        let found = version_output.split_whitespace().find(is_number);
        Some(Runtime {
            product: self.profile.name.into(),
            version: Version(found.unwrap_or("0").trim_start_matches('v').into()),
        })
    }

    fn check_permissions(&self, permissions: &Permissions, _as_root: bool) -> Result<(), String> {
        let name = self.profile.name;
        if permissions.tools.is_some() || !permissions.deny_tools.is_empty() {
            return Err(format!(
                "{name} is configured without tool lists; leave out --tools and --deny-tools"
            ));
        }
        let known = |mode| self.config.permission.iter().any(|(m, _)| *m == mode);
        if known(permissions.mode) {
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
            permissions.mode
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
        let mode = order.permissions.mode;
        let allowed = config.permission.iter().find(|(m, _)| *m == mode);
        let allowed = allowed.map(|(_, args)| args.as_slice()).unwrap_or_default();
        let mut args = vec![];
        for part in template.iter().chain(allowed).chain(order.extra_args) {
            match filled(part, order) {
                Some(arg) => args.push(arg),
                // The preceding flag has lost its value.
                None if part == "{model}"
                    && args.last().is_some_and(|a: &String| a.starts_with('-')) =>
                {
                    args.pop();
                }
                None => {}
            }
        }
        if config.prompt_as_argument {
            // A prompt that begins like a flag must not be taken for one.
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
        Box::new(stream::Stream::new(self.profile.name, self.config.clone()))
    }

    /// Without `done_on` a line with a cost may be the last one.
    fn cost_limit(&self, _permissions: &Permissions) -> CostLimit {
        let (config, name) = (&self.config, self.profile.name);
        let tokens = config.input_from.is_some() && config.output_from.is_some();
        if config.done_on.is_some() && config.cost_from.is_some() {
            CostLimit::Dollars
        } else if config.done_on.is_some() && tokens {
            CostLimit::Tokens
        } else {
            CostLimit::None(format!(
                "the configuration of {name} does not say where its output has the cost (agents.{name}.cost_from and done_on)"
            ))
        }
    }

    fn environment(&self) -> EnvRules {
        EnvRules::default()
    }

    fn home(&self, env: Env<'_>) -> Option<PathBuf> {
        match &self.config.session_file {
            Some(file) if file.starts_with('/') => Some("/".into()),
            Some(_) | None => env("HOME").map(PathBuf::from),
        }
    }

    fn place(&self, at: &SessionAt<'_>) -> SessionPath {
        let Some((folder, name)) = self.config.file() else {
            return SessionPath::Find {
                folders: vec![],
                begins: String::new(),
                ends: String::new(),
                copy: None,
            };
        };
        let name = name.replace("{session}", at.session.as_str());
        match (folder.contains('*'), name.split_once('*')) {
            (false, None) => SessionPath::At(if folder.is_empty() {
                name
            } else {
                format!("{folder}/{name}")
            }),
            (_, parts) => {
                let (begins, ends) = parts.unwrap_or(("", name.as_str()));
                SessionPath::Find {
                    folders: vec![folder.to_owned()],
                    begins: begins.to_owned(),
                    ends: ends.to_owned(),
                    copy: None,
                }
            }
        }
    }

    fn moving(&self, at: &SessionAt<'_>, _read: ReadHome<'_>) -> Moving {
        self.place(at).moving()
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

/// Fills in the placeholders. None if the argument needs a model and the turn has none.
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
