//! Content that the next turn sends to the agent, as types that cannot be confused.
//!
//! Resume and transcript are one decision: a plan resumes a session and carries exactly the
//! messages it has not seen, or starts a session and carries the transcript. "Neither" and "both"
//! do not compile:
//!
//! ```compile_fail
//! use rejoin_core::{Prompt, Transcript, TrustedSession, TurnPlan};
//! fn both(session: TrustedSession, transcript: Transcript, prompt: Prompt) -> TurnPlan {
//!     TurnPlan::Resume { session, catch_up: transcript, prompt }
//! }
//! ```
//! ```compile_fail
//! use rejoin_core::{Prompt, Reason, TurnPlan};
//! fn neither(prompt: Prompt) -> TurnPlan {
//!     TurnPlan::Reseed { why: Reason::NoSession, prompt }
//! }
//! ```
//! A session that did not pass the guards cannot be forged, and the parts cannot be made up:
//!
//! ```compile_fail
//! use rejoin_core::{SessionId, TrustedSession, SessionSource};
//! let forged = TrustedSession { id: SessionId::new("x").unwrap(), way: SessionSource::InPlace };
//! ```
//! ```compile_fail
//! let forged = rejoin_core::CatchUp { after: 3, messages: 0 };
//! ```
//! ```compile_fail
//! let forged = rejoin_core::Transcript { messages: 0 };
//! ```

use crate::ids::SessionId;
use crate::reason::{Reason, Verdict};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnPlan {
    /// No message precedes this one.
    Start { prompt: Prompt },
    /// The agent's session holds a prefix of the history and receives exactly the rest.
    Resume {
        session: TrustedSession,
        catch_up: CatchUp,
        prompt: Prompt,
    },
    /// A new session receives the transcript.
    Reseed {
        why: Reason,
        transcript: Transcript,
        prompt: Prompt,
    },
}

impl TurnPlan {
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Start { .. } => Verdict::Started,
            Self::Resume { session, .. } => match session.way {
                SessionSource::InPlace | SessionSource::Fork => Verdict::Resumed,
                SessionSource::Live => Verdict::Live,
                SessionSource::Snapshot => Verdict::Restored,
            },
            Self::Reseed { .. } => Verdict::Reseeded,
        }
    }

    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Start { .. } => Some(Reason::FirstTurn),
            Self::Resume { .. } => None,
            Self::Reseed { why, .. } => Some(*why),
        }
    }

    /// Returns the session to resume, if the plan resumes one.
    pub fn session(&self) -> Option<&TrustedSession> {
        match self {
            Self::Resume { session, .. } => Some(session),
            Self::Start { .. } | Self::Reseed { .. } => None,
        }
    }

    /// Switches a resume in place to the live process of the last turn. The caller must have
    /// checked that this process equals the one that would be started. Other plans stay unchanged.
    #[must_use]
    pub fn live(self) -> Self {
        self.rather(SessionSource::InPlace, SessionSource::Live)
    }

    /// Switches a resume in a live process back to a new process.
    #[must_use]
    pub fn without_process(self) -> Self {
        self.rather(SessionSource::Live, SessionSource::InPlace)
    }

    fn rather(mut self, than: SessionSource, way: SessionSource) -> Self {
        if let Self::Resume { session, .. } = &mut self
            && session.way == than
        {
            session.way = way;
        }
        self
    }

    /// Returns the plan after the CLI refused the session at run time: one new session with the
    /// transcript (A-35). `None` if this plan did not resume.
    #[must_use]
    pub fn after_refusal(&self) -> Option<Self> {
        match self {
            Self::Resume {
                catch_up, prompt, ..
            } => Some(Self::Reseed {
                why: Reason::Rejected,
                transcript: Transcript {
                    messages: catch_up.after + catch_up.messages,
                },
                prompt: *prompt,
            }),
            Self::Start { .. } | Self::Reseed { .. } => None,
        }
    }
}

/// A session that passed every guard. Only `decide` creates one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedSession {
    pub(crate) id: SessionId,
    pub(crate) way: SessionSource,
}

impl TrustedSession {
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    pub fn way(&self) -> SessionSource {
        self.way
    }
}

/// Source of a resumed session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionSource {
    InPlace,
    /// The process of its last turn is still running.
    Live,
    Snapshot,
    /// A copy: the session belongs to the conversation that this one was forked from.
    Fork,
}

/// Instruction to send the messages in scope after the first `after` ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatchUp {
    pub(crate) after: u64,
    pub(crate) summarised: u64,
    pub(crate) messages: u64,
}

impl CatchUp {
    pub fn after(self) -> u64 {
        self.after
    }

    /// Number of messages among the first `after` of which the session holds only its agent's
    /// summary.
    pub fn summarised(self) -> u64 {
        self.summarised
    }

    pub fn messages(self) -> u64 {
        self.messages
    }
}

/// Instruction to send a transcript of all `messages` in scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transcript {
    pub(crate) messages: u64,
}

impl Transcript {
    pub fn messages(self) -> u64 {
        self.messages
    }
}

/// Instruction to send the new message. Every plan has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prompt(pub(crate) ());
