//! Conversations, messages, turns, events and pins in SQL.
//!
//! One SQL text per query, with `$1` placeholders, next to the function that uses it. A state
//! change is a compare-and-set in one transaction with its events. No decisions are made here.
//!
//! A transaction ([`Tx`]) and a read-only connection ([`Read`]) have a handle for each topic, so a
//! call names the file of its statement:
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use rejoin_store::Store;
//!
//! let folder = tempfile::tempdir().unwrap();
//! let store = Store::open_sqlite(&folder.path().join("store.db")).await?;
//! let mut read = store.read().await?;
//! assert!(read.turns().running().await?.is_empty());
//! # Ok::<(), rejoin_store::Error>(())
//! # }).unwrap();
//! ```

#![expect(
    private_bounds,
    reason = "only transactions and read-only connections have handles"
)]

mod adoptions;
mod archive;
mod attempts;
mod binaries;
mod blobs;
mod browser_sessions;
mod chains;
mod changes;
mod chunk_locations;
mod chunks;
mod connections;
mod conversations;
mod db;
mod deliveries;
mod engine;
mod error;
mod events;
mod external;
mod health;
mod history;
mod leases;
mod limits;
mod listing;
mod merge;
mod messages;
mod open;
mod pages;
mod period_costs;
mod pins;
mod prompts;
mod questions;
mod recompute;
mod schedules;
mod seal;
mod search;
mod shares;
mod snapshots;
mod stats;
mod sweep;
mod thinning;
mod tokens;
mod turn_costs;
mod turns;
mod vault;
mod verify;
mod workflows;
mod writable;

pub use adoptions::Adoption;
pub use archive::{
    ArchiveError, BadArchive, Contents, Exported, Generation, Header, HistoryEnd, IdMapping,
    ImportParams, Imported, SnapshotSelection, Totals, check, end_of, header_of,
};
pub use attempts::Attempt;
pub use blobs::{Blobs, BlobsConfig, ListedObject, ObjectName, Objects};
pub use browser_sessions::{BrowserSession, NewBrowserSession, SessionKind};
pub use chains::ChainLink;
pub use changes::{Change, Version};
pub use chunks::{ChunkList, ChunkRef, LARGEST};
pub use connections::{Read, Store, Tx};
pub use conversations::{AgentSettings, Conversation, NewConversation, Parent};
pub use deliveries::{Delivery, DeliveryResult, NewDelivery};
pub use error::{Error, Result};
pub use events::EventRow;
pub use external::{ExternalWords, READ_ON, SentPrompt, WatchedPin};
pub use health::Health;
pub use history::{Page, ScopeState};
pub use limits::LimitKey;
pub use listing::ListFilter;
pub use merge::OwnedRows;
pub use messages::{HERE, NewMessage, OUTSIDE, StoredMessage};
pub use pages::{MessageRange, RangeEnd};
pub use period_costs::{PeriodCost, QUARTER};
pub use pins::StoredPin;
pub use questions::{NO_RUN, NewAnswer, NewQuestion, StoredQuestion};
pub use schedules::{NewOccurrence, ScheduleKey, ScheduleState, StoredOccurrence};
pub use seal::{Sealer, Unsealed};
pub use search::{HIT_BEGINS, HIT_ENDS, Hit, Search};
pub use shares::{NewShare, Share};
pub use snapshots::{
    CapturedSession, Manifest, ManifestFile, NewSnapshot, Snapshot, StoredChunk, Unusable,
};
pub use stats::{ShelfSizes, Stats};
pub use sweep::{
    Expiring, GRACE, Retention, SweepPlan, SweepProgress, SweepResult, SweepStep, Watcher,
};
pub use tokens::{NewToken, Token, TokenScope};
pub use turns::{NewTurn, StoredTurn, TurnEnd, TurnRecord};
pub use vault::{CaptureMode, ChunkError, Vault};
pub use verify::{CheckedChunks, Inventory, SnapshotFlaw, VerifyDepth};
pub use workflows::{NewWorkflow, StoredStep, StoredWorkflow, WorkflowChange};

/// Returns the statements that are composed of pieces, for the test that checks the plan of every
/// statement.
#[doc(hidden)]
pub fn composed_statements() -> Vec<&'static str> {
    let mut all = listing::composed();
    all.extend(search::composed());
    all
}
