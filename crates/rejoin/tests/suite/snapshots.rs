//! Sessions that outlive their machine: captured after every turn, put back byte for byte where they
//! are not, and never used unless they are what was captured.

mod bucket;
mod commands;
mod damage;
mod instants;
mod keeper;
pub(crate) mod kills;
mod long;
mod machines;
mod meanwhile;
mod restore;
mod sizes;
mod space;
mod stopped;
pub(crate) mod sweeping;
mod thinning;
mod through;
mod unsaved;
mod verify;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");
