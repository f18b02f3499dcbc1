//! Errors of the hub, grouped by the action that a caller can take.

use rejoin_core::{ConversationId, PermissionMode};

use crate::ceiling::LimitedPart;
use crate::questions::LateAnswer;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] rejoin_store::Error),
    #[error("{0}")]
    NotFound(String),
    #[error("the queue is full: {most} messages wait already")]
    QueueFull { most: u64 },
    /// The conversation exists, but not this message.
    #[error("{handle} {what}")]
    NoMessage { handle: String, what: String },
    #[error("there is no conversation yet")]
    NoneYet,
    /// The handle or prefix matches several conversations.
    #[error("`{text}` could be {choices}")]
    Ambiguous { text: String, choices: String },
    /// A turn of the conversation is running or queued.
    #[error("the conversation is busy with another turn")]
    Busy,
    /// The occurrence of a schedule is recorded already, by this daemon or another one.
    #[error("this occurrence of the schedule `{0}` is recorded already")]
    OccurrenceRecorded(String),
    #[error("the key `{0}` was used before with another message")]
    KeyReused(String),
    /// The conversation's policy is `ask` and the caller did not confirm. Holds its handle.
    #[error("{0} is set to ask before it is continued")]
    MustConfirm(String),
    /// The conversation's policy is `never`. Holds its handle.
    #[error("{0} is set never to be continued")]
    NeverContinues(String),
    /// The supervisor does not allow the climb. Holds the evidence of the check that failed.
    #[error("the climb is refused: {0}")]
    ClimbRefused(String),
    /// The request needs more permissions than the caller may ask for.
    #[error("{what} needs the permission {needs}, and your ceiling is {ceiling}")]
    AboveCeiling {
        what: LimitedPart,
        needs: PermissionMode,
        ceiling: PermissionMode,
    },
    /// A change of the history needs an idle conversation. Holds its handle.
    #[error("a turn of {0} is running")]
    Running(String),
    #[error("{0} is open in the agent's own terminal interface")]
    Opened(String),
    /// Only a user's message can be retried. `to` is the message that this one answers.
    #[error("that is an answer; name the message it answers")]
    IsAnswer { to: String },
    #[error("no change of {0} is left to be taken back")]
    NothingToUndo(String),
    #[error("{0}")]
    Conflict(String),
    /// The process that asked is gone. `text` is the answer as a message to send.
    #[error("the process that asked is gone; the answer can be sent as a new message")]
    QuestionGone {
        conversation: ConversationId,
        text: String,
        answer: Box<LateAnswer>,
    },
    /// A token with this name exists. `NoToken`: none does. `TokenName`: the name is not valid.
    #[error("{0}")]
    TokenTaken(String),
    #[error("{0}")]
    NoToken(String),
    #[error("{0}")]
    TokenName(String),
    /// A token scope that grants no rights in this version.
    #[error("{0}")]
    TokenScope(String),
    #[error("that is not a cursor; --json prints one as next_cursor")]
    Cursor,
    #[error("{0}")]
    Usage(String),
    /// An archive could not be written, could not be read, or is not valid.
    #[error(transparent)]
    Archive(rejoin_store::ArchiveError),
    /// Archive and conversation have a common beginning but continued differently. Holds the
    /// handle.
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
    /// Returns true if the store failed: the same may work later.
    pub fn is_store(&self) -> bool {
        matches!(self, Self::Store(_))
    }

    /// Returns true if another process was faster; the caller should read the state again.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Store(rejoin_store::Error::Conflict(_)))
    }

    /// Returns true if the store can be read but not written at the moment.
    pub fn is_unwritable(&self) -> bool {
        use rejoin_store::Error::{Busy, DiskFull, ReadOnly};
        matches!(self, Self::Store(DiskFull(_) | ReadOnly(_) | Busy(_)))
    }
}
