//! Vocabulary and decisions of rejoin.
//!
//! Everything here is a pure function or a plain value: no clock, no files, no environment, no
//! async. Facts come in as one [`Situation`], and the result is a [`Decision`]; other crates carry
//! it out. This makes the promise *no turn forgets, none repeats* provable.
//!
//! ```
//! use rejoin_core::{
//!     AgentName, Capability, HistoryFacts, PermissionsFact, Policy, Request, Runtime, Situation,
//!     Verdict, Version, decide,
//! };
//!
//! let agent = AgentName::new("claude")?;
//! let runtime = Runtime { product: "claude".into(), version: Version("2.1.325".into()) };
//! let decision = decide(&Situation {
//!     agent: &agent,
//!     request: Request::default(),
//!     policy: Policy::default(),
//!     history: HistoryFacts { messages: 0, answered: false },
//!     runtime: &runtime,
//!     capability: Capability::Proven,
//!     model: None,
//!     window: None,
//!     permissions: PermissionsFact::Expressible,
//!     pin: None,
//! });
//! // The first message of a conversation starts a session.
//! assert_eq!(decision.plan.map(|plan| plan.verdict()), Ok(Verdict::Started));
//! # Ok::<(), rejoin_core::BadName>(())
//! ```

mod agent;
mod command_step;
mod compose;
mod decide;
mod diff;
mod escalation;
mod estimate;
mod event;
mod handle;
mod handoff;
mod hex;
mod ids;
mod limit;
mod marker;
mod message;
mod outcome;
mod permission;
mod pin;
mod plan;
mod question;
mod reason;
mod scope;
mod secrets;
mod situation;
mod summary;
mod supervisor;
mod tier;
mod tier_prompt;
mod tier_template;
mod tool;
mod transcript;
mod turn;
mod usage;
mod window;

pub use agent::{AgentName, BadName, Runtime, Version, is_word};
pub use command_step::CommandStep;
pub use compose::{Composed, Material, Mismatch, Sent, compose};
pub use decide::{Blocker, Check, CheckName, Decision, Evidence, GONE_AND_SWEPT, decide};
pub use diff::{ChangeKind, FileChange, Hunk, file_changes};
pub use escalation::{ClimbRequest, climb_request};
pub use estimate::{Continuation, PastTurn, Prices};
pub use event::{EventBody, StoredEvent};
pub use handle::{Handle, HandleRef};
pub use handoff::{
    Finding, HANDOFF_TOKENS, HANDOFF_VERSION, Handoff, HandoffCall, LeftOut, TierState,
};
pub use hex::hex;
pub use ids::{
    BadId, ConversationId, MessageId, PinId, QuestionId, SessionId, SnapshotId, TurnId, WorkflowId,
};
pub use limit::{LimitState, ToolLimit, is_limit_rule, rule_matches, tool_of_rule};
pub use marker::{
    MARK_CLOSE, MARK_COMMAND, MARK_END, MARK_MESSAGE, MARK_OPEN, escape, strip, unescape,
};
pub use message::{Digest, Message, MessageState, Role, ToolNote};
pub use outcome::{Class, Failure, Outcome, PinEffect};
pub use permission::{PermissionMode, Permissions};
pub use pin::{FileMark, Folder, Pin, PinState, SUMMARISED_INSTRUCTIONS, SeenPrefix};
pub use plan::{CatchUp, Prompt, SessionSource, Transcript, TrustedSession, TurnPlan};
pub use question::{
    AnswerRequest, Asked, Choice, Given, NoAnswer, QuestionItem, QuestionKind, QuestionOption,
    QuestionState,
};
pub use reason::{Reason, UnknownWord, Verdict};
pub use scope::{Scope, ScopeValue, Scoped, in_scope, scope_differs};
pub use secrets::{REMOVED, without_secrets};
pub use situation::{
    AfterCompaction, Capability, FolderFact, Fresh, HistoryChange, HistoryFacts, ModelChange,
    PermissionsFact, PinFacts, Policy, Prefix, Request, SessionFact, Situation, SnapshotFact,
};
pub use summary::{SummaryFacts, summary, token_counts};
pub use supervisor::{
    APPROVAL, Approval, ClimbCheck, ClimbDecision, ClimbFacts, climb_target, supervise,
};
pub use tier::{Tier, Tiers};
pub use tier_prompt::{
    ClimbPrompt, escalation_prompt, findings_prompt, refusal_notice, span, tier_notice,
};
pub use tier_template::{TEMPLATE_VARIABLES, TemplateError, check_template, fill_template};
pub use tool::{ToolKind, tool_subject};
pub use transcript::{Budget, TranscriptBuilder, TranscriptText, tokens_of};
pub use turn::TurnStatus;
pub use usage::{Context, Cost, Counts, Micros, Price, TotalsScope, Usage};
pub use window::known_window;
