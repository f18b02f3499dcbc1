//! All facts that a decision may use, as one value. The runner gathers them.

use serde::{Deserialize, Serialize};

use crate::agent::{AgentName, Runtime};
use crate::pin::{Pin, SeenPrefix};

#[derive(Debug, Clone)]
pub struct Situation<'a> {
    pub agent: &'a AgentName,
    pub request: Request,
    pub policy: Policy,
    pub history: HistoryFacts,
    /// Program that would run the turn today.
    pub runtime: &'a Runtime,
    pub capability: Capability<'a>,
    /// Requested model. `None`: the agent's own choice.
    pub model: Option<&'a str>,
    /// Context window of the model that will run. `None`: unknown; then the window that the session
    /// reported counts.
    pub window: Option<u64>,
    pub permissions: PermissionsFact<'a>,
    pub pin: Option<PinFacts<'a>>,
}

/// Options of the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Request {
    pub fresh: Option<Fresh>,
    pub no_reseed: bool,
    pub relocate: bool,
}

/// Origin of the request for a new session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fresh {
    /// `--fresh-session` or the toggle in the composer.
    Asked,
    /// A retry, which never resumes.
    Retry,
    /// A setting of the conversation or the agent: "always fresh".
    Always,
}

/// The `[resume]` section of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    pub context_threshold: f64,
    pub breaker: u32,
    pub model_change: ModelChange,
    pub after_compaction: AfterCompaction,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            context_threshold: 0.80,
            breaker: 2,
            model_change: ModelChange::Resume,
            after_compaction: AfterCompaction::Resume,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelChange {
    #[default]
    Resume,
    Reseed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AfterCompaction {
    #[default]
    Resume,
    Reseed,
}

/// History in scope, without the new message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryFacts {
    pub messages: u64,
    pub answered: bool,
}

/// Ability of this binary to resume. Whether this turn should resume is another question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability<'a> {
    /// Two turns against the built-in model proved it.
    Proven,
    /// The binary knows the flags.
    Probed,
    Absent(&'a str),
}

/// Ability of the agent to enforce the permissions of the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionsFact<'a> {
    Expressible,
    Cannot(&'a str),
}

/// The pin, compared with the current state of the machine.
#[derive(Debug, Clone, Copy)]
pub struct PinFacts<'a> {
    pub pin: &'a Pin,
    pub prefix: Prefix,
    pub folder: FolderFact,
    /// False if the session's model provider is not configured here.
    pub has_provider: bool,
    pub session: SessionFact,
    pub snapshot: SnapshotFact,
    /// True if the session was last confirmed on another machine, or in another home of the agent.
    pub elsewhere: bool,
    /// Id of a foreign process that is writing the session.
    pub in_use: Option<u32>,
    /// False if the agent leaves no trace of a process that has a session open. `in_use` is then
    /// always `None`.
    pub writers_visible: bool,
    /// Handle of the conversation that owns the session, if this one is a fork of it. Only the
    /// confirmed bytes are copied, so a process that continues the session meanwhile does not
    /// matter. `session` describes those bytes alone, and no snapshot replaces them.
    pub forked_from: Option<&'a str>,
}

impl PinFacts<'_> {
    /// Returns the snapshot that could replace the session. None for a fork.
    pub(crate) fn snapshot(&self) -> SnapshotFact {
        match self.forked_from {
            None => self.snapshot,
            Some(_) => SnapshotFact::None,
        }
    }
}

/// Comparison of the messages that a session has seen with the history in scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    Holds,
    /// The seen messages are no longer a prefix. `by` is the change responsible, if known.
    Changed {
        by: Option<HistoryChange>,
    },
}

/// A change of the history, by its first position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryChange {
    Edited(i64),
    /// Removal of this message and all later ones.
    Removed(i64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderFact {
    Same,
    SameInode,
    SameCheckout,
    Other,
}

/// Comparison of the session's files with the confirmed state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionFact {
    /// Inode, size and times are as confirmed; no byte was read.
    Untouched,
    /// Read again, and equal.
    Verified,
    Missing,
    /// A turn used the session, and its remains could not be cut back.
    Dirty,
    /// Shorter, or different bytes.
    Damaged,
    /// Longer with an equal prefix: a user continued the session outside rejoin.
    Changed,
    /// The files could not be examined.
    Unknown,
}

impl SessionFact {
    pub fn usable(self) -> bool {
        match self {
            Self::Untouched | Self::Verified => true,
            Self::Missing | Self::Dirty | Self::Damaged | Self::Changed | Self::Unknown => false,
        }
    }
}

/// A snapshot that could replace the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotFact {
    None,
    /// Verified, and the messages it has seen are a prefix of today's scope.
    Usable {
        seen: SeenPrefix,
    },
    Damaged,
    Expired,
    /// A snapshot exists, but its bytes cannot be read now. Holds the reason.
    Unreachable(&'static str),
}
