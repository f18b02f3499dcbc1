//! Conversations, messages, turns, events and pins in SQL.
//!
//! One SQL text per query, `$1` placeholders, next to the function that uses it; a state change is
//! a compare-and-set in one transaction with its events. Nothing here decides anything.

mod adoptions;
mod binaries;
mod changes;
mod connections;
mod conversations;
mod db;
mod engine;
mod error;
mod events;
mod health;
mod history;
mod merge;
mod messages;
mod open;
mod pins;
mod refold;
mod search;
mod spent;
mod turns;

pub use adoptions::Adoption;
pub use changes::{Change, Version};
pub use connections::{Read, Store, Tx};
pub use conversations::{AgentSettings, Conversation, ListFilter, NewConversation, Parent};
pub use error::{Error, Result};
pub use events::EventRow;
pub use health::Health;
pub use history::{Page, ScopeState};
pub use merge::Belongings;
pub use messages::{HERE, NewMessage, OUTSIDE, StoredMessage};
pub use pins::{READ_ON, StoredPin};
pub use search::{HIT_BEGINS, HIT_ENDS, Hit, Search};
pub use turns::{Attempt, Ending, NewTurn, StoredTurn, TurnRecord};
