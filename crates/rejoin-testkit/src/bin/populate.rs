//! Fills an empty store with many conversations:
//! `cargo run --release -p rejoin-testkit --bin populate -- --store FILE --conversations 100000`
#![allow(clippy::print_stderr, reason = "a program for people who measure")]

use std::path::Path;
use std::process::ExitCode;

use rejoin_testkit::populate::{Population, Server};

const USAGE: &str = "usage: populate --store FILE|postgres://… [--schema NAME] [--conversations N] [--messages N] [--long TURNS]
The store must exist and be empty: `rejoin list` makes it.";

fn main() -> ExitCode {
    match fill(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn fill(args: &[String]) -> Result<(), String> {
    let value = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1).cloned()
    };
    let number = |name: &str, default: u64| match value(name) {
        Some(text) => text
            .parse()
            .map_err(|_| format!("{name} takes a number\n{USAGE}")),
        None => Ok(default),
    };
    let population = Population {
        conversations: number("--conversations", 1000)?,
        messages: number("--messages", 20)?,
        long: number("--long", 0)?,
    };
    let store = value("--store").ok_or(USAGE)?;
    if store.starts_with("postgres") {
        let schema = value("--schema").unwrap_or_else(|| "public".to_owned());
        let server = Server { url: store, schema };
        return population.fill_postgres(&server).map_err(|e| e.to_string());
    }
    if !Path::new(&store).exists() {
        return Err(format!("there is no store at {store}\n{USAGE}"));
    }
    let filled = population.fill_sqlite(Path::new(&store));
    filled.map_err(|e| e.to_string())
}
