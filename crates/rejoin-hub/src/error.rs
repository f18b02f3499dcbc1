//! What the hub cannot do, by what the caller can do about it.

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] rejoin_store::Error),
    #[error("{0}")]
    NotFound(String),
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
    #[error("{0}")]
    Usage(String),
    /// A defect of rejoin.
    #[error("something is wrong inside rejoin: {0}")]
    Internal(String),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Somebody else was faster: look again.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Store(rejoin_store::Error::Conflict(_)))
    }
}
