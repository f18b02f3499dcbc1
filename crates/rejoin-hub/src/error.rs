//! What the hub cannot do, by what the caller can do about it.

use rejoin_core::{ConversationId, PermissionMode};

use crate::ceiling::Beyond;
use crate::questions::LateAnswer;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] rejoin_store::Error),
    #[error("{0}")]
    NotFound(String),
    #[error("the queue is full: {most} messages wait already")]
    QueueFull { most: u64 },
    /// The conversation is there.
    #[error("{handle} {what}")]
    NoMessage { handle: String, what: String },
    #[error("there is no conversation yet")]
    NoneYet,
    /// The handle or prefix names several.
    #[error("`{text}` could be {choices}")]
    Ambiguous { text: String, choices: String },
    /// A turn of the conversation is running or queued.
    #[error("the conversation is busy with another turn")]
    Busy,
    #[error("the key `{0}` was used before with another message")]
    KeyReused(String),
    /// Its policy is `ask`, and nobody has said yes; its handle.
    #[error("{0} is set to ask before it is continued")]
    MustConfirm(String),
    /// Its policy is `never`; its handle.
    #[error("{0} is set never to be continued")]
    NeverContinues(String),
    /// More than the caller may ask for.
    #[error("{what} needs the permission {needs}, and your ceiling is {ceiling}")]
    AboveCeiling {
        what: Beyond,
        needs: PermissionMode,
        ceiling: PermissionMode,
    },
    /// A change of the history needs it to be idle; its handle.
    #[error("a turn of {0} is running")]
    Running(String),
    #[error("{0} is open in the agent's own terminal interface")]
    Opened(String),
    /// Only what a user said can be run again; the message that it answers.
    #[error("that is an answer; name the message it answers")]
    IsAnswer { to: String },
    #[error("no change of {0} is left to be taken back")]
    NothingToUndo(String),
    #[error("{0}")]
    Conflict(String),
    /// The process that asked is gone; what was to be said to it, as a message.
    #[error("the process that asked is gone; the answer can be sent as a new message")]
    QuestionGone {
        conversation: ConversationId,
        text: String,
        answer: Box<LateAnswer>,
    },
    /// There is one of that name, or none, or it cannot be a name.
    #[error("{0}")]
    TokenTaken(String),
    #[error("{0}")]
    NoToken(String),
    #[error("{0}")]
    TokenName(String),
    /// A scope that this version gives no rights to.
    #[error("{0}")]
    TokenScope(String),
    #[error("that is not a cursor; --json prints one as next_cursor")]
    Cursor,
    #[error("{0}")]
    Usage(String),
    /// It was written, or could not be, or is none.
    #[error(transparent)]
    Archive(rejoin_store::ArchiveError),
    /// An archive and the conversation here went on from the same place, each by itself; its handle.
    #[error("{0} went on here, and went on otherwise in this archive")]
    Diverged(String),
    /// A defect of rejoin.
    #[error("something is wrong inside rejoin: {0}")]
    Internal(String),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<rejoin_store::ArchiveError> for Error {
    fn from(error: rejoin_store::ArchiveError) -> Self {
        match error {
            rejoin_store::ArchiveError::Store(error) => error.into(),
            rejoin_store::ArchiveError::Bad(_)
            | rejoin_store::ArchiveError::KeyTaken(_)
            | rejoin_store::ArchiveError::Elsewhere(_)
            | rejoin_store::ArchiveError::Write(_) => Self::Archive(error),
        }
    }
}

impl From<rejoin_store::BadArchive> for Error {
    fn from(bad: rejoin_store::BadArchive) -> Self {
        Self::Archive(bad.into())
    }
}

impl Error {
    /// Somebody else was faster: look again.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Store(rejoin_store::Error::Conflict(_)))
    }

    /// The store can be read, and not be written now.
    pub fn is_unwritable(&self) -> bool {
        use rejoin_store::Error::{Busy, DiskFull, ReadOnly};
        matches!(self, Self::Store(DiskFull(_) | ReadOnly(_) | Busy(_)))
    }
}
