//! Words and decisions of rejoin.
//!
//! Everything here is a pure function or a plain value: no clock, no files, no environment, no
//! async. Facts come in as one [`Situation`], the answer goes out as a [`Decision`]; what happens
//! because of it is somebody else's business. That is what makes the promise *no turn forgets,
//! none repeats* provable.

mod agent;
mod compose;
mod decide;
mod estimate;
mod event;
mod handle;
mod ids;
mod marker;
mod message;
mod outcome;
mod permission;
mod pin;
mod plan;
mod question;
mod reason;
mod scope;
mod situation;
mod summary;
mod transcript;
mod turn;
mod usage;
mod window;

pub use agent::{AgentName, BadName, Runtime, Version, is_word};
pub use compose::{Composed, Material, Mismatch, Sent, compose};
pub use decide::{Check, CheckName, Decision, Evidence, Hold, decide};
pub use estimate::{Ahead, Prices, Spent};
pub use event::{EventBody, StoredEvent};
pub use handle::{Handle, HandleRef};
pub use ids::{BadId, ConversationId, MessageId, PinId, QuestionId, SessionId, SnapshotId, TurnId};
pub use marker::{
    MARK_CLOSE, MARK_COMMAND, MARK_END, MARK_MESSAGE, MARK_OPEN, escape, strip, unescape,
};
pub use message::{Digest, Message, MessageState, Role, ToolNote};
pub use outcome::{Class, Failure, Outcome, PinEffect};
pub use permission::{Envelope, PermissionMode};
pub use pin::{FileMark, Folder, Pin, PinState, SUMMARISED_INSTRUCTIONS, Seen};
pub use plan::{CatchUp, Prompt, Transcript, TrustedSession, TurnPlan, Way};
pub use question::{
    AnswerWish, Asked, Choice, Given, NoAnswer, QuestionItem, QuestionKind, QuestionOption,
    QuestionState,
};
pub use reason::{Reason, UnknownWord, Verdict};
pub use scope::{Scope, ScopeValue, Scoped, in_scope, scope_differs};
pub use situation::{
    AfterCompaction, Altered, Capability, EnvelopeFact, FolderFact, Fresh, HistoryFacts,
    ModelChange, PinFacts, Policy, Prefix, Request, SessionFact, Situation, SnapshotFact,
};
pub use summary::{SummaryFacts, summary, token_counts};
pub use transcript::{Budget, Record, TranscriptBuilder, tokens_of};
pub use turn::TurnStatus;
pub use usage::{Context, Cost, Counts, Micros, Price, TotalsScope, Usage};
pub use window::known_window;
