//! Runs agents: the only crate that touches processes and the agents' own files.
//!
//! A turn goes through [`look`] (facts), `rejoin_core::decide`, [`attempt`] (written ahead, then
//! started under a [`shim`]), [`pump`] (events) and [`settle`] (the session read, the cost, the
//! end). [`recover`] walks the same way for what another process started.

pub mod adopt;
mod apart;
pub mod attempt;
pub mod binary;
mod capture;
pub mod config;
mod deferred;
pub mod descent;
mod error;
pub mod failure;
pub mod folder;
pub mod foreign_file;
mod foresee;
mod fork;
pub mod holder;
pub mod hook;
mod in_use;
pub mod inspect;
mod kept;
mod lease;
mod left;
pub mod leftovers;
pub mod look;
mod lost;
pub mod marks;
mod meanwhile;
pub mod open;
pub mod outside;
mod overlay;
mod pending;
pub mod place;
pub mod process;
mod prove;
pub mod pump;
mod record;
pub mod recover;
mod relocate;
pub mod repository;
pub mod restore;
pub mod session;
pub mod settle;
pub mod shim;
pub mod shim_link;
pub mod spool;

pub mod trust;
pub mod turn;
pub mod wall;
pub mod warm;
mod whole;
mod words;

pub use config::{AgentConfig, Asks, ModelConfig, RunnerConfig, Unrun};
pub use error::{Error, Result};
pub use foresee::Foreseen;
pub use pending::Pending;
pub use prove::{ROWS, Weight};
pub use turn::{IfBusy, Runner};
pub use wall::{WallConfig, WallMode};
pub use warm::Warm;
pub use words::{Target, Words, in_words};
