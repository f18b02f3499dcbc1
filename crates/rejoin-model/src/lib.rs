//! A scripted model on loopback that a coding CLI can be run against without a key, a token or a
//! network.
//!
//! The prompt itself says what the model shall do: `#s:bash` plays a built-in script, and
//! `#j:[{"text":"hi"}]#` is a script written in place. Nothing has to be set up per test, and a
//! CLI that is resumed on another server sees the same model. The server keeps what it was sent,
//! because most questions about a CLI are "what did it send?".
//!
//! A request walks: `server` accepts it, `route` finds its dialect, the dialect reads it into a
//! `conversation`, `script` finds the step, `answer` makes the step concrete, and `delivery` sends
//! what the dialect wrote: in time, late, in part or not at all.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod answer;
mod connection;
mod control;
mod conversation;
mod delivery;
mod dialects;
mod error;
mod log;
mod options;
mod route;
mod script;
mod server;

pub use error::Error;
pub use log::Request;
pub use options::Options;
pub use script::{Script, Step, StepUsage, ToolCall, builtin_scripts};
pub use server::ModelServer;
