//! `kill -9` of anything at any instant: no accepted message is lost, nothing is run twice, nothing
//! is left running, and the next command knows how it stands.

pub(super) mod disk;
pub(super) mod points;
mod processes;
mod spool;
mod stopped;
mod tools;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");
