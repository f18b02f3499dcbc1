//! Errors as people and scripts meet them: one sentence, the next step, the exit code.

use rejoin_core::Class;
use rejoin_hub::Error as HubError;
use rejoin_runner::Error as RunnerError;
use rejoin_store::Error as StoreError;

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
    fn new(exit: u8, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            exit,
            code,
            message: message.into(),
            next: None,
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(2, "usage", message)
    }

    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self::new(2, "config", message)
    }

    pub(crate) fn untrusted(message: impl Into<String>) -> Self {
        Self::new(5, "untrusted", message)
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(6, "unavailable", message)
    }

    #[must_use]
    pub(crate) fn try_this(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}

/// The exit code of a turn that did not succeed.
pub(crate) fn exit_of(class: Option<Class>) -> u8 {
    match class {
        Some(Class::Auth) => 8,
        Some(Class::Quota) => 9,
        Some(Class::TimeLimit | Class::CostLimit) => 124,
        Some(Class::WouldReseed | Class::Envelope) => 5,
        Some(Class::InUse) => 4,
        Some(Class::Interrupted) => 130,
        Some(
            Class::Refused
            | Class::Transient
            | Class::ContextOverflow
            | Class::Poisoned
            | Class::InvalidRequest
            | Class::Crashed
            | Class::DiskFull
            | Class::NotRecorded
            | Class::NotStarted
            | Class::Lost
            | Class::Unknown,
        )
        | None => 1,
    }
}

impl From<RunnerError> for Failure {
    fn from(error: RunnerError) -> Self {
        let text = error.to_string();
        match error {
            RunnerError::Hub(error) => error.into(),
            RunnerError::UnknownAgent(_) => {
                let names: Vec<_> = rejoin_agents::ADAPTERS.iter().map(|a| a.name()).collect();
                Self::new(3, "agent_not_found", text)
                    .try_this(format!("rejoin send -a {}", names.join(" | ")))
            }
            RunnerError::AgentMissing { install, .. } => {
                Self::new(3, "agent_missing", text).try_this(install)
            }
            RunnerError::NotThatAgent { .. } => Self::new(3, "agent_missing", text)
                .try_this("set [agents.NAME] bin in the configuration"),
            RunnerError::Folder { .. } => {
                Self::usage(text).try_this("name a folder that exists with -w")
            }
            RunnerError::WouldReseed { .. } => Self::new(
                5,
                "would_reseed",
                text + "; nothing was sent and the message was not kept",
            )
            .try_this("the same without --no-reseed"),
            RunnerError::Envelope(_) => Self::new(
                5,
                "envelope",
                text + "; nothing was sent and the message was not kept",
            ),
            RunnerError::InUse { .. } => Self::new(
                4,
                "in_use",
                text + "; nothing was sent and the message was not kept",
            )
            .try_this("the same with --if-busy wait, or end that process"),
            RunnerError::Busy { .. } => busy(),
            RunnerError::Io { .. } => Self::unavailable(text),
            RunnerError::Internal(_) => Self::new(1, "internal", text),
        }
    }
}

impl From<HubError> for Failure {
    fn from(error: HubError) -> Self {
        let text = error.to_string();
        match error {
            HubError::Store(error) => error.into(),
            HubError::NotFound(_) => Self::new(3, "not_found", text).try_this("rejoin list"),
            HubError::Ambiguous { .. } => {
                Self::new(3, "ambiguous", text).try_this("type a longer prefix")
            }
            HubError::Busy => busy(),
            HubError::KeyReused(_) => Self::new(4, "key_reused", text + "; this one was not kept")
                .try_this("another --idempotency-key"),
            HubError::Usage(_) => Self::usage(text),
            HubError::Internal(_) => Self::new(1, "internal", text),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let mut text = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(inner) = source {
            text = format!("{text}: {inner}");
            source = inner.source();
        }
        match error {
            StoreError::Conflict(_) => Self::new(4, "conflict", text).try_this("the same again"),
            StoreError::Open { .. } => Self::unavailable(text)
                .try_this("check REJOIN_HOME, or set it to a folder you can write"),
            StoreError::Newer { .. } => {
                Self::unavailable(text).try_this("install the newer rejoin")
            }
            StoreError::DiskFull(_) | StoreError::Unavailable(_) | StoreError::Foreign(_) => {
                Self::unavailable(text)
            }
        }
    }
}

fn busy() -> Failure {
    Failure::new(
        4,
        "busy",
        "the conversation is busy with another turn; this message was not kept",
    )
    .try_this("the same with --if-busy wait")
}
