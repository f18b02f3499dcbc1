//! One run of a CLI: what is wanted of it, and the command that comes of that.

use rejoin_core::{Composed, Envelope, Micros, SessionId, TurnPlan, Way};

use crate::adapter::Neutral;
use crate::repository::{Memory, RepositoryConfig};
use crate::session::ChosenBy;

/// One run of a CLI, as it is to be.
#[derive(Debug, Clone, Copy)]
pub struct RunOrder<'a> {
    pub plan: &'a TurnPlan,
    pub composed: &'a Composed,
    /// Minted for this attempt; a resume takes its id from the plan instead, and a CLI that chooses
    /// its ids itself is not told.
    pub new_session: &'a SessionId,
    /// The turn, as it stands in the marker of its processes.
    pub turn: &'a str,
    /// The CLI's home, and where in it the session lies, as far as that is known before the run.
    pub home: &'a str,
    pub place: Option<&'a str>,
    /// What a fork begins with: a file that nobody else knows.
    pub origin: Option<&'a str>,
    /// The environment the CLI will get, but for what its command adds.
    pub env: &'a [(String, String)],
    /// Minted for this attempt: finds the prompt in the session again.
    pub prompt_id: &'a str,
    pub folder: &'a str,
    pub model: Option<&'a str>,
    pub envelope: &'a Envelope,
    /// As [`Adapter::tool_servers`](crate::Adapter::tool_servers) found them.
    pub tool_servers: &'a [String],
    pub repository: RepositoryConfig,
    pub memory: &'a Memory,
    /// From the configuration.
    pub extra_args: &'a [String],
    /// The turn is to be stopped when it has cost more, where the CLI can do that.
    pub max_cost: Option<Micros>,
    /// The user's own message keeps its CLI meaning (`--raw`).
    pub raw: bool,
    /// Of its mentions, those that lead out of the folder; they stay text even so.
    pub outside: &'a [String],
    pub neutral: Neutral,
    /// There is somebody who could answer what the CLI asks.
    pub asks: bool,
    /// Its process may be kept for further turns, or is one that was kept.
    pub stays: bool,
}

impl RunOrder<'_> {
    /// It goes on in a process that is there.
    pub fn is_live(&self) -> bool {
        self.plan.session().is_some_and(|it| it.way() == Way::Live)
    }

    /// The session this run will write.
    pub fn session(&self) -> &SessionId {
        match self.plan.session() {
            Some(trusted) if trusted.way() != Way::Fork => trusted.id(),
            Some(_) | None => self.new_session,
        }
    }
}

/// A program that may put off what the CLI wants to ask.
#[derive(Debug, Clone, Copy)]
pub struct Hook<'a> {
    /// Called with the word `hook`.
    pub program: &'a str,
    /// How long it may take.
    pub seconds: u64,
}

/// A turn whose question is answered, as it is to go on in a new process.
#[derive(Debug, Clone, Copy)]
pub struct GoOnOrder<'a> {
    pub session: &'a SessionId,
    pub model: Option<&'a str>,
    pub envelope: &'a Envelope,
    pub folder: &'a str,
    pub repository: RepositoryConfig,
    pub memory: &'a Memory,
    pub extra_args: &'a [String],
    pub max_cost: Option<Micros>,
}

/// A command as data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandSpec {
    /// A hidden command of rejoin that starts the CLI and speaks with it, because the CLI does not
    /// speak on its stdin and stdout. It is given the program and its arguments.
    pub through: Option<&'static str>,
    pub args: Vec<String>,
    pub stdin: String,
    /// Keep stdin open for answers; it is closed when a line of one of these types appears. Of a
    /// protocol without types: `method:NAME` and `id:TEXT` name a line by these members.
    pub hold_stdin: bool,
    pub close_stdin_on: Vec<String>,
    /// A line of one of these types is the last word: the process may live on for a moment only.
    pub done_on: Vec<String>,
    /// The run is a dialogue, and this is what its reader has to know to lead it (the prompt, say).
    /// It is kept with the run, for whoever reads it again.
    pub dialogue: Option<String>,
    /// Who chooses the id of a new session in this run, if not who usually does.
    pub chosen_by: Option<ChosenBy>,
    pub env: Vec<(String, String)>,
    /// Its stdout is a terminal.
    pub pty: bool,
    /// How a reader of the session will name this prompt; none: by the id minted for it.
    pub prompt_mark: Option<String>,
    /// What the CLI must find beneath its home, by place. Never two contents under one name: other
    /// runs may be reading it.
    pub files: Vec<(String, String)>,
}
