//! What the next turn hands to the agent, as types that cannot be mixed up.
//!
//! Resume and transcript are one decision: a plan resumes a session and carries exactly what that
//! has not seen, or starts one and carries the record. "Neither" and "both" do not compile:
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
//! Nor can a session that did not pass the guards be forged, or the parts be made up:
//!
//! ```compile_fail
//! use rejoin_core::{SessionId, TrustedSession, Way};
//! let forged = TrustedSession { id: SessionId::new("x").unwrap(), way: Way::InPlace };
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
    /// Nothing precedes the message.
    Start { prompt: Prompt },
    /// The agent's session holds a prefix of the history; it is told exactly the rest.
    Resume {
        session: TrustedSession,
        catch_up: CatchUp,
        prompt: Prompt,
    },
    /// A new session that is told the record.
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
                Way::InPlace | Way::Fork => Verdict::Resumed,
                Way::Live => Verdict::Live,
                Way::Snapshot => Verdict::Restored,
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

    /// The session to resume, if that is the plan.
    pub fn session(&self) -> Option<&TrustedSession> {
        match self {
            Self::Resume { session, .. } => Some(session),
            Self::Start { .. } | Self::Reseed { .. } => None,
        }
    }

    /// The same, by the process that is still there: whoever says so has seen that it is the one that
    /// would be started. Nothing else but a session in its place can be gone on with so.
    #[must_use]
    pub fn live(self) -> Self {
        self.rather(Way::InPlace, Way::Live)
    }

    /// The same, by a process of its own.
    #[must_use]
    pub fn without_process(self) -> Self {
        self.rather(Way::Live, Way::InPlace)
    }

    fn rather(mut self, than: Way, way: Way) -> Self {
        if let Self::Resume { session, .. } = &mut self
            && session.way == than
        {
            session.way = way;
        }
        self
    }

    /// What to do when the CLI itself refused the session at run time: tell a new one, once (A-35).
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

/// A session that passed every guard; only `decide` makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedSession {
    pub(crate) id: SessionId,
    pub(crate) way: Way,
}

impl TrustedSession {
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    pub fn way(&self) -> Way {
        self.way
    }
}

/// How a resume reaches its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    InPlace,
    /// The process of its last turn is still there.
    Live,
    Snapshot,
    /// By a copy: the session belongs to the conversation that this one was forked from.
    Fork,
}

/// The order to send the messages in scope after the first `after` ones.
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

    /// Messages among the first `after` ones of which the session holds only its agent's summary.
    pub fn summarised(self) -> u64 {
        self.summarised
    }

    pub fn messages(self) -> u64 {
        self.messages
    }
}

/// The order to re-tell all `messages` in scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transcript {
    pub(crate) messages: u64,
}

impl Transcript {
    pub fn messages(self) -> u64 {
        self.messages
    }
}

/// The order to send the new message. Every plan has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prompt(pub(crate) ());
