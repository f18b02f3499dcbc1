//! The daemon: an HTTP API over the hub, live events, and the queue that runs what is accepted.
//!
//! A request goes through [`listen`] (connections), [`guard`] (who is it, may it), a handler in
//! [`api`] and the hub; the [`queue`] runs turns; [`live`] tells what was committed.

mod address;
mod api;
mod asked;
mod body;
mod extract;
mod folders;
mod gate;
mod guard;
mod listen;
mod live;
mod metrics;
mod notify;
mod openapi;
mod page;
mod past;
mod places;
mod problem;
mod queue;
mod readiness;
mod serve;
mod state;
mod timed;
mod token_watch;

pub use listen::short;
pub use notify::Notify;
pub use openapi::document;
pub use serve::{Bound, Daemon, Shutdown};
pub use state::{Defaults, Options};
