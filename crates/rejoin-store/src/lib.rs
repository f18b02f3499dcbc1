//! Conversations, messages, turns, events and pins in SQL.
//!
//! One SQL text per query, `$1` placeholders, next to the function that uses it; a state change is
//! a compare-and-set in one transaction with its events. Nothing here decides anything.

mod binaries;
mod connections;
mod conversations;
mod db;
mod error;
mod events;
mod health;
mod history;
mod messages;
mod open;
mod pins;
mod spent;
mod turns;

pub use connections::{Read, Store, Tx};
pub use conversations::{AgentSettings, Conversation, ListFilter, NewConversation};
pub use error::{Error, Result};
pub use events::EventRow;
pub use health::Health;
pub use history::ScopeState;
pub use messages::{NewMessage, StoredMessage};
pub use pins::StoredPin;
pub use turns::{Attempt, Ending, NewTurn, StoredTurn, TurnRecord};
