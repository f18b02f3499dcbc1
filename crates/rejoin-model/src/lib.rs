//! A scripted model on loopback. A coding CLI can run against it without a key, a token or a
//! network.
//!
//! The prompt itself controls the model: `#s:bash` plays a built-in script, and
//! `#j:[{"text":"hi"}]#` is a script written in place. No test needs a setup, and a CLI that is
//! resumed on another server sees the same model. The server keeps the requests it received,
//! because most questions about a CLI are "what did it send?".
//!
//! Path of a request: `server` accepts it, `route` finds its dialect, the dialect reads it into a
//! `conversation`, `script` finds the step, `answer` resolves the step, and `delivery` sends the
//! output of the dialect: in time, late, in part or not at all.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use rejoin_model::{ModelServer, Options};
//!
//! let model = ModelServer::start(Options::default()).await.unwrap();
//! assert!(model.url().starts_with("http://127.0.0.1:"));
//! assert!(model.requests().is_empty());
//! model.stop().await;
//! # });
//! ```

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
