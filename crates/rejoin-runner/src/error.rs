//! Errors for turns that could not run at all. A failure of a run is an outcome, not an error.

use rejoin_core::Reason;

use crate::open::Unopened;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Hub(#[from] rejoin_hub::Error),
    #[error("there is no agent `{0}`")]
    UnknownAgent(String),
    #[error("{0} is switched off in the configuration")]
    AgentDisabled(String),
    #[error("{agent} is not installed: `{program}` was not found")]
    AgentMissing {
        agent: String,
        program: String,
        install: String,
        /// True if the configuration names the program.
        configured: bool,
        /// Agents whose programs are installed.
        others: Vec<String>,
    },
    #[error("`{program}` does not answer like {agent}: {why}")]
    NotThatAgent {
        agent: String,
        program: String,
        why: String,
    },
    #[error("the working folder {path} cannot be used: {source}")]
    Folder {
        path: String,
        #[source]
        source: std::io::Error,
    },
    /// The daemon's roots do not allow the folder that the turn would enter.
    #[error("the working folder is not beneath one that this daemon allows")]
    OutsideRoots,
    /// `--no-reseed`: nothing was sent.
    #[error("the session cannot be resumed ({why}), and --no-reseed forbids telling a new one")]
    WouldReseed { why: Reason },
    #[error("{0}")]
    Permissions(String),
    /// Cancelled while the message waited in the queue.
    #[error("cancelled before it ran")]
    Cancelled,
    /// The state from which a turn must continue is missing or may not be used.
    #[error("{0}")]
    CannotGoOn(String),
    #[error("process {pid} is using this session")]
    InUse { pid: u32 },
    /// `open` failed: nothing was started.
    #[error("{agent}'s session cannot be opened: {why}")]
    Unopened { agent: String, why: Unopened },
    #[error("nothing was said in session {0}")]
    NothingSaid(String),
    /// The agent does not keep a session as a file with a known path.
    #[error("a session of {0} does not travel by itself")]
    DoesNotTravel(String),
    #[error("another session lies where {0} belongs")]
    OtherSession(String),
    #[error("{context}: {source}")]
    Io {
        context: String,
        #[source]
        source: std::io::Error,
    },
    #[error("something is wrong inside rejoin: {0}")]
    Internal(String),
}

impl From<rejoin_store::Error> for Error {
    fn from(error: rejoin_store::Error) -> Self {
        Self::Hub(error.into())
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn io(context: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let context = context.into();
        move |source| Self::Io { context, source }
    }
}
