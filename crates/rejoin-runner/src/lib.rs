//! Runs agents: the only crate that touches processes and the agents' own files.
//!
//! A turn goes through [`inspect`] (gathers facts), `decision` (calls `rejoin_core::decide`),
//! `attempt` (writes the attempt ahead, then starts it under a [`shim`]) and `run` (reads events
//! with `pump`, reads the session and adds up the cost with `settle`, ends the turn). `schedule` runs
//! the turns of a conversation in order; `recover` follows turns that another process started.
//!
//! ```
//! use rejoin_core::FolderFact;
//! use rejoin_runner::folder;
//!
//! // A session belongs to a folder, which may be renamed but not replaced.
//! let home = tempfile::tempdir()?;
//! let (old, new) = (home.path().join("old"), home.path().join("new"));
//! std::fs::create_dir(&old)?;
//! let pinned = folder::look(&old)?;
//! std::fs::rename(&old, &new)?;
//! assert_eq!(folder::compare(&pinned, &folder::look(&new)?), FolderFact::SameInode);
//! # Ok::<(), std::io::Error>(())
//! ```

mod abandoned;
pub mod adopt;
mod atomic_file;
mod attempt;
mod background;
pub mod binary;
mod capture;
pub mod config;
mod contained_call;
mod cost_limit;
mod decision;
mod defer;
pub mod descent;
pub mod doctor_facts;
mod error;
pub mod external;
mod finish;
pub mod folder;
pub mod foreign_file;
mod fork;
pub mod holder;
pub mod hook;
mod in_use;
pub mod inspect;
mod kept_processes;
mod lease;
pub mod limits;
pub mod location;
mod lost_turn;
pub mod marks;
pub mod occurrence;
pub mod open;
mod overlay;
mod predict;
pub mod process;
mod prove;
mod pump;
mod recover;
mod relocate;
mod render;
pub mod repository;
pub mod restore;
mod resume_deferred;
mod run;
mod schedule;
pub mod send;
pub mod session;
mod settle;
pub mod shim;
pub mod shim_link;
pub mod spool;
pub mod stray_processes;
pub mod tiers;
pub mod trust;
pub mod turn;
mod turn_record;
pub mod wall;
pub mod warm;
mod worker_thread;
pub mod workflow;

pub use config::{AgentConfig, Asks, ModelConfig, RunnerConfig, Unrun, model_config};
pub use error::{Error, Result};
pub use predict::Prediction;
pub use prove::{ROWS, Weight};
pub use schedule::Pending;
pub use turn::Runner;
pub use wall::{WallConfig, WallMode};
pub use warm::Warm;
