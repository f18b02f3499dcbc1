//! Conversations, messages, turns, events and pins in SQL.
//!
//! One SQL text per query, `$1` placeholders, next to the function that uses it; a state change is
//! a compare-and-set in one transaction with its events. Nothing here decides anything.

mod adoptions;
mod archive;
mod attempts;
mod binaries;
mod blobs;
mod changes;
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
mod listing;
mod merge;
mod messages;
mod open;
mod pages;
mod pins;
mod places;
mod questions;
mod refold;
mod seal;
mod search;
mod snapshots;
mod spent;
mod sweep;
mod tally;
mod tokens;
mod turns;
mod vault;
mod verify;
mod writable;

pub use adoptions::Adoption;
pub use archive::{
    ArchiveError, Arrival, BadArchive, Contents, Exported, Generation, Header, Here, Imported,
    Renaming, Totals, Which, check, end_of, header_of,
};
pub use attempts::Attempt;
pub use blobs::{Blobs, BlobsConfig, Listed, ObjectName, Objects};
pub use changes::{Change, Version};
pub use chunks::{ChunkList, ChunkRef, LARGEST};
pub use connections::{Read, Store, Tx};
pub use conversations::{AgentSettings, Conversation, NewConversation, Parent};
pub use deliveries::{Delivery, NewDelivery, Tried};
pub use error::{Error, Result};
pub use events::EventRow;
pub use external::{ExternalWords, READ_ON, SentPrompt, WatchedPin};
pub use health::Health;
pub use history::{Page, ScopeState};
pub use listing::ListFilter;
pub use merge::Belongings;
pub use messages::{HERE, NewMessage, OUTSIDE, StoredMessage};
pub use pages::{End, Span};
pub use pins::StoredPin;
pub use questions::{NewAnswer, NewQuestion, StoredQuestion};
pub use seal::{Sealer, Unsealed};
pub use search::{HIT_BEGINS, HIT_ENDS, Hit, Search};
pub use snapshots::{Captured, Manifest, ManifestFile, NewSnapshot, Sealed, Snapshot, Unusable};
pub use sweep::{Expiring, GRACE, Progress, Retention, Stage, SweepPlan, Swept, Watcher};
pub use tally::Tally;
pub use tokens::{NewToken, Token, TokenScope};
pub use turns::{Ending, NewTurn, StoredTurn, TurnRecord};
pub use vault::{Keeping, Lost, Vault};
pub use verify::{Checked, Depth, Flaw, Stock};

/// Returns the statements that are put together of pieces, for the test that looks at the plan of every statement.
#[doc(hidden)]
pub fn composed_statements() -> Vec<&'static str> {
    let mut all = listing::composed();
    all.extend(search::composed());
    all
}
