//! The only crate that changes the state of a conversation: it accepts messages, hands out turns,
//! records their progress and ends them.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use rejoin_core::{AgentName, PermissionMode, Scope};
//! use rejoin_hub::{Clock, CreateRequest, Hub, ListQuery};
//! use rejoin_store::Store;
//!
//! let folder = tempfile::tempdir().unwrap();
//! let hub = Hub {
//!     store: Store::open_sqlite(&folder.path().join("store.db")).await?,
//!     clock: Clock,
//!     machine: "here".into(),
//!     namespace: "".into(),
//!     vault: None,
//!     ceiling: None,
//! };
//! let request = CreateRequest {
//!     key: Some("issue-42".into()),
//!     title: None,
//!     agent: AgentName::new("claude").unwrap(),
//!     model: None,
//!     workdir: "/work".into(),
//!     permission: PermissionMode::Edit,
//!     scope: Scope::Full,
//!     client_key: None,
//! };
//! hub.create(&request).await?;
//! let query = ListQuery { limit: 10, ..ListQuery::default() };
//! let found = hub.list(&query).await?.conversations;
//! assert_eq!(found[0].key.as_deref(), Some("issue-42"));
//! # Ok::<(), rejoin_hub::Error>(())
//! # }).unwrap();
//! ```

mod accept;
mod active;
mod browser_sessions;
mod candidates;
mod ceiling;
mod chain;
mod change;
mod claim;
mod climb;
mod clock;
mod costs;
mod deferred;
mod document;
mod error;
mod estimate;
mod explain;
mod external;
mod external_copy;
pub mod fault;
pub mod fields;
mod finish;
mod handoff;
mod lease;
mod limits;
mod list;
mod maintenance;
mod message_request;
pub mod metrics;
mod notify;
mod page;
mod partial;
mod portable;
mod progress;
mod questions;
mod request;
mod resolve;
mod restrict;
mod row;
mod schedules;
mod search;
mod sent_prompt;
mod session_view;
mod shares;
mod snapshots;
mod tokens;
mod trace;
mod turn_changes;
mod turn_events;
mod unrun;
mod view;
mod workflows;

use std::sync::Arc;

use rejoin_core::PermissionMode;
use rejoin_store::{Store, Vault};

pub use accept::{Accepted, Incoming, Target};
pub use active::{ActiveTurn, is_worked_on};
pub use browser_sessions::{BrowserSessionView, LinkView, SessionAccess, SignedIn};
pub use candidates::{Candidate, FORK_FAILED, StoreFacts};
pub use ceiling::LimitedPart;
pub use chain::{ChainTurnView, ChainView, ChainsView, TierCostView};
pub use change::{
    Affected, ChangeMode, Changed, Continues, ForkRequest, ForkView, Merged, RetryOptions, Setting,
};
pub use claim::{Claimed, NextAction};
pub use climb::{EscalateRequest, EscalateView, PendingClimb};
pub use clock::{Clock, micros_of, rfc3339};
pub use costs::{CostView, CostsBy, CostsQuery, CostsView};
pub use deferred::{BeginAgain, DEFERRED, EarlierRuns, is_deferred};
pub use document::{Document, DocumentForm};
pub use error::{Error, Result};
pub use explain::{ExplainView, Moments, NextError, NextOfAgent, NextView, NextViews};
pub use external::{AdoptedSession, ContinuedSession, ExternalImport, SessionNow};
pub use finish::{PinEnd, Settled};
pub use lease::{Lease, TakeoverReason};
pub use list::{CreateRequest, ListQuery, ListView};
pub use maintenance::{Keep, Thinned};
pub use message_request::{Attachment, MessageRequest, RetryRequest, SenderDefaults};
pub use notify::{DeliveryView, Notification, NotifyRules};
pub use page::{LARGEST_PAGE, PageRequest, WholeView};
pub use portable::{ImportOptions, ImportResult, ImportView};
pub use progress::{AttemptPlan, BeginAttempt, Confirmed, Forked, LiveProcess, PinStart};
pub use questions::{InboxDocument, InboxView, LateAnswer, QuestionView, climb_facts};
pub use rejoin_core::AnswerRequest;
pub use request::{IfBusy, TierTurn, TurnFlags, TurnRequest, check_model};
pub use resolve::{NameKind, NamedConversation, NamedMessage, NamedView, PlaceView};
pub use row::CountsView;
pub use schedules::{
    DueOccurrence, OccurrenceView, Overlap, Rhythm, Schedule, ScheduleView, SchedulesView,
    SkipReason,
};
pub use search::{HitView, HitsView, SearchQuery};
pub use sent_prompt::{PromptView, RunPromptView};
pub use session_view::SessionView;
pub use shares::{ShareRequest, ShareView, SharedMessage, SharedView, SharesView};
pub use snapshots::{FAILED, LOCAL_ONLY, STORED, SnapshotOffers};
pub use tokens::{NewTokenView, TokenRequest, TokenView};
pub use turn_changes::{DiffLine, FileChangeView, HunkView, TurnChangesView};
pub use turn_events::{TurnEventsQuery, TurnEventsView};
pub use view::{
    ActivityView, AsksView, AttemptView, ConversationView, ErrorView, LastTurnView, MessageView,
    TurnView, VersionView,
};
pub use workflows::{
    NewRun, RunOptions, RunStep, StepState, StepStatus, WORKFLOW_TOOL, WorkflowRowView,
    WorkflowStepView, WorkflowView, WorkflowsView,
};

/// Owner of the state. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Hub {
    pub store: Store,
    pub clock: Clock,
    pub machine: String,
    /// Namespace of the visible conversations. Commands that open the store directly use the empty
    /// one.
    pub namespace: Arc<str>,
    /// Storage of snapshots. `None`: sessions exist only where their CLI keeps them.
    pub vault: Option<Vault>,
    /// Widest permission mode that a turn may request through this hub. `None`: no limit.
    pub ceiling: Option<PermissionMode>,
}
