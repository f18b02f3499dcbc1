//! Required interface of a coding CLI: its fixed data, its commands, its output and its sessions.
//! Everything else is optional and listed in [`Capabilities`].

use std::path::PathBuf;

use rejoin_core::{PermissionMode, Permissions, Runtime, SessionId, TotalsScope};
use serde::Serialize;

use crate::capability::Capabilities;
use crate::environment::EnvRules;
use crate::order::{CommandSpec, RunOrder};
use crate::session::{ChosenBy, Moving, Records, SessionAt, SessionPath, SessionReader, is_uuid};
use crate::stream::StreamParser;

/// Looks up a variable of the CLI's environment.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Returns the bytes of a file beneath the CLI's home. None if there is no such file.
pub type ReadHome<'a> = &'a dyn Fn(&str) -> Option<Vec<u8>>;

/// A coding CLI: how to start it, how to read its output, and where it stores sessions.
pub trait Adapter: Send + Sync {
    /// Returns the fixed data of the CLI.
    fn profile(&self) -> &Profile;

    /// Returns the optional features of the CLI.
    fn capabilities(&self) -> Capabilities<'_>;

    /// Parses the output of `--version`. None if this is not the expected program.
    fn runtime(&self, version_output: &str) -> Option<Runtime>;

    /// Checks that the CLI can enforce these permissions. The error is one sentence about the
    /// permissions that it can enforce.
    fn check_permissions(&self, permissions: &Permissions, as_root: bool) -> Result<(), String>;

    /// Returns a tool that the CLI says it offers to its model, and that these permissions exclude.
    fn forbidden_offer<'t>(
        &self,
        _permissions: &Permissions,
        _offered: &'t [String],
    ) -> Option<&'t str> {
        None
    }

    /// Returns the means that stops a turn with these permissions at a cost.
    fn cost_limit(&self, _permissions: &Permissions) -> CostLimit {
        CostLimit::None(format!(
            "{} reports its tokens only at the end of a turn",
            self.profile().name
        ))
    }

    /// Returns the changes to the environment of every run.
    fn environment(&self) -> EnvRules;

    /// Builds the command of one run.
    fn command(&self, order: &RunOrder<'_>) -> CommandSpec;

    /// Returns a parser for the output of one run.
    fn parser(&self) -> Box<dyn StreamParser>;

    /// Returns the folder beneath which the CLI stores its sessions, given its environment.
    fn home(&self, env: Env<'_>) -> Option<PathBuf>;

    /// Returns the place of a session's main file beneath the home.
    fn place(&self, at: &SessionAt<'_>) -> SessionPath;

    /// Returns how to make a session usable in another working folder, which `at` names.
    fn moving(&self, at: &SessionAt<'_>, read: ReadHome<'_>) -> Moving;

    /// Returns the reason why a session with this line is not continued: the CLI would take more from
    /// the line than what was said, such as another folder to work in.
    fn refuses(&self, _line: &[u8]) -> Option<&'static str> {
        None
    }

    /// Returns a reader that starts at `cursor` (the confirmed end), or at the beginning.
    fn reader(&self, cursor: Option<&str>) -> Box<dyn SessionReader>;
}

impl dyn Adapter + '_ {
    /// Returns the name of the agent, as users write it.
    pub fn name(&self) -> &'static str {
        self.profile().name
    }

    /// Returns true if the id has the form of this CLI's ids.
    pub fn is_session_id(&self, id: &SessionId) -> bool {
        self.profile().ids.accept(id)
    }
}

/// Fixed data of a CLI.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Name of the agent, as users write it.
    pub name: &'static str,
    /// Usual name of the program on `PATH`. None if the agent is part of rejoin itself.
    pub program: Option<&'static str>,
    /// Arguments that precede all others, such as a hidden command of rejoin.
    pub prelude: &'static [&'static str],
    /// Installation instruction, for the error when the program is missing.
    pub install: &'static str,
    /// Signs of a login. None if the CLI needs no login.
    pub login: Option<Login>,
    /// Descriptions for people of how the CLI applies each mode. A mode that is missing is refused.
    pub allows: &'static [Allows],
    /// Effect of a list of tools on the permissions.
    pub named_tools: NamedTools,
    /// Form of session ids.
    pub ids: IdForm,
    /// Side that chooses the id of a new session.
    pub chosen_by: ChosenBy,
    /// Storage format of a session.
    pub records: Records,
    /// True if a resume without a model uses the session's own. Otherwise the model must be passed.
    pub keeps_model: bool,
    /// Number of days after which the CLI deletes unused sessions. None if never.
    pub deletes_after_days: Option<u32>,
    /// Range that the totals cover, for agents that declare it instead of proving it.
    pub totals: Option<TotalsScope>,
    /// Reason why the agent can never resume, independent of its binary. None if it can.
    pub cannot_resume: Option<&'static str>,
}

/// Means that stops a turn at a cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CostLimit {
    /// The CLI has a limit of its own.
    OfTheCli,
    /// No turn costs money.
    Free,
    /// rejoin stops the run: the CLI reports dollars after every model call.
    Dollars,
    /// rejoin stops the run: the CLI reports tokens after every model call, and the configured price
    /// of the model turns them into dollars.
    Tokens,
    /// There is none, for this reason.
    None(String),
}

/// Effect of naming tools on the permissions of a turn.
#[derive(Debug, Clone, Copy)]
pub enum NamedTools {
    /// A list only removes tools.
    Restrict,
    /// A named tool is permitted, which extends the permissions unless it is one of these, which
    /// `edit` permits by itself.
    Permit(&'static [&'static str]),
}

/// Form of a CLI's session ids. rejoin passes no other id to the CLI: several CLIs silently start a
/// new session when they receive an id of another form.
#[derive(Debug, Clone, Copy)]
pub enum IdForm {
    /// Any id: its type already guarantees that it is safe in a path and not a flag.
    Any,
    /// UUIDs.
    Uuid,
    /// A prefix, followed by letters and digits.
    Prefixed {
        /// Text before the letters and digits.
        prefix: &'static str,
        /// Smallest and largest length of the whole id.
        length: (usize, usize),
        /// Usual number of letters and digits.
        digits: usize,
    },
}

impl IdForm {
    /// Returns true if the id has this form.
    pub fn accept(&self, id: &SessionId) -> bool {
        let id = id.as_str();
        match self {
            Self::Any => true,
            Self::Uuid => is_uuid(id),
            Self::Prefixed { prefix, length, .. } => {
                let digits = id.strip_prefix(prefix).unwrap_or_default();
                (length.0..=length.1).contains(&id.len())
                    && !digits.is_empty()
                    && digits.chars().all(|c| c.is_ascii_alphanumeric())
            }
        }
    }

    /// Turns `minted`, an id that exists nowhere else, into an id of this form.
    pub fn convert(&self, minted: &SessionId) -> SessionId {
        let Self::Prefixed { prefix, digits, .. } = self else {
            return minted.clone();
        };
        let plain = minted.as_str().chars().filter(char::is_ascii_alphanumeric);
        let id = prefix.chars().chain(plain.take(*digits));
        SessionId::new(id.collect::<String>()).unwrap_or_else(|_| minted.clone())
    }
}

/// Permissions of a turn in one mode, and the mechanism that enforces them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Allows {
    /// Mode that the row describes.
    pub mode: PermissionMode,
    /// Files that the agent may read.
    pub read: &'static str,
    /// Files that the agent may write.
    pub write: &'static str,
    /// Commands that the agent may run.
    pub run: &'static str,
    /// Network access.
    pub network: &'static str,
    /// Mechanism that enforces the row.
    pub by: &'static str,
}

/// Signs that a CLI is logged in. No secret is read.
#[derive(Debug, Clone, Copy)]
pub struct Login {
    /// Variables that hold a key, or select a service that has a login of its own.
    pub variables: &'static [&'static str],
    /// File beneath [`Adapter::home`], or beneath the user's own home if that is an overlay.
    pub file: &'static str,
    /// Instruction for logging in.
    pub how: &'static str,
}
