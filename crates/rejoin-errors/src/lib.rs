//! Errors as users and scripts see them, on the command line and over HTTP: code, sentence, next step, exit code.

pub mod codes;

use std::io;

use rejoin_core::Class;
use rejoin_hub::{Error as HubError, TurnView};
use rejoin_store::{ArchiveError, BadArchive, Error as StoreError};

use codes::Code;
use rejoin_runner::Error as RunnerError;
use rejoin_runner::repository::TRUST_HINT;
use rejoin_runner::trust::TrustError;

/// Failure of a command.
#[derive(Debug)]
pub struct CommandError {
    pub exit: u8,
    /// Error code in JSON and over HTTP.
    pub code: &'static str,
    pub message: String,
    pub next: Option<String>,
}

pub type Result<T, E = CommandError> = std::result::Result<T, E>;

impl CommandError {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            exit: code.exit,
            code: code.word,
            message: message.into(),
            next: Some(code.next.to_owned()),
        }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(codes::USAGE, message)
    }

    pub fn config(message: impl Into<String>) -> Self {
        Self::new(codes::CONFIG, message)
    }

    pub fn untrusted(message: impl Into<String>) -> Self {
        Self::new(codes::UNTRUSTED, message)
    }

    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(codes::CONFLICT, message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(codes::NOT_FOUND, message)
    }

    pub fn ambiguous(message: impl Into<String>) -> Self {
        Self::new(codes::AMBIGUOUS, message)
    }

    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(codes::UNAVAILABLE, message)
    }

    /// Builds the failure for a working folder. Names the folder once, because the system's message
    /// names it again.
    pub fn folder(path: &str, error: &io::Error) -> Self {
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
        Self::usage(format!("the working folder {path} {why}")).try_this("the same with -w DIR")
    }

    /// Builds the failure of a turn that ended before anything ran. Returns None if the turn ran.
    pub fn held_back(view: &TurnView) -> Option<Self> {
        if !view.attempts.is_empty() || view.verdict.is_some() {
            return None;
        }
        let error = view.error.as_ref()?;
        match error.class.as_str() {
            "would_reseed" => Some(would_reseed(&error.message)),
            "envelope" => Some(permissions(&error.message)),
            "in_use" => Some(in_use(&error.message)),
            "cancelled" => Some(cancelled(&RunnerError::Cancelled.to_string())),
            _ => None,
        }
    }

    #[must_use]
    pub fn try_this(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}

impl CommandError {
    /// Returns the HTTP status.
    pub fn status(&self) -> u16 {
        match (self.code, self.exit) {
            ("too_large", _) => 413,
            (_, 2) => 400,
            (_, 8) => 401,
            (_, 5) => 403,
            (_, 3) => 404,
            (_, 4 | 11 | 130) => 409,
            (_, 9) => 429,
            (_, 6) => 503,
            _ => 500,
        }
    }
}

/// Returns the exit code of a turn that did not succeed.
pub fn exit_of(class: Option<Class>) -> u8 {
    class.map_or(1, |class| codes::of_class(class).exit)
}

impl From<RunnerError> for CommandError {
    fn from(error: RunnerError) -> Self {
        let text = error.to_string();
        match error {
            RunnerError::Hub(error) => error.into(),
            RunnerError::AgentDisabled(_) => Self::usage(text).try_this("another agent with -a"),
            RunnerError::UnknownAgent(typed) => {
                let names: Vec<_> = rejoin_agents::ADAPTERS.iter().map(|a| a.name()).collect();
                let far = |name: &&&str| strsim::damerau_levenshtein(&typed, name);
                let near = names.iter().min_by_key(far);
                let near = near.filter(|name| far(name) <= (typed.len() / 3).max(1));
                let mut text = format!("{text}; there are {}", names.join(", "));
                let mut next = "rejoin doctor".to_owned();
                if let Some(near) = near {
                    text = format!("{text}; did you mean `{near}`?");
                    next = format!("the same with {near}");
                }
                Self::new(codes::AGENT_NOT_FOUND, text).try_this(next)
            }
            RunnerError::AgentMissing {
                install,
                configured,
                others,
                ..
            } => {
                let next = match (configured, others.first()) {
                    (true, _) => "rejoin config show, to see where the program is named".to_owned(),
                    (false, Some(other)) => format!("rejoin send -a {other} \"…\", or {install}"),
                    (false, None) => install,
                };
                Self::new(codes::AGENT_MISSING, text + "; nothing was sent").try_this(next)
            }
            RunnerError::NotThatAgent { .. } => Self::new(codes::AGENT_MISSING, text),
            RunnerError::Folder { path, source } => Self::folder(&path, &source),
            RunnerError::OutsideRoots => {
                Self::new(codes::FORBIDDEN, text).try_this("[serve] roots in the configuration")
            }
            RunnerError::WouldReseed { .. } => would_reseed(&text),
            RunnerError::Permissions(_) => permissions(&text),
            RunnerError::InUse { .. } => in_use(&text),
            RunnerError::Cancelled => cancelled(&text),
            RunnerError::CannotGoOn(_) => Self::conflict(text),
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

impl From<TrustError> for CommandError {
    fn from(error: TrustError) -> Self {
        let failure = Self::unavailable(error.to_string());
        match error {
            TrustError::Unreadable(_) | TrustError::FolderGone(_) => failure,
            TrustError::Damaged { path, .. } => {
                let path = path.display();
                failure.try_this(format!("rm {path}, and trust anew what you trust"))
            }
            TrustError::Unwritten(_) => {
                failure.try_this("check REJOIN_HOME, or set it to a folder you can write")
            }
        }
    }
}

impl From<HubError> for CommandError {
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
            HubError::QueueFull { .. } => {
                Self::new(codes::RATE_LIMITED, text + "; this message was not kept")
                    .try_this("the same later, or [serve] max_queued in the daemon's configuration")
            }
            HubError::OccurrenceRecorded(_) => Self::conflict(text),
            HubError::KeyReused(_) => {
                Self::new(codes::KEY_REUSED, text + "; this message was not kept")
            }
            HubError::MustConfirm(handle) => {
                Self::new(codes::CONFIRM, format!("{text}; this message was not kept")).try_this(
                    format!("rejoin send -c {handle} --confirm …, or \"confirm\": true over HTTP"),
                )
            }
            HubError::NeverContinues(handle) => Self::new(
                codes::NEVER_CONTINUES,
                format!("{text}; this message was not kept"),
            )
            .try_this(format!("rejoin set {handle} continue=auto")),
            HubError::ClimbRefused(_) => {
                Self::new(codes::CLIMB_REFUSED, text + "; nothing was run")
                    .try_this("rejoin escalate --dry-run")
            }
            HubError::AboveCeiling {
                what,
                needs,
                ceiling,
            } => Self::new(codes::FORBIDDEN, text + "; nothing was changed or sent")
                .try_this(what.advice(needs, ceiling)),
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
            HubError::QuestionGone { .. } => {
                Self::new(codes::CONFLICT, text).try_this("rejoin inbox")
            }
            HubError::TokenTaken(_) => {
                Self::conflict(text + "; nothing was changed").try_this("rejoin token list")
            }
            HubError::NoToken(_) => Self::not_found(text).try_this("rejoin token list"),
            HubError::TokenName(_) => Self::usage(text).try_this("rejoin token create --help"),
            HubError::TokenScope(_) => {
                Self::usage(text).try_this("rejoin token create NAME --scope send")
            }
            HubError::Cursor => Self::usage(text).try_this("rejoin list --json"),
            HubError::Usage(_) => Self::usage(text),
            HubError::Diverged(_) => {
                Self::new(codes::DIVERGED, format!("{text}; nothing was changed"))
            }
            HubError::Archive(error) => archive(&error),
            HubError::Internal(_) => Self::new(codes::INTERNAL, text),
        }
    }
}

/// Builds the failure of an archive: a file that is no archive is an error of usage, an incomplete
/// archive is damage.
fn archive(error: &ArchiveError) -> CommandError {
    let text = error.to_string();
    match error {
        ArchiveError::Bad(bad) => match bad {
            BadArchive::NotOne => CommandError::usage(text).try_this("rejoin export CONV -o FILE"),
            BadArchive::Newer { .. } => {
                CommandError::usage(text).try_this("rejoin --version, and install a newer one")
            }
            BadArchive::Truncated | BadArchive::Damaged(_) => {
                CommandError::new(codes::BAD_ARCHIVE, text + "; nothing of it was taken")
            }
            BadArchive::Io(_) => CommandError::unavailable(text),
        },
        ArchiveError::KeyTaken(_) | ArchiveError::Elsewhere(_) => {
            CommandError::conflict(text + "; nothing was changed")
        }
        ArchiveError::Store(_) => CommandError::unavailable(text),
        ArchiveError::Write(_) => CommandError::unavailable(text).try_this("df -h"),
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        let mut text = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(inner) = source {
            // Some errors include their source in their own text.
            let inner_text = inner.to_string();
            if !text.ends_with(&inner_text) {
                text = format!("{text}: {inner_text}");
            }
            source = inner.source();
        }
        match error {
            StoreError::Conflict(_) => Self::new(codes::CONFLICT, text).try_this("the same again"),
            StoreError::Busy(_) => Self::unavailable(text).try_this("the same again"),
            StoreError::Away { .. } => Self::unavailable(text)
                .try_this("rejoin doctor; and see that the server runs and lets you in"),
            StoreError::Pooled { .. } => Self::unavailable(text)
                .try_this("pool_mode = session in PgBouncer, or the server's own address"),
            StoreError::Address => Self::config(format!("database.url: {text}"))
                .try_this("rejoin config show, to see where it comes from"),
            StoreError::ReadOnly(_) => {
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
            StoreError::Open { .. } | StoreError::Blobs { .. } => {
                Self::unavailable(text).try_this("rejoin doctor")
            }
        }
    }
}

const NOT_KEPT: &str = "nothing was sent and the message was not kept";

fn would_reseed(why: &str) -> CommandError {
    CommandError::new(codes::WOULD_RESEED, format!("{why}; {NOT_KEPT}"))
        .try_this("rejoin explain --next, or the same without --no-reseed")
}

fn permissions(why: &str) -> CommandError {
    let failure = CommandError::new(codes::ENVELOPE, format!("{why}; {NOT_KEPT}"));
    if why.contains(TRUST_HINT) {
        return failure.try_this("rejoin trust --dry-run");
    }
    if why.contains("[wall]") {
        return failure.try_this("rejoin doctor, or [wall] mode = \"auto\" in the configuration");
    }
    failure
}

fn in_use(why: &str) -> CommandError {
    CommandError::new(codes::IN_USE, format!("{why}; {NOT_KEPT}"))
        .try_this("rejoin send --if-busy wait …, or end that process")
}

fn cancelled(why: &str) -> CommandError {
    CommandError::new(codes::CANCELLED, format!("{why}; the message was not kept"))
}

fn busy() -> CommandError {
    CommandError::new(
        codes::BUSY,
        "the conversation is busy with another turn; this message was not kept",
    )
    .try_this("rejoin send --if-busy wait …")
}
