//! The daemon: an HTTP API over the hub, live events, and the queue that runs accepted turns.
//!
//! A request goes through [`listen`] (connections), [`guard`] (authentication), a handler in
//! [`api`] and the hub; the [`queue`] runs turns; [`live`] publishes committed events.
//!
//! ```
//! let document = serde_json::to_value(rejoin_web::document()).unwrap();
//! assert!(document["paths"].get("/api/conversations").is_some());
//! ```

mod address;
mod api;
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
mod pages;
mod past;
mod places;
mod problem;
mod queue;
mod readiness;
mod schedules;
mod serve;
mod state;
mod timed;
mod token_watch;
mod workflows;

pub use listen::short;
pub use metrics::{DescribedMetric, described_metrics};
pub use notify::Notify;
pub use openapi::document;
pub use serve::{Bound, Daemon, Shutdown};
pub use state::Options;
