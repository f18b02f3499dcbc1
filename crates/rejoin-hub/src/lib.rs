//! The only crate that changes the state of a conversation: accepts messages, hands turns out,
//! keeps what happened, ends them. In one process or behind HTTP, runners see it through
//! [`HubLink`].

mod accept;
mod change;
mod claim;
mod clock;
mod error;
mod estimate;
pub mod fault;
mod find;
mod finish;
mod lease;
mod link;
mod outlook;
mod outside;
mod portable;
mod progress;
mod request;
mod snapshots;
mod source;
mod view;

use rejoin_store::{Store, Vault};

pub use accept::{Accepted, Incoming, Target};
pub use change::{Affected, Again, Changed, Doing, ForkView, ForkWish, Merged, Wish};
pub use claim::{Claimed, Next};
pub use clock::{Clock, rfc3339};
pub use error::{Error, Result};
pub use find::{Found, Named};
pub use finish::{PinEnd, Settled};
pub use lease::{Lease, Taking};
pub use link::HubLink;
pub use outlook::{Candidate, FORK_FAILED, Outlook};
pub use outside::{Adopted, TakenIn, WentOn};
pub use portable::{Came, ImportView, ImportWish};
pub use progress::{AttemptPlan, BeginAttempt, Confirmed, Forked, PinStart};
pub use request::{FreshWish, TurnFlags, TurnRequest};
pub use snapshots::{FAILED, LOCAL_ONLY, Offers, STORED};
pub use view::{ConversationView, ErrorView, MessageView, SessionView, TurnView, VersionView};

/// Owns the state. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Hub {
    pub store: Store,
    pub clock: Clock,
    pub machine: String,
    /// Where sessions are kept; none: nowhere but where their CLI does.
    pub vault: Option<Vault>,
}
