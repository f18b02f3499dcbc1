//! Test only: a world of its own for each test. A private home, a folder, a scripted model on
//! loopback, the real binary and real CLIs; and the question every test asks: what was the model
//! shown?
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a failure here is a failed test"
)]

mod clis;
mod model;
mod procs;
mod words;
mod world;

pub use clis::{CLAUDE_NEW, CLAUDE_OLD, claude};
pub use model::Model;
pub use procs::{marked, wait_for};
pub use words::{answer, assert_shown, said, user};
pub use world::{Done, World};
