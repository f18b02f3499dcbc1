//! Errors as people and scripts meet them: one sentence, the next step, the exit code.

pub(crate) mod codes;

use std::io;

use rejoin_core::Class;
use rejoin_hub::Error as HubError;
use rejoin_runner::Error as RunnerError;
use rejoin_store::{ArchiveError, BadArchive, Error as StoreError};

use codes::Code;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: u8,
    /// The same word in JSON and over HTTP.
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) next: Option<String>,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            exit: code.exit,
            code: code.word,
            message: message.into(),
            next: Some(code.next.to_owned()),
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(codes::USAGE, message)
    }

    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self::new(codes::CONFIG, message)
    }

    pub(crate) fn untrusted(message: impl Into<String>) -> Self {
        Self::new(codes::UNTRUSTED, message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(codes::CONFLICT, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(codes::NOT_FOUND, message)
    }

    pub(crate) fn ambiguous(message: impl Into<String>) -> Self {
        Self::new(codes::AMBIGUOUS, message)
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(codes::UNAVAILABLE, message)
    }

    /// The working folder, named once: what the system says names it again.
    pub(crate) fn folder(path: &str, error: &io::Error) -> Self {
        let known = [
            (io::ErrorKind::NotFound, "does not exist"),
            (io::ErrorKind::NotADirectory, "is not a folder"),
            (io::ErrorKind::PermissionDenied, "may not be entered"),
            (io::ErrorKind::InvalidInput, "has a name that is not UTF-8"),
        ];
        let kind = error.kind();
        let why = known.iter().find(|(known, _)| *known == kind).map_or_else(
            || format!("cannot be used: {kind}"),
            |(_, why)| (*why).to_owned(),
        );
        Self::usage(format!("the working folder {path} {why}")).try_this("rejoin send -w . \"…\"")
    }

    #[must_use]
    pub(crate) fn try_this(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}

/// The exit code of a turn that did not succeed.
pub(crate) fn exit_of(class: Option<Class>) -> u8 {
    class.map_or(1, |class| codes::of_class(class).exit)
}

impl From<RunnerError> for Failure {
    fn from(error: RunnerError) -> Self {
        let text = error.to_string();
        match error {
            RunnerError::Hub(error) => error.into(),
            RunnerError::UnknownAgent(_) => {
                let names: Vec<_> = rejoin_agents::ADAPTERS.iter().map(|a| a.name()).collect();
                Self::new(codes::AGENT_NOT_FOUND, text)
                    .try_this(format!("rejoin send -a {} \"…\"", names.join("|")))
            }
            RunnerError::AgentMissing { install, .. } => {
                Self::new(codes::AGENT_MISSING, text + "; nothing was sent").try_this(install)
            }
            RunnerError::NotThatAgent { .. } => Self::new(codes::AGENT_MISSING, text),
            RunnerError::Folder { path, source } => Self::folder(&path, &source),
            RunnerError::WouldReseed { .. } => Self::new(
                codes::WOULD_RESEED,
                text + "; nothing was sent and the message was not kept",
            )
            .try_this("rejoin explain --next, or the same without --no-reseed"),
            RunnerError::Envelope(_) => Self::new(
                codes::ENVELOPE,
                text + "; nothing was sent and the message was not kept",
            ),
            RunnerError::InUse { .. } => Self::new(
                codes::IN_USE,
                text + "; nothing was sent and the message was not kept",
            )
            .try_this("rejoin send --if-busy wait …, or end that process"),
            RunnerError::Cancelled => {
                Self::new(codes::CANCELLED, text + "; the message was not kept")
            }
            RunnerError::Unopened { .. } => Self::new(codes::NOT_OPENED, text),
            RunnerError::NothingSaid(_) => {
                Self::conflict(text).try_this("rejoin adopt, and another one")
            }
            RunnerError::DoesNotTravel(_) => {
                Self::usage(text).try_this("rejoin export CONV -o FILE")
            }
            RunnerError::OtherSession(_) => {
                Self::conflict(text + "; nothing was changed").try_this("rejoin adopt --everywhere")
            }
            RunnerError::Io { .. } => Self::unavailable(text),
            RunnerError::Internal(_) => Self::new(codes::INTERNAL, text),
        }
    }
}

impl From<HubError> for Failure {
    fn from(error: HubError) -> Self {
        let text = error.to_string();
        match error {
            HubError::Store(error) => error.into(),
            HubError::NotFound(_) => Self::new(codes::NOT_FOUND, text),
            HubError::NoMessage { handle, .. } => {
                Self::new(codes::NOT_FOUND, text).try_this(format!("rejoin show {handle}"))
            }
            HubError::NoneYet => {
                Self::new(codes::NOT_FOUND, text).try_this("rejoin send \"hello\"")
            }
            HubError::Ambiguous { .. } => Self::new(codes::AMBIGUOUS, text),
            HubError::Busy => busy(),
            HubError::KeyReused(_) => {
                Self::new(codes::KEY_REUSED, text + "; this message was not kept")
            }
            HubError::Running(handle) => Self::new(
                codes::BUSY,
                format!("{text}; nothing was changed, cancel it first"),
            )
            .try_this(format!("rejoin cancel {handle}")),
            HubError::Opened(handle) => Self::new(
                codes::BUSY,
                format!("{text}; nothing was changed, leave that first"),
            )
            .try_this(format!("rejoin show {handle}")),
            HubError::IsAnswer { to } => Self::usage(text).try_this(format!("rejoin retry {to}")),
            HubError::NothingToUndo(handle) => {
                Self::new(codes::CONFLICT, text).try_this(format!("rejoin show {handle} --all"))
            }
            HubError::Conflict(_) => {
                Self::new(codes::CONFLICT, format!("{text}; nothing was changed"))
            }
            HubError::Usage(_) => Self::usage(text),
            HubError::Diverged(_) => {
                Self::new(codes::DIVERGED, format!("{text}; nothing was changed"))
            }
            HubError::Archive(error) => archive(&error),
            HubError::Internal(_) => Self::new(codes::INTERNAL, text),
        }
    }
}

/// What is no archive at all was named by mistake; what is one and is not whole is damage.
fn archive(error: &ArchiveError) -> Failure {
    let text = error.to_string();
    match error {
        ArchiveError::Bad(bad) => match bad {
            BadArchive::NotOne => Failure::usage(text).try_this("rejoin export CONV -o FILE"),
            BadArchive::Newer { .. } => {
                Failure::usage(text).try_this("rejoin --version, and install a newer one")
            }
            BadArchive::Truncated | BadArchive::Damaged(_) => {
                Failure::new(codes::BAD_ARCHIVE, text + "; nothing of it was taken")
            }
            BadArchive::Io(_) => Failure::unavailable(text),
        },
        ArchiveError::KeyTaken(_) | ArchiveError::Elsewhere(_) => {
            Failure::conflict(text + "; nothing was changed")
        }
        ArchiveError::Store(_) => Failure::unavailable(text),
        ArchiveError::Write(_) => Failure::unavailable(text).try_this("df -h"),
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let mut text = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(inner) = source {
            // Some errors say their source themselves.
            let inner_text = inner.to_string();
            if !text.ends_with(&inner_text) {
                text = format!("{text}: {inner_text}");
            }
            source = inner.source();
        }
        match error {
            StoreError::Conflict(_) => Self::new(codes::CONFLICT, text).try_this("the same again"),
            StoreError::Away { .. } => Self::unavailable(text)
                .try_this("rejoin doctor; and see that the server runs and lets you in"),
            StoreError::Address => Self::config(format!("database.url: {text}"))
                .try_this("rejoin config show, to see where it comes from"),
            StoreError::Open { .. } | StoreError::ReadOnly(_) => {
                Self::unavailable(text).try_this("export REJOIN_HOME=/a/folder/you/can/write")
            }
            StoreError::Newer { .. } => {
                Self::unavailable(text).try_this("rejoin --version, and install a newer one")
            }
            StoreError::DiskFull(_)
            | StoreError::Unavailable(_)
            | StoreError::Failed
            | StoreError::Read(_)
            | StoreError::Foreign(_) => Self::unavailable(text),
            StoreError::BlobsConfig(_) => {
                Self::config(text).try_this("rejoin config show, to see where it comes from")
            }
            StoreError::Blobs { .. } => Self::unavailable(text).try_this("rejoin doctor"),
        }
    }
}

fn busy() -> Failure {
    Failure::new(
        codes::BUSY,
        "the conversation is busy with another turn; this message was not kept",
    )
    .try_this("rejoin send --if-busy wait …")
}
