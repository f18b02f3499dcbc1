//! The only crate that changes the state of a conversation: accepts messages, hands turns out,
//! keeps what happened, ends them. In one process or behind HTTP, runners see it through
//! [`HubLink`].

mod accept;
mod ceiling;
mod change;
mod chores;
mod claim;
mod clock;
mod deferred;
mod error;
mod estimate;
pub mod fault;
pub mod figures;
mod find;
mod finish;
mod held_back;
mod hold;
mod lease;
mod link;
mod list;
mod named;
mod notify;
mod outlook;
mod outside;
mod page;
mod portable;
mod progress;
mod questions;
mod request;
mod snapshots;
mod source;
mod tokens;
mod trace;
mod view;

use std::sync::Arc;

use rejoin_core::PermissionMode;
use rejoin_store::{Store, Vault};

pub use accept::{Accepted, Incoming, Target};
pub use ceiling::Beyond;
pub use change::{Affected, Again, Changed, Continues, Doing, ForkView, ForkWish, Merged, Wish};
pub use claim::{Claimed, Next};
pub use clock::{Clock, rfc3339};
pub use deferred::{BeginAgain, DEFERRED, SoFar, is_deferred};
pub use error::{Error, Result};
pub use find::{Found, Named};
pub use finish::{PinEnd, Settled};
pub use hold::{Hold, is_worked_on};
pub use lease::{Lease, Taking};
pub use link::HubLink;
pub use list::{ListView, ListWish, NewWish};
pub use named::{ExplainView, HitView, HitsView, NamedView, NextView, PlaceView, SearchWish, Want};
pub use notify::{DeliveryView, Notification, NotifyWish};
pub use outlook::{Candidate, FORK_FAILED, Outlook};
pub use outside::{Adopted, SessionNow, TakenIn, WentOn};
pub use page::{LARGEST_PAGE, PageRequest, WholeView};
pub use portable::{Came, ImportView, ImportWish};
pub use progress::{AttemptPlan, BeginAttempt, Confirmed, Forked, LiveFrom, PinStart};
pub use questions::{InboxDocument, InboxView, LateAnswer, QuestionView};
pub use rejoin_core::AnswerWish;
pub use request::{FreshWish, TurnFlags, TurnRequest, check_model};
pub use snapshots::{FAILED, LOCAL_ONLY, Offers, STORED};
pub use tokens::{NewTokenView, TokenView, TokenWish};
pub use view::{ConversationView, ErrorView, MessageView, SessionView, TurnView, VersionView};

/// Owns the state. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Hub {
    pub store: Store,
    pub clock: Clock,
    pub machine: String,
    /// Whose conversations are seen; commands on the store itself use the one without a name.
    pub namespace: Arc<str>,
    /// Where sessions are kept; none: nowhere but where their CLI does.
    pub vault: Option<Vault>,
    /// The most that turns may be asked to do through it; none: anything.
    pub ceiling: Option<PermissionMode>,
}
