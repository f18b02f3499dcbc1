//! Test only: a separate world for each test, with a private home, a folder, a scripted model on
//! loopback, the real binary and real CLIs. Every test asks which messages the model received.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::return_self_not_must_use,
    reason = "a failure here is a failed test"
)]

/// Runs each function on a world with either version of Claude Code.
#[macro_export]
macro_rules! on_both_claudes {
    ($($test:ident),+ $(,)?) => {
        mod claude_2_1_197 {
            $(#[test] fn $test() {
                let rejoin = env!("CARGO_BIN_EXE_rejoin");
                $crate::World::claude(rejoin, $crate::CLAUDE_OLD).map(super::$test);
            })+
        }
        mod claude_2_1_325 {
            $(#[test] fn $test() {
                let rejoin = env!("CARGO_BIN_EXE_rejoin");
                $crate::World::claude(rejoin, $crate::CLAUDE_NEW).map(super::$test);
            })+
        }
    };
}

mod chronicle;
mod clis;
mod daemon;
mod faulty;
mod garage;
mod model;
mod pg;
mod pgbouncer;
pub mod populate;
mod procs;
mod python;
mod running;
mod s3;
mod sql;
mod talk;
mod words;
mod world;

pub use chronicle::{Chronicle, Continued, answering, costing, steps};
pub use clis::*;
pub use daemon::{Answer, Daemon, Streamed, Watching};
pub use faulty::{Fault, Faulty};
pub use garage::Garage;
pub use model::{Model, runs, slowly};
pub use pg::{Database, PgServer, database};
pub use pgbouncer::PgBouncer;
pub use procs::{marked, wait_for};
pub use python::python_tool;
pub use running::{kill, stop};
pub use s3::{S3, free_port};
pub use sql::{Locked, sql};
pub use talk::Talk;
pub use words::{answer, assert_shown, said, texts, user, words_in};
pub use world::{Done, World};
