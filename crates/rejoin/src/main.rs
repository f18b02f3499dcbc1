//! rejoin: keeps a conversation with a coding agent going, whatever happens underneath.

mod app;
mod at;
mod cli;
mod config;
mod demo_agent;
mod logs;
mod opencode_bridge;
mod output;
mod portable;
mod remote;
mod store_at;
mod traces;

use std::path::Path;
use std::process::ExitCode;

use rejoin_runner::failure;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args_os()
        .map(|a| a.to_string_lossy().into_owned())
        .collect();
    // These roles of the executable are not for people, and must stay small and quick.
    match args.get(1).map(String::as_str) {
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
        Some("demo-agent") => demo_agent::run(args.get(2..).unwrap_or_default()),
        _ => cli::run(),
    }
}
