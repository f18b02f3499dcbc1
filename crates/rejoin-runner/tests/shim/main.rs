//! Real shims over small scripted CLIs.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod detached;
mod early;
mod ending;
mod leftovers;
mod limits;
mod starting;
mod talking;
mod turn;
