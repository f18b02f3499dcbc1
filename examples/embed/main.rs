//! A program that embeds rejoin: two messages to one conversation, and the events of the first.
//!
//! `cargo run --example embed` uses the demo agent, without a key or a network.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for a terminal"
)]

use std::process::ExitCode;

use rejoin::{Message, Rejoin};

fn main() -> ExitCode {
    // The processes around an agent are this program again.
    if let Some(code) = rejoin::role() {
        return code;
    }
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(converse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{}: {}", failure.code, failure.message);
            ExitCode::from(failure.exit)
        }
    }
}

async fn converse() -> rejoin::Result<()> {
    let home = std::env::var("REJOIN_HOME").unwrap_or_else(|_| "embed-home".into());
    let rejoin = Rejoin::open(home).await?;
    let first = Message::new("My name is Ada.")
        .key("issue-42")
        .agent("demo");
    let turn = rejoin
        .send_message(first, |event| println!("  {}", event.body.kind()))
        .await?;
    println!("{}", turn.summary);
    // The conversation keeps its agent, also for a program that starts later.
    let turn = rejoin.send("issue-42", "What is my name?").await?;
    println!("{}", turn.text.unwrap_or_default());
    println!("{}", turn.summary);
    rejoin.close().await;
    Ok(())
}
