//! rejoin: keeps conversations with coding agents going across processes and machines.
//!
//! A program embeds it with [`Rejoin`]; `examples/embed` is a complete one:
//!
//! ```no_run
//! # async fn example() -> rejoin::Result<()> {
//! let rejoin = rejoin::Rejoin::open("/var/lib/product").await?;
//! let turn = rejoin.send("issue-42", "Fix the failing test.").await?;
//! println!("{}", turn.text.unwrap_or_default());
//! # Ok(())
//! # }
//! ```

mod app;
mod cli;
mod config;
mod demo_agent;
mod duration;
mod embed;
mod hub_client;
mod logs;
mod opencode_bridge;
mod output;
mod portable;
mod reference;
mod remote;
mod store_url;
mod traces;
mod workflow_process;

use std::path::Path;
use std::process::ExitCode;

pub use embed::{Message, Rejoin};
pub use rejoin_core::{EventBody, StoredEvent};
pub use rejoin_errors::{CommandError, Result};
pub use rejoin_hub::TurnView;

/// Runs the command line of `rejoin`, or an internal role of its executable.
pub fn main() -> ExitCode {
    role().unwrap_or_else(cli::run)
}

/// Runs this process in its internal role, if rejoin started it for one, and returns its exit code.
/// `None`: the process has no role, and the program continues.
///
/// rejoin starts its own executable for the processes around an agent. In a program that embeds
/// rejoin, that executable is the program, so its `main` must call this first.
pub fn role() -> Option<ExitCode> {
    let args: Vec<String> = std::env::args_os()
        .map(|a| a.to_string_lossy().into_owned())
        .collect();
    // These roles of the executable are not for people, and must stay small and quick.
    Some(match args.get(1).map(String::as_str) {
        Some("shim") => {
            let folder = std::env::args_os().nth(2).unwrap_or_else(|| ".".into());
            let code = rejoin_runner::shim::main(Path::new(&folder));
            ExitCode::from(u8::try_from(code).unwrap_or(1))
        }
        Some(rejoin_agents::serve::BRIDGE) => {
            opencode_bridge::run(args.get(2..).unwrap_or_default())
        }
        Some(rejoin_runner::warm::stay::COMMAND) => ExitCode::from(
            rejoin_runner::warm::stay::main(args.get(2..).unwrap_or_default()),
        ),
        Some("hook") => {
            rejoin_runner::hook::main();
            ExitCode::SUCCESS
        }
        Some("limit") => rejoin_runner::limits::main(),
        Some(rejoin_agents::WORKFLOW_PROCESS) => {
            workflow_process::run(args.get(2..).unwrap_or_default())
        }
        Some("demo-agent") => demo_agent::run(args.get(2..).unwrap_or_default()),
        _ => return None,
    })
}
