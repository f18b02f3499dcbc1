//! rejoin: keeps a conversation with a coding agent going, whatever happens underneath.

mod app;
mod cli;
mod config;
mod demo_agent;
mod failure;
mod output;
mod portable;
mod store_at;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args_os()
        .map(|a| a.to_string_lossy().into_owned())
        .collect();
    // Two roles of this executable are not for people and must stay small and quick.
    match args.get(1).map(String::as_str) {
        Some("shim") => {
            let folder = std::env::args_os().nth(2).unwrap_or_else(|| ".".into());
            let code = rejoin_runner::shim::main(Path::new(&folder));
            ExitCode::from(u8::try_from(code).unwrap_or(1))
        }
        Some("demo-agent") => demo_agent::run(args.get(2..).unwrap_or_default()),
        _ => cli::run(),
    }
}
