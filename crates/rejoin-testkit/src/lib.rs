//! Test only: a world of its own for each test. A private home, a folder, a scripted model on
//! loopback, the real binary and real CLIs; and the question every test asks: what was the model
//! shown?
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

/// Runs each function on a world with every CLI.
#[macro_export]
macro_rules! on_every_cli {
    ($($test:ident),+ $(,)?) => {
        $crate::on_cli!(claude_2_1_197, CLAUDE_197, $($test),+);
        $crate::on_cli!(claude_2_1_325, CLAUDE_325, $($test),+);
        $crate::on_cli!(codex_0_166_0, CODEX_166, $($test),+);
        $crate::on_cli!(opencode, OPENCODE, $($test),+);
        $crate::on_cli!(gemini_0_61_0, GEMINI_061, $($test),+);
    };
}

/// The same, with the CLIs that take their time only in the long run (`./scripts/test --long`).
#[macro_export]
macro_rules! on_every_quick_cli {
    ($($test:ident),+ $(,)?) => {
        $crate::on_cli!(claude_2_1_197, CLAUDE_197, $($test),+);
        $crate::on_cli!(claude_2_1_325, CLAUDE_325, $($test),+);
        $crate::on_cli!(codex_0_166_0, CODEX_166, $($test),+);
        $crate::on_slow_cli!(opencode, OPENCODE, $($test),+);
        $crate::on_slow_cli!(gemini_0_61_0, GEMINI_061, $($test),+);
    };
}

#[macro_export]
macro_rules! on_slow_cli {
    ($module:ident, $cli:ident, $($test:ident),+ $(,)?) => {
        mod $module {
            $(#[test] #[ignore = "only with --long"] fn $test() {
                let rejoin = env!("CARGO_BIN_EXE_rejoin");
                $crate::World::of(rejoin, &$crate::$cli).map(super::$test);
            })+
        }
    };
}

#[macro_export]
macro_rules! on_cli {
    ($module:ident, $cli:ident, $($test:ident),+ $(,)?) => {
        mod $module {
            $(#[test] fn $test() {
                let rejoin = env!("CARGO_BIN_EXE_rejoin");
                $crate::World::of(rejoin, &$crate::$cli).map(super::$test);
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
pub use clis::{
    CLAUDE_20, CLAUDE_197, CLAUDE_325, CLAUDE_NEW, CLAUDE_OLD, CODEX_166, CODEX_TOOLS, Cli,
    GEMINI_061, OPENCODE, claude,
};
pub use daemon::{Answer, Daemon, Streamed, Watching};
pub use faulty::{Fault, Faulty};
pub use garage::Garage;
pub use model::{Model, runs, slowly};
pub use pg::{Database, PgServer, database};
pub use pgbouncer::PgBouncer;
pub use procs::{marked, wait_for};
pub use python::python_tool;
pub use running::kill;
pub use s3::{S3, free_port};
pub use sql::{Locked, sql};
pub use talk::Talk;
pub use words::{answer, assert_shown, said, texts, user, words_in};
pub use world::{Done, World};
