//! Description of one run of a CLI, and the command that an adapter makes of it.

use rejoin_core::{Composed, Micros, Permissions, SessionId, SessionSource, TurnPlan};

use crate::facts::MentionEscape;
use crate::repository::{Memory, RepositoryConfig};
use crate::session::ChosenBy;

/// Description of one run of a CLI.
#[derive(Debug, Clone, Copy)]
pub struct RunOrder<'a> {
    /// Decision about the session.
    pub plan: &'a TurnPlan,
    /// Prompt, and text that precedes it.
    pub composed: &'a Composed,
    /// Id minted for this attempt. A resume takes its id from the plan instead, and a CLI that
    /// chooses ids itself does not receive it.
    pub new_session: &'a SessionId,
    /// Id of the turn, as in the marker variable of its processes.
    pub turn: &'a str,
    /// The CLI's home.
    pub home: &'a str,
    /// Path of the session beneath the home, if known before the run.
    pub place: Option<&'a str>,
    /// File that a fork starts from. No other process knows it.
    pub origin: Option<&'a str>,
    /// Environment of the CLI, without the variables that its command adds.
    pub env: &'a [(String, String)],
    /// Id minted for this attempt, by which the prompt is found in the session again.
    pub prompt_id: &'a str,
    /// Canonical path of the working folder.
    pub folder: &'a str,
    /// Model. None: the CLI's default.
    pub model: Option<&'a str>,
    /// Permissions of the turn.
    pub permissions: &'a Permissions,
    /// Result of [`Sandbox::mcp_servers`](crate::Sandbox::mcp_servers).
    pub mcp_servers: &'a [String],
    /// Treatment of the repository's own configuration.
    pub repository: RepositoryConfig,
    /// Memory files that the CLI does not read by itself.
    pub memory: &'a Memory,
    /// Arguments from the configuration.
    pub extra_args: &'a [String],
    /// Cost after which the CLI itself stops the turn, if it can do that.
    pub max_cost: Option<Micros>,
    /// True if the user's message keeps its CLI meaning (`--raw`).
    pub raw: bool,
    /// Mentions of the message that lead out of the folder. They stay plain text even with `raw`.
    pub outside: &'a [String],
    /// Method that keeps text from being taken for commands.
    pub neutral: MentionEscape,
    /// True if a person could answer the CLI's questions.
    pub asks: bool,
    /// True if the process may be kept for further turns, or is such a process.
    pub stays: bool,
}

impl RunOrder<'_> {
    /// True if the run uses a process that is already running.
    pub fn is_live(&self) -> bool {
        self.plan
            .session()
            .is_some_and(|it| it.way() == SessionSource::Live)
    }

    /// Returns the session that this run writes to.
    pub fn session(&self) -> &SessionId {
        match self.plan.session() {
            Some(trusted) if trusted.way() != SessionSource::Fork => trusted.id(),
            Some(_) | None => self.new_session,
        }
    }
}

/// A program that may defer a question of the CLI.
#[derive(Debug, Clone, Copy)]
pub struct Hook<'a> {
    /// Path of the program. The CLI calls it with the argument `hook`.
    pub program: &'a str,
    /// Maximum run time.
    pub seconds: u64,
}

/// Description of a run that continues a deferred turn in a new process, after its question was
/// answered.
#[derive(Debug, Clone, Copy)]
pub struct GoOnOrder<'a> {
    /// Session to continue.
    pub session: &'a SessionId,
    /// Model. None: the CLI's default.
    pub model: Option<&'a str>,
    /// Permissions of the turn.
    pub permissions: &'a Permissions,
    /// Canonical path of the working folder.
    pub folder: &'a str,
    /// Treatment of the repository's own configuration.
    pub repository: RepositoryConfig,
    /// Memory files that the CLI does not read by itself.
    pub memory: &'a Memory,
    /// Arguments from the configuration.
    pub extra_args: &'a [String],
    /// Cost after which the CLI itself stops the turn, if it can do that.
    pub max_cost: Option<Micros>,
}

/// A command line with its input, environment and files, as data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandSpec {
    /// Hidden command of rejoin that starts the CLI and talks to it, because the CLI does not talk
    /// on stdin and stdout. It receives the program and its arguments.
    pub through: Option<&'static str>,
    /// Arguments, without the program.
    pub args: Vec<String>,
    /// Text that the CLI receives on stdin at its start.
    pub stdin: String,
    /// Keeps stdin open for answers until a line of one of these types appears. For protocols
    /// without types, `method:NAME` and `id:TEXT` match a line by these members.
    pub hold_stdin: bool,
    /// Types of lines after which stdin is closed.
    pub close_stdin_on: Vec<String>,
    /// Types of lines that end the turn. After one of them the process may run for a short time
    /// only.
    pub done_on: Vec<String>,
    /// Data with which the parser conducts the dialogue of this run (such as the prompt). Stored
    /// with the run, for later readers.
    pub dialogue: Option<String>,
    /// Side that chooses the id of a new session in this run, if it differs from
    /// [`Profile::chosen_by`](crate::Profile::chosen_by).
    pub chosen_by: Option<ChosenBy>,
    /// Variables of this run, which override all others.
    pub env: Vec<(String, String)>,
    /// True if stdout is a terminal.
    pub pty: bool,
    /// Id by which a reader of the session identifies this prompt. None: the id minted for the
    /// attempt.
    pub prompt_mark: Option<String>,
    /// Files that the CLI needs beneath its home, by path. A path always has the same content,
    /// because other runs may be reading it.
    pub files: Vec<(String, String)>,
}
