//! Every fact a decision may use, as one value. Gathering them is the runner's business.

use serde::{Deserialize, Serialize};

use crate::agent::{AgentName, Runtime};
use crate::pin::{Pin, Seen};

#[derive(Debug, Clone)]
pub struct Situation<'a> {
    pub agent: &'a AgentName,
    pub request: Request,
    pub policy: Policy,
    pub history: HistoryFacts,
    /// The program that would answer today.
    pub runtime: &'a Runtime,
    pub capability: Capability<'a>,
    /// The model asked for; none: the agent's own choice.
    pub model: Option<&'a str>,
    /// The context window of the model that will run. None: unknown, so the one that the session reported counts.
    pub window: Option<u64>,
    pub envelope: EnvelopeFact<'a>,
    pub pin: Option<PinFacts<'a>>,
}

/// What the sender asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Request {
    pub fresh: Option<Fresh>,
    pub no_reseed: bool,
    pub relocate: bool,
}

/// Who wants a new session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fresh {
    /// `--fresh-session` or the composer's toggle.
    Asked,
    /// A retry never resumes.
    Retry,
    /// The conversation or the agent is set to "always fresh".
    Always,
}

/// The `[resume]` section of the configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
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

/// The history in scope, without the new message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryFacts {
    pub messages: u64,
    pub answered: bool,
}

/// Can this binary resume? (Whether this turn should is another question: A-30.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability<'a> {
    /// Two turns against the built-in model showed it.
    Proven,
    /// The flags are known to it.
    Probed,
    Absent(&'a str),
}

/// Whether the agent can be held to the permissions of the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnvelopeFact<'a> {
    Expressible,
    Cannot(&'a str),
}

/// The pin, and what was found when it was compared with the world.
#[derive(Debug, Clone, Copy)]
pub struct PinFacts<'a> {
    pub pin: &'a Pin,
    pub prefix: Prefix,
    pub folder: FolderFact,
    /// False: its model provider is not configured here.
    pub provider_here: bool,
    pub session: SessionFact,
    pub snapshot: SnapshotFact,
    /// It was last confirmed on another machine, or in another home of the agent.
    pub elsewhere: bool,
    /// A process that is not ours is writing it.
    pub in_use: Option<u32>,
    /// False: the agent leaves no trace of a process that has a session open, so `in_use` cannot name one.
    pub writers_visible: bool,
    /// It belongs to the conversation of this name, of which this one is a fork: only its confirmed
    /// bytes are copied, so whoever goes on with it meanwhile does not matter. `session` speaks of
    /// those bytes alone, and no snapshot takes their place.
    pub forked_from: Option<&'a str>,
}

impl PinFacts<'_> {
    /// What could take the session's place.
    pub(crate) fn snapshot(&self) -> SnapshotFact {
        match self.forked_from {
            None => self.snapshot,
            Some(_) => SnapshotFact::None,
        }
    }
}

/// Is what the session has seen still a prefix of the history in scope?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    Holds,
    /// What altered it, if that is known.
    Changed {
        by: Option<Altered>,
    },
}

/// A change of the history, by the place where it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Altered {
    Edited(i64),
    /// This message and all after it.
    Removed(i64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderFact {
    Same,
    SameInode,
    SameCheckout,
    Other,
}

/// The session's files against what was confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionFact {
    /// Inode, size and times as confirmed: nothing was read.
    Untouched,
    /// Read again and equal.
    Verified,
    Missing,
    /// A turn was using it and nobody could cut back what it left.
    Dirty,
    /// Shorter, or different bytes.
    Damaged,
    /// Longer with an equal prefix: somebody went on with it by hand.
    Changed,
    /// It could not be looked at.
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

/// A snapshot that could take the session's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotFact {
    None,
    /// Verified, and what it has seen is a prefix of today's scope.
    Usable {
        seen: Seen,
    },
    Damaged,
    Expired,
    /// There is one, but its bytes cannot be had now; why.
    Unreachable(&'static str),
}
